/** A bare HTTP/2 peer for tests: sends any bytes, keeps what comes back. */
import { connect, type Socket } from "node:net";
import { onTestFinished } from "vitest";
import { FrameParser, type FrameSink } from "../../http2/frame-parser";
import { Flag, frame, FrameType, PREFACE } from "../../http2/frames";
import { literal } from "../../http2/literals";

export interface ReceivedFrame {
  readonly type: number;
  readonly flags: number;
  readonly streamId: number;
  readonly payload: Buffer;
}

export class BarePeer implements FrameSink {
  readonly frames: ReceivedFrame[] = [];
  closed = false;
  private data: { streamId: number; parts: Buffer[] } = { streamId: 0, parts: [] };
  private readonly parser = new FrameParser(this, {
    maxFrameBytes: 16_777_215,
    maxControlFrameBytes: 16_777_215,
    expectPreface: false,
  });

  private constructor(private readonly socket: Socket) {
    socket.on("data", (chunk: Buffer) => this.parser.push(chunk));
    socket.on("error", () => undefined);
    socket.on("close", () => (this.closed = true));
  }

  /** Connects and sends `first`; default: the preface and empty SETTINGS. */
  static async connect(port: number, first?: Buffer): Promise<BarePeer> {
    const socket = connect({ port, host: "127.0.0.1", noDelay: true });
    onTestFinished(() => void socket.destroy());
    await new Promise((resolve, reject) => socket.once("connect", resolve).once("error", reject));
    const peer = new BarePeer(socket);
    peer.send(first ?? Buffer.concat([PREFACE, frame(FrameType.SETTINGS, 0, 0, Buffer.alloc(0))]));
    return peer;
  }

  send(bytes: Buffer): void {
    this.socket.write(bytes);
  }

  /** Reads nothing more, so that what the server sends piles up. */
  pause(): void {
    this.socket.pause();
  }

  destroy(): void {
    this.socket.destroy();
  }

  /** The first frame, received before or from now on, that matches; rejects after five seconds or when the connection closes without it. */
  async next(type: number, matches: (frame: ReceivedFrame) => boolean = () => true): Promise<ReceivedFrame> {
    const until = performance.now() + 5000;
    for (;;) {
      const found = this.frames.find((received) => received.type === type && matches(received));
      if (found !== undefined) return found;
      if (this.closed || performance.now() > until) {
        const seen = this.frames.map((received) => received.type).join(",");
        throw new Error(`no frame of type ${type} came (closed: ${this.closed}; types: ${seen})`);
      }
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
  }

  /** Error code of the GOAWAY that comes. */
  async goAway(): Promise<number> {
    return (await this.next(FrameType.GOAWAY)).payload.readUInt32BE(4);
  }

  /** Error code of the RST_STREAM that comes for a stream. */
  async reset(streamId: number): Promise<number> {
    return (
      await this.next(FrameType.RST_STREAM, (received) => received.streamId === streamId)
    ).payload.readUInt32BE(0);
  }

  /** Bytes of DATA received for a stream so far. */
  dataOf(streamId: number): Buffer {
    const own = this.frames.filter(
      (received) => received.type === FrameType.DATA && received.streamId === streamId,
    );
    return Buffer.concat(own.map((received) => received.payload));
  }

  frame(type: number, flags: number, streamId: number, payload: Buffer): void {
    this.frames.push({ type, flags, streamId, payload: Buffer.from(payload) });
  }

  dataStart(streamId: number): void {
    this.data = { streamId, parts: [] };
  }

  dataPart(source: Buffer, start: number, end: number): void {
    this.data.parts.push(Buffer.from(source.subarray(start, end)));
  }

  dataEnd(endStream: boolean): void {
    const { streamId, parts } = this.data;
    const flags = endStream ? Flag.END_STREAM : 0;
    this.frames.push({ type: FrameType.DATA, flags, streamId, payload: Buffer.concat(parts) });
  }
}

/** Header block of a gRPC request. */
export function requestBlock(path: string, extra: readonly (readonly [string, string])[] = []): Buffer {
  return Buffer.concat(
    (
      [
        [":method", "POST"],
        [":scheme", "http"],
        [":path", path],
        [":authority", "test"],
        ["content-type", "application/grpc"],
        ["te", "trailers"],
        ...extra,
      ] as const
    ).map(([name, value]) => literal(name, value)),
  );
}

export function headers(streamId: number, block: Buffer, flags: number = Flag.END_HEADERS): Buffer {
  return frame(FrameType.HEADERS, flags, streamId, block);
}

export function data(streamId: number, payload: Buffer, flags = 0): Buffer {
  return frame(FrameType.DATA, flags, streamId, payload);
}

/** A gRPC message with its prefix. */
export function prefixed(message: Buffer, flag = 0): Buffer {
  const prefix = Buffer.alloc(5);
  prefix[0] = flag;
  prefix.writeUInt32BE(message.length, 1);
  return Buffer.concat([prefix, message]);
}
