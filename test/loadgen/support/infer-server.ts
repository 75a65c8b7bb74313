/** A KServe server on node:http2 that answers every request alike: the counterpart of load generator tests and benches. */
import * as http2 from "node:http2";
import type { AddressInfo, Socket } from "node:net";
import { encodeClassifications, encodeInferResponse } from "../../../kserve/wire";
import type { KnownAnswer } from "../../../loadgen/load-spec";

export const goodAnswer: KnownAnswer = { classIndex: 7, label: "seven", score: 0.5 };

export interface InferServerBehaviour {
  /** Answer of the n-th request, n from 0; a number is a gRPC error status, null means no answer at all. */
  answer: (n: number) => KnownAnswer | number | null;
  /** Time until the answer, milliseconds. */
  delayMs: number;
}

const head = { ":status": 200, "content-type": "application/grpc" };

export class InferServer {
  requests = 0;
  bytes = 0;
  inFlight = 0;
  mostInFlight = 0;
  readonly behaviour: InferServerBehaviour = { answer: () => goodAnswer, delayMs: 0 };
  private readonly sockets = new Set<Socket>();

  private constructor(private readonly server: http2.Http2Server) {
    server.on("connection", (socket: Socket) => {
      this.sockets.add(socket);
      socket.on("close", () => this.sockets.delete(socket));
    });
    server.on("session", (session) => {
      session.setLocalWindowSize(64 << 20);
      session.on("error", () => undefined);
    });
    server.on("stream", (stream) => this.onStream(stream));
  }

  static async listen(port = 0): Promise<InferServer> {
    const settings = { initialWindowSize: 8 << 20, maxConcurrentStreams: 10_000 };
    const server = http2.createServer({ settings, maxSessionMemory: 1000 });
    await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
    return new InferServer(server);
  }

  get address(): string {
    return `127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  /** Open connections. */
  get connections(): number {
    return this.sockets.size;
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.server.close(resolve));
    for (const socket of this.sockets) socket.destroy();
    await closed;
  }

  private onStream(stream: http2.ServerHttp2Stream): void {
    this.mostInFlight = Math.max(this.mostInFlight, ++this.inFlight);
    stream.on("close", () => this.inFlight--);
    stream.on("error", () => undefined);
    stream.on("data", (chunk: Buffer) => (this.bytes += chunk.length));
    stream.on("end", () => {
      const answer = this.behaviour.answer(this.requests++);
      if (answer === null) return;
      if (this.behaviour.delayMs > 0) setTimeout(() => respond(stream, answer), this.behaviour.delayMs);
      else respond(stream, answer);
    });
  }
}

function respond(stream: http2.ServerHttp2Stream, answer: KnownAnswer | number): void {
  if (stream.destroyed) return;
  if (typeof answer === "number") {
    stream.respond({ ...head, "grpc-status": answer, "grpc-message": "as told" }, { endStream: true });
    return;
  }
  stream.respond(head, { waitForTrailers: true });
  stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
  stream.end(reply(answer));
}

const replies = new Map<KnownAnswer, Buffer>();

function reply(answer: KnownAnswer): Buffer {
  let bytes = replies.get(answer);
  if (bytes === undefined) {
    const raw = encodeClassifications([answer]);
    const output = { name: "probabilities", datatype: "BYTES", shape: [1, 1], raw };
    const message = encodeInferResponse({ modelName: "model", modelVersion: "1", outputs: [output] });
    bytes = Buffer.concat([Buffer.alloc(5), message]);
    bytes.writeUInt32BE(message.length, 1);
    replies.set(answer, bytes);
  }
  return bytes;
}
