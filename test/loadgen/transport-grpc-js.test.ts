import { GrpcJsTransport } from "../../loadgen/transport-grpc-js";
import { describeTransport } from "./transport-conformance";

describeTransport("grpc-js", (options) => new GrpcJsTransport(options));
