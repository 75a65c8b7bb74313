/** A server that speaks HTTP/2 frame by frame as a script says: to send what no well-behaved server would. */
import { createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { FrameParser } from "../../../http2/frame-parser";
import { Flag, frame, FrameType, settingsPayload, SettingId, uint32 } from "../../../http2/frames";
import { literal } from "../../../http2/literals";

export const okHead = Buffer.concat([Buffer.from([0x88]), literal("content-type", "application/grpc")]);
export const okTrailers = literal("grpc-status", "0");

/** A message with gRPC's prefix. */
export function prefixed(content: Buffer): Buffer {
  return Buffer.concat([Buffer.from([0]), uint32(content.length), content]);
}

export class RawConnection {
  /** Called for every complete request. */
  onRequest: (streamId: number) => void = (streamId) => this.reply(streamId);
  /** Called for every frame but DATA, before the standard answer. */
  onFrame: (type: number, flags: number, streamId: number, payload: Buffer) => void = () => undefined;
  /** Called for every piece of a request's content, which is only valid during the call. */
  onContent: (streamId: number, part: Buffer) => void = () => undefined;
  readonly requests: number[] = [];
  private dataStream = 0;

  constructor(readonly socket: Socket) {
    const parser = new FrameParser(
      {
        frame: (type, flags, streamId, payload) => {
          this.onFrame(type, flags, streamId, payload);
          if (type === FrameType.SETTINGS && (flags & Flag.ACK) === 0)
            this.send(FrameType.SETTINGS, Flag.ACK, 0);
          if (type === FrameType.PING && (flags & Flag.ACK) === 0)
            this.send(FrameType.PING, Flag.ACK, 0, payload);
        },
        dataStart: (streamId) => (this.dataStream = streamId),
        dataPart: (source, start, end) => this.onContent(this.dataStream, source.subarray(start, end)),
        dataEnd: (endStream) => {
          if (!endStream) return;
          this.requests.push(this.dataStream);
          this.onRequest(this.dataStream);
        },
      },
      { maxFrameBytes: 16_384, maxControlFrameBytes: 65_536, expectPreface: true },
    );
    socket.on("error", () => undefined);
    socket.on("data", (chunk: Buffer) => parser.push(chunk));
  }

  send(type: number, flags: number, streamId: number, payload: Uint8Array = Buffer.alloc(0)): void {
    if (this.socket.writable) this.socket.write(frame(type, flags, streamId, payload));
  }

  /** Settings and a connection window that take any request at once. */
  greet(): void {
    const settings = settingsPayload([[SettingId.INITIAL_WINDOW_SIZE, 8 << 20]]);
    this.send(FrameType.SETTINGS, 0, 0, settings);
    this.send(FrameType.WINDOW_UPDATE, 0, 0, uint32(64 << 20));
  }

  /** A good reply. */
  reply(streamId: number, content = Buffer.from("fine")): void {
    this.send(FrameType.HEADERS, Flag.END_HEADERS, streamId, okHead);
    this.send(FrameType.DATA, 0, streamId, prefixed(content));
    this.send(FrameType.HEADERS, Flag.END_HEADERS | Flag.END_STREAM, streamId, okTrailers);
  }

  goAway(lastStreamId: number, code: number, detail = ""): void {
    this.send(
      FrameType.GOAWAY,
      0,
      0,
      Buffer.concat([uint32(lastStreamId), uint32(code), Buffer.from(detail)]),
    );
  }
}

export class RawServer {
  readonly connections: RawConnection[] = [];

  private constructor(private readonly server: Server) {}

  /** @param script sets up the n-th connection, n from 0; it has to call `greet` itself */
  static async listen(script: (connection: RawConnection, n: number) => void): Promise<RawServer> {
    const server = createServer();
    const raw = new RawServer(server);
    server.on("connection", (socket) => {
      const connection = new RawConnection(socket);
      raw.connections.push(connection);
      script(connection, raw.connections.length - 1);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return raw;
  }

  get address(): string {
    return `127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    for (const { socket } of this.connections) socket.destroy();
    await new Promise((resolve) => this.server.close(resolve));
  }
}
