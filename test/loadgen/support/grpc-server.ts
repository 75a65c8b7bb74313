/** A well-behaved gRPC server on node:http2 whose answer is chosen by the request: the message starts with a JSON instruction. */
import { createHash } from "node:crypto";
import * as http2 from "node:http2";
import type { AddressInfo, Socket } from "node:net";
import { encodeGrpcMessage } from "../../../http2/grpc-message";

/** What the server does with a request. */
export type Instruction =
  /** Answers with JSON {bytes, sha256} of the message, after `delayMs`, in DATA frames of `chunkBytes`. */
  | { readonly do: "digest"; readonly delayMs?: number; readonly chunkBytes?: number }
  /** Answers with a message of this size. */
  | { readonly do: "reply"; readonly bytes: number }
  /** gRPC error: in the first header block, or in trailers after a header block. */
  | {
      readonly do: "error";
      readonly status: number;
      readonly message: string;
      readonly trailersOnly: boolean;
    }
  /** Error at once, before the request was read. */
  | { readonly do: "early-error"; readonly status: number }
  | { readonly do: "reset"; readonly code: number }
  | { readonly do: "silence" }
  /** HTTP reply without gRPC. */
  | { readonly do: "http"; readonly status: number; readonly contentType: string }
  /** gRPC headers, raw body (hex), then these trailers. */
  | { readonly do: "body"; readonly hex: string; readonly trailers: Readonly<Record<string, string>> };

/** A message that carries an instruction, filled up to `bytes`. */
export function message(instruction: Instruction, bytes = 0): Buffer {
  const text = Buffer.from(`${JSON.stringify(instruction)}\n`);
  const filled = Buffer.alloc(Math.max(bytes, text.length));
  for (let i = 0; i < filled.length; i++) filled[i] = (i * 31 + (i >> 8)) & 0xff;
  text.copy(filled);
  return filled;
}

export const digestOf = (sent: Buffer): { bytes: number; sha256: string } => ({
  bytes: sent.length,
  sha256: createHash("sha256").update(sent).digest("hex"),
});

const grpcHead = { ":status": 200, "content-type": "application/grpc" };

export class GrpcServer {
  readonly sessions = new Set<http2.ServerHttp2Session>();
  /** Sessions ever opened. */
  sessionsSeen = 0;
  requests = 0;
  /** Most requests open on one session at once. */
  mostConcurrent = 0;
  /** Reset codes that clients sent. */
  readonly resets: number[] = [];
  readonly headers: http2.IncomingHttpHeaders[] = [];
  private readonly sockets = new Set<Socket>();
  private readonly openOf = new Map<http2.ServerHttp2Session, number>();

  private constructor(private readonly server: http2.Http2Server | http2.Http2SecureServer) {
    server.on("connection", (socket: Socket) => {
      this.sockets.add(socket);
      socket.on("close", () => this.sockets.delete(socket));
    });
    server.on("session", (session) => {
      this.sessions.add(session);
      this.sessionsSeen++;
      session.on("close", () => this.sessions.delete(session));
      session.on("error", () => undefined);
    });
    server.on("stream", (stream, headers) => this.onStream(stream, headers));
  }

  /** @param settings HTTP/2 settings; @param port 0: a free one; @param tls certificate and key (PEM): over TLS */
  static async listen(
    settings: http2.Settings = {},
    port = 0,
    tls?: { readonly certPem: string; readonly keyPem: string },
  ): Promise<GrpcServer> {
    const server =
      tls === undefined
        ? http2.createServer({ settings })
        : http2.createSecureServer({ settings, cert: tls.certPem, key: tls.keyPem });
    await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
    return new GrpcServer(server);
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  get address(): string {
    return `127.0.0.1:${this.port}`;
  }

  /** Drops all connections without a word, as a dead host or a cut cable does. */
  breakConnections(): void {
    for (const socket of this.sockets) socket.destroy();
  }

  async close(): Promise<void> {
    for (const session of this.sessions) session.destroy();
    await new Promise((resolve) => this.server.close(resolve));
  }

  private onStream(stream: http2.ServerHttp2Stream, headers: http2.IncomingHttpHeaders): void {
    const session = stream.session as http2.ServerHttp2Session;
    const open = (this.openOf.get(session) ?? 0) + 1;
    this.openOf.set(session, open);
    this.mostConcurrent = Math.max(this.mostConcurrent, open);
    this.requests++;
    this.headers.push(headers);
    const chunks: Buffer[] = [];
    stream.on("error", () => undefined);
    stream.on("aborted", () => this.resets.push(stream.rstCode ?? -1));
    stream.on("close", () => this.openOf.set(session, this.openOf.get(session)! - 1));
    stream.on("data", (chunk: Buffer) => {
      chunks.push(chunk);
      const early = chunks.length === 1 ? instructionIn(chunk) : undefined;
      if (early?.do === "early-error")
        stream.respond({ ...grpcHead, "grpc-status": early.status }, { endStream: true });
    });
    stream.on("end", () => {
      if (stream.aborted || stream.headersSent) return;
      const body = Buffer.concat(chunks);
      const sent = body.subarray(5);
      if (body.length < 5 || body.readUInt32BE(1) !== sent.length)
        throw new Error("the request is no gRPC message");
      const instruction = instructionIn(body);
      if (instruction !== undefined) answer(stream, instruction, sent);
    });
  }
}

function instructionIn(chunk: Buffer): Instruction | undefined {
  const end = chunk.indexOf("\n");
  return end < 0 ? undefined : (JSON.parse(chunk.subarray(5, end).toString()) as Instruction);
}

function prefixed(content: Buffer): Buffer {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(content.length, 1);
  return Buffer.concat([prefix, content]);
}

function answer(stream: http2.ServerHttp2Stream, instruction: Instruction, sent: Buffer): void {
  if (stream.destroyed) return;
  switch (instruction.do) {
    case "digest": {
      const body = prefixed(Buffer.from(JSON.stringify(digestOf(sent))));
      setTimeout(
        () => respond(stream, body, { "grpc-status": "0" }, instruction.chunkBytes),
        instruction.delayMs ?? 0,
      );
      return;
    }
    case "reply":
      return respond(stream, prefixed(Buffer.alloc(instruction.bytes, 7)), { "grpc-status": "0" });
    case "error": {
      const trailers = {
        "grpc-status": String(instruction.status),
        "grpc-message": encodeGrpcMessage(instruction.message),
      };
      if (instruction.trailersOnly) stream.respond({ ...grpcHead, ...trailers }, { endStream: true });
      else respond(stream, Buffer.alloc(0), trailers);
      return;
    }
    case "reset":
      return stream.close(instruction.code);
    case "http":
      stream.respond({ ":status": instruction.status, "content-type": instruction.contentType });
      stream.end("<html>not gRPC</html>");
      return;
    case "body":
      return respond(stream, Buffer.from(instruction.hex, "hex"), instruction.trailers);
    case "early-error":
    case "silence":
      return;
  }
}

function respond(
  stream: http2.ServerHttp2Stream,
  body: Buffer,
  trailers: Readonly<Record<string, string>>,
  chunkBytes = body.length,
): void {
  if (stream.destroyed) return;
  stream.respond(grpcHead, { waitForTrailers: true });
  stream.on("wantTrailers", () => stream.sendTrailers(trailers));
  for (let at = 0; at < body.length; at += chunkBytes) stream.write(body.subarray(at, at + chunkBytes));
  stream.end();
}
