import { LeanTransport } from "../../loadgen/transport-lean/lean-transport";
import { describeTransport } from "./transport-conformance";

describeTransport("lean", (options) => new LeanTransport(options));
