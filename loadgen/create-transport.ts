import type { LoadSpec } from "./load-spec";
import type { Transport, TransportOptions } from "./transport";
import { GrpcJsTransport } from "./transport-grpc-js";
import { FreshTransport } from "./transport-lean/fresh-transport";
import { LeanTransport } from "./transport-lean/lean-transport";

/** A transport of the kind that the load spec names; not yet connected. @throws RangeError for bad options */
export function createTransport(kind: LoadSpec["transport"], options: TransportOptions): Transport {
  if (kind === "grpc-js") return new GrpcJsTransport(options);
  return options.newConnectionPerRequest === true ? new FreshTransport(options) : new LeanTransport(options);
}
