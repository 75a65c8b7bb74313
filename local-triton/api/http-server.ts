import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { GrpcStatusCode } from "../../kserve/status";
import { StatusError } from "../grpc/status";

/** An answer to be sent. */
export interface HttpReply {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
}

/** Answers a request; a StatusError that it throws becomes Triton's HTTP status with `{"error": ...}`. */
export type HttpRoute = (request: HttpRequest) => HttpReply | Promise<HttpReply>;

export interface HttpRequest {
  readonly method: string;
  /** Path without query. */
  readonly path: string;
  readonly body: Buffer;
}

/** Control-plane requests are small; a configuration override is a few kB. */
const MAX_BODY_BYTES = 4 * 1024 * 1024;

/** Triton's HTTP status of each gRPC status. */
const HTTP_STATUS: Readonly<Record<number, number>> = {
  [GrpcStatusCode.INVALID_ARGUMENT]: 400,
  [GrpcStatusCode.NOT_FOUND]: 404,
  [GrpcStatusCode.UNIMPLEMENTED]: 501,
  [GrpcStatusCode.UNAVAILABLE]: 503,
};

export function jsonReply(value: unknown): HttpReply {
  return { status: 200, contentType: "application/json", body: JSON.stringify(value) };
}

export function errorReply(status: number, message: string, contentType: string): HttpReply {
  return { status, contentType, body: JSON.stringify({ error: message }) };
}

/** A small HTTP/1.1 server around one route function. */
export class HttpEndpoint {
  private readonly server: Server;

  constructor(route: HttpRoute) {
    this.server = createServer((request, response) => {
      void answer(route, request, response);
    });
  }

  /** Opens the port (0: a free one) and returns it. Rejects with an Error that names the address when it is in use. */
  listen(port: number, host: string, what: string): Promise<number> {
    return new Promise((resolve, reject) => {
      this.server.once("error", (error) =>
        reject(new Error(`${what} port ${host}:${port} cannot be opened: ${error.message}`)),
      );
      this.server.listen(port, host, () => resolve((this.server.address() as AddressInfo).port));
    });
  }

  /** Stops listening and drops all connections. */
  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.server.close(() => resolve()));
    this.server.closeAllConnections();
    await closed;
  }
}

async function answer(route: HttpRoute, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const reply = await replyTo(route, request);
  if (response.destroyed) return;
  response.writeHead(reply.status, {
    "content-type": reply.contentType,
    "content-length": Buffer.byteLength(reply.body),
  });
  response.end(reply.body);
}

async function replyTo(route: HttpRoute, request: IncomingMessage): Promise<HttpReply> {
  try {
    const body = await readBody(request);
    const path = (request.url ?? "/").split("?")[0]!;
    return await route({ method: request.method ?? "GET", path, body });
  } catch (error) {
    if (error instanceof StatusError) {
      return errorReply(HTTP_STATUS[error.code] ?? 500, error.message, "application/json");
    }
    return errorReply(500, `unexpected error in the server: ${String(error)}`, "text/plain");
  }
}

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MAX_BODY_BYTES) {
      throw new StatusError(
        GrpcStatusCode.INVALID_ARGUMENT,
        `the request body is over ${MAX_BODY_BYTES} bytes`,
      );
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
