import { createServer, type AddressInfo, type Server } from "node:net";
import { type RequestHandler, ServerConnection } from "../h2/connection";
import { type ConnectionOptions, defaultConnectionOptions } from "../h2/connection-options";
import type { HeaderFields } from "../../http2/header-decoder";
import { ServerStream, type StreamReceiver } from "../h2/stream";
import { errorHead, httpErrorHead } from "./header-blocks";
import { MessagePool } from "./message-pool";
import { GrpcStatusCode } from "../../kserve/status";
import type { StatusCode } from "./status";
import { UnaryCall, type UnaryHandler } from "./unary-call";

export interface GrpcServerOptions {
  /** Largest request message, bytes. Default 256 MiB; a batch of 64 images of 602,112 bytes has 38.5 MB. */
  readonly maxMessageBytes?: number;
  /** Default `defaultConnectionOptions`. */
  readonly connection?: Partial<ConnectionOptions>;
}

const DEFAULT_MAX_MESSAGE_BYTES = 256 * 1024 * 1024;
const MAX_FREE_BYTES = 64 * 1024 * 1024;
const MAX_RECEIVING_BYTES = 2 * 1024 * 1024 * 1024;

/** Unary gRPC methods over cleartext HTTP/2. */
export class GrpcServer implements RequestHandler {
  private readonly server: Server;
  private readonly connections = new Set<ServerConnection>();
  private readonly pool = new MessagePool(MAX_FREE_BYTES, MAX_RECEIVING_BYTES);
  private readonly connectionOptions: ConnectionOptions;
  private readonly maxMessageBytes: number;
  private openCalls = 0;

  constructor(
    /** Handlers by full path, e.g. "/inference.GRPCInferenceService/ServerLive". */
    private readonly methods: ReadonlyMap<string, UnaryHandler>,
    options: GrpcServerOptions = {},
  ) {
    this.maxMessageBytes = options.maxMessageBytes ?? DEFAULT_MAX_MESSAGE_BYTES;
    this.connectionOptions = { ...defaultConnectionOptions, ...options.connection };
    this.server = createServer({ pauseOnConnect: true }, (socket) => {
      this.connections.add(
        new ServerConnection(socket, this, this.connectionOptions, (connection) =>
          this.connections.delete(connection),
        ),
      );
    });
  }

  /** Calls without an answer. */
  get inFlight(): number {
    return this.openCalls;
  }

  /** Opens the port (0: a free one) and returns it. Rejects with an Error that names the address when it is in use. */
  listen(port: number, host: string): Promise<number> {
    return new Promise((resolve, reject) => {
      this.server.once("error", (error) =>
        reject(new Error(`gRPC port ${host}:${port} cannot be opened: ${error.message}`)),
      );
      this.server.listen(port, host, () => resolve((this.server.address() as AddressInfo).port));
    });
  }

  /** Stops listening, tells every client to go (GOAWAY) and resolves when all open calls are answered and all connections closed. */
  async drain(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.server.close(() => resolve()));
    for (const connection of this.connections) connection.drain();
    await closed;
  }

  /** Closes everything at once. */
  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.server.close(() => resolve()));
    for (const connection of this.connections) connection.destroy();
    await closed;
  }

  request(stream: ServerStream, headers: HeaderFields): StreamReceiver {
    const contentType = headers.get("content-type") ?? "";
    if (headers.get(":method") !== "POST" || !contentType.startsWith("application/grpc")) {
      stream.respond(httpErrorHead(headers.get(":method") === "POST" ? 415 : 405));
      return IGNORE;
    }
    const path = headers.get(":path") ?? "";
    const handler = this.methods.get(path);
    if (handler === undefined)
      return refuse(stream, GrpcStatusCode.UNIMPLEMENTED, `The server does not offer the method ${path}.`);
    const timeout = headers.get("grpc-timeout");
    const deadlineMs = timeout === undefined ? null : parseTimeoutMs(timeout);
    if (Number.isNaN(deadlineMs))
      return refuse(stream, GrpcStatusCode.INTERNAL, `The grpc-timeout header '${timeout}' cannot be read.`);
    this.openCalls++;
    return new UnaryCall(
      stream,
      handler,
      this.pool,
      this.maxMessageBytes,
      deadlineMs,
      () => this.openCalls--,
    );
  }
}

const IGNORE: StreamReceiver = {
  data: () => undefined,
  end: () => undefined,
  reset: () => undefined,
};

function refuse(stream: ServerStream, code: StatusCode, message: string): StreamReceiver {
  stream.respond(errorHead(code, message));
  return IGNORE;
}

const UNIT_MS: Readonly<Record<string, number>> = {
  H: 3_600_000,
  M: 60_000,
  S: 1000,
  m: 1,
  u: 1e-3,
  n: 1e-6,
};
/** Longest delay of a Node timer, milliseconds. */
const MAX_TIMER_MS = 0x7fffffff;

/** Milliseconds of a grpc-timeout header ("100m"); NaN when it is malformed. */
export function parseTimeoutMs(text: string): number {
  const match = /^(\d{1,8})([HMSmun])$/.exec(text);
  if (match === null) return NaN;
  return Math.min(MAX_TIMER_MS, Math.ceil(Number(match[1]) * UNIT_MS[match[2]!]!));
}
