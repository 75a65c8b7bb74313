import type { Socket } from "node:net";
import { FrameParser, type FrameSink } from "../../http2/frame-parser";
import {
  ConnectionError,
  ErrorCode,
  Flag,
  frame,
  FrameType,
  MAX_WINDOW_BYTES,
  uint32,
} from "../../http2/frames";
import { checkFrameRules } from "../../http2/frame-rules";
import { HeaderBlockCollector } from "../../http2/header-block";
import { HeaderDecoder, type HeaderFields } from "../../http2/header-decoder";
import { readIntoOneBuffer } from "./accept";
import { Output } from "./output";
import { type ConnectionOptions, openingFrames } from "./connection-options";
import { HEADER_TABLE_BYTES, readRequestHead } from "./request-head";
import { SendFlow } from "./send-flow";
import { ServerStream, type StreamOwner, type StreamReceiver } from "./stream";

/** Answers the requests of a connection. */
export interface RequestHandler {
  /** A request's headers are there. Returns who takes its body. Must not throw. */
  request(stream: ServerStream, headers: HeaderFields): StreamReceiver;
}

const MAX_CONTROL_FRAME_BYTES = 65_536;
/** A client that was told to go and does not close its side is cut off after this long, milliseconds. */
const LINGER_MS = 1000;

/**
 * One HTTP/2 connection of a client (RFC 9113, cleartext with prior knowledge): frames, settings and flow control. Everything that
 * the client does wrong ends in RST_STREAM or GOAWAY with the proper code.
 */
export class ServerConnection implements FrameSink, StreamOwner {
  private readonly parser: FrameParser;
  private readonly decoder = new HeaderDecoder(HEADER_TABLE_BYTES, readRequestHead);
  private readonly headerBlock = new HeaderBlockCollector();
  private readonly streams = new Map<number, ServerStream>();
  readonly flow = new SendFlow(this.streams);
  private lastStreamId = 0;
  private receiveWindow: number;
  /** Stream of the DATA frame that is being read; null when its content is to be dropped. */
  private dataStream: ServerStream | null = null;
  private settingsSeen = false;
  private draining = false;
  private closed = false;
  private readonly socket: Socket;
  private readonly output: Output;

  constructor(
    /** As the server accepted it, paused. */
    accepted: Socket,
    private readonly handler: RequestHandler,
    private readonly options: ConnectionOptions,
    /** Called once, when the connection is gone. */
    private readonly onClosed: (connection: ServerConnection) => void,
  ) {
    const socket = readIntoOneBuffer(accepted, (chunk) => this.receive(chunk));
    this.socket = socket;
    this.output = new Output(socket);
    this.receiveWindow = options.connectionWindowBytes;
    this.parser = new FrameParser(this, {
      maxFrameBytes: options.maxFrameBytes,
      maxControlFrameBytes: MAX_CONTROL_FRAME_BYTES,
      expectPreface: true,
    });
    socket.setNoDelay(true);
    socket.on("end", () => socket.end());
    socket.on("error", () => socket.destroy());
    socket.on("close", () => this.finish());
    this.write(openingFrames(options));
  }

  /** Takes no new requests (GOAWAY), answers the open ones, then closes. */
  drain(): void {
    if (this.draining || this.closed) return;
    this.draining = true;
    this.write(this.goAway(ErrorCode.NO_ERROR, ""));
    this.closeIfDrained();
  }

  /** Closes at once. */
  destroy(): void {
    this.socket.destroy();
  }

  frame(type: number, flags: number, streamId: number, payload: Buffer): void {
    if (!this.settingsSeen && type !== FrameType.SETTINGS) {
      throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, "The first frame is not SETTINGS.");
    }
    this.headerBlock.check(type, streamId);
    checkFrameRules(type, flags, streamId, payload.length);
    switch (type) {
      case FrameType.HEADERS:
      case FrameType.CONTINUATION: {
        const complete = this.headerBlock.add(type, flags, streamId, payload);
        if (complete !== null) this.headers(streamId, complete.block, complete.endStream);
        return;
      }
      case FrameType.SETTINGS:
        return this.settings(flags, payload);
      case FrameType.WINDOW_UPDATE:
        return this.windowUpdate(streamId, payload);
      case FrameType.PING:
        if ((flags & Flag.ACK) === 0) this.write(frame(FrameType.PING, Flag.ACK, 0, payload));
        return;
      case FrameType.RST_STREAM:
        return this.resetByPeer(streamId, payload);
      default:
        return; // GOAWAY, PRIORITY and unknown types (RFC 9113, 4.1) ask for nothing.
    }
  }

  dataStart(streamId: number, frameBytes: number): void {
    this.expect(this.settingsSeen, ErrorCode.PROTOCOL_ERROR, "The first frame is not SETTINGS.");
    this.headerBlock.check(FrameType.DATA, streamId);
    this.expectKnown(streamId, "DATA");
    this.receiveWindow -= frameBytes;
    this.expect(
      this.receiveWindow >= 0,
      ErrorCode.FLOW_CONTROL_ERROR,
      "The client overran the connection's window.",
    );
    const { connectionWindowBytes } = this.options;
    if (this.receiveWindow < connectionWindowBytes / 2) {
      this.write(frame(FrameType.WINDOW_UPDATE, 0, 0, uint32(connectionWindowBytes - this.receiveWindow)));
      this.receiveWindow = connectionWindowBytes;
    }
    // DATA of a stream that was reset or answered may still be under way: dropped.
    const stream = this.streams.get(streamId) ?? null;
    this.dataStream = null;
    if (stream === null) return;
    if (stream.remoteClosed) return this.abortStream(stream, ErrorCode.STREAM_CLOSED);
    stream.receiveWindow -= frameBytes;
    if (stream.receiveWindow < 0) return this.abortStream(stream, ErrorCode.FLOW_CONTROL_ERROR);
    this.dataStream = stream;
  }

  dataPart(source: Buffer, start: number, end: number): void {
    this.dataStream?.receiver?.data(source, start, end);
  }

  dataEnd(endStream: boolean): void {
    const stream = this.dataStream;
    // The receiver may have answered and so ended the stream while it took the data.
    if (stream === null || !this.streams.has(stream.id)) return;
    if (endStream) {
      stream.remoteClosed = true;
      stream.receiver?.end();
    } else if (stream.receiveWindow < this.options.streamWindowBytes / 2) {
      this.write(
        frame(
          FrameType.WINDOW_UPDATE,
          0,
          stream.id,
          uint32(this.options.streamWindowBytes - stream.receiveWindow),
        ),
      );
      stream.receiveWindow = this.options.streamWindowBytes;
    }
  }

  write(bytes: Buffer): void {
    if (!this.closed) this.output.write(bytes);
  }

  responseWritten(stream: ServerStream): void {
    // The client need not go on sending a request that is answered already (RFC 9113, 8.1).
    if (!stream.remoteClosed)
      this.write(frame(FrameType.RST_STREAM, 0, stream.id, uint32(ErrorCode.NO_ERROR)));
    this.forget(stream);
  }

  private resetStream(stream: ServerStream, code: number): void {
    if (!this.streams.has(stream.id)) return;
    this.write(frame(FrameType.RST_STREAM, 0, stream.id, uint32(code)));
    this.forget(stream);
  }

  private receive(chunk: Buffer): void {
    if (this.closed) return;
    try {
      this.parser.push(chunk);
    } catch (error) {
      if (!(error instanceof ConnectionError)) throw error;
      this.write(this.goAway(error.code, error.message));
      this.closeSocket();
      this.finish();
    }
  }

  private headers(streamId: number, block: Buffer, endStream: boolean): void {
    const { fields, wellFormed } = this.decoder.decode(block);
    this.expect(
      (streamId & 1) === 1,
      ErrorCode.PROTOCOL_ERROR,
      `Stream ${streamId} is not a client's stream.`,
    );
    if (streamId <= this.lastStreamId) return this.trailers(streamId, endStream);
    this.lastStreamId = streamId;
    const stream = new ServerStream(
      streamId,
      this,
      this.options.streamWindowBytes,
      this.flow.initialStreamWindow,
    );
    this.streams.set(streamId, stream);
    if (this.draining || this.streams.size > this.options.maxConcurrentStreams) {
      return this.resetStream(stream, ErrorCode.REFUSED_STREAM);
    }
    if (!wellFormed) return this.resetStream(stream, ErrorCode.PROTOCOL_ERROR);
    stream.remoteClosed = endStream;
    stream.receiver = this.handler.request(stream, fields);
    if (endStream && this.streams.has(streamId)) stream.receiver.end();
  }

  private trailers(streamId: number, endStream: boolean): void {
    const stream = this.streams.get(streamId);
    if (stream === undefined) return;
    if (stream.remoteClosed) return this.abortStream(stream, ErrorCode.STREAM_CLOSED);
    if (!endStream) return this.abortStream(stream, ErrorCode.PROTOCOL_ERROR);
    stream.remoteClosed = true;
    stream.receiver?.end();
  }

  private settings(flags: number, payload: Buffer): void {
    if ((flags & Flag.ACK) !== 0) return;
    this.settingsSeen = true;
    this.flow.applySettings(payload);
    this.write(frame(FrameType.SETTINGS, Flag.ACK, 0, Buffer.alloc(0)));
  }

  private windowUpdate(streamId: number, payload: Buffer): void {
    const increment = payload.readUInt32BE(0) & 0x7fffffff;
    if (streamId === 0) return this.flow.grow(increment);
    this.expectKnown(streamId, "WINDOW_UPDATE");
    const stream = this.streams.get(streamId);
    if (stream === undefined) return;
    stream.sendWindow += increment;
    if (increment === 0) return this.abortStream(stream, ErrorCode.PROTOCOL_ERROR);
    if (stream.sendWindow > MAX_WINDOW_BYTES) return this.abortStream(stream, ErrorCode.FLOW_CONTROL_ERROR);
    stream.pump();
  }

  private resetByPeer(streamId: number, payload: Buffer): void {
    this.expectKnown(streamId, "RST_STREAM");
    const stream = this.streams.get(streamId);
    if (stream === undefined) return;
    this.forget(stream);
    this.tellReset(stream, payload.readUInt32BE(0));
  }

  /** The client broke the rules on one stream: it is told, and so is the receiver. */
  private abortStream(stream: ServerStream, code: number): void {
    this.resetStream(stream, code);
    this.tellReset(stream, code);
  }

  private tellReset(stream: ServerStream, code: number): void {
    if (stream.answered) return;
    stream.answered = true;
    stream.receiver?.reset(code);
  }

  private forget(stream: ServerStream): void {
    this.streams.delete(stream.id);
    if (this.draining) this.closeIfDrained();
  }

  private closeIfDrained(): void {
    if (this.streams.size > 0) return;
    this.closeSocket();
  }

  private closeSocket(): void {
    this.output.flush();
    this.socket.end();
    setTimeout(() => this.socket.destroy(), LINGER_MS).unref();
  }

  private goAway(code: number, message: string): Buffer {
    return frame(
      FrameType.GOAWAY,
      0,
      0,
      Buffer.concat([uint32(this.lastStreamId), uint32(code), Buffer.from(message)]),
    );
  }

  private finish(): void {
    if (this.closed) return;
    this.closed = true;
    const open = [...this.streams.values()];
    this.streams.clear();
    for (const stream of open) this.tellReset(stream, ErrorCode.CANCEL);
    this.onClosed(this);
  }

  private expectKnown(streamId: number, what: string): void {
    const known = streamId !== 0 && (streamId & 1) === 1 && streamId <= this.lastStreamId;
    this.expect(
      known,
      ErrorCode.PROTOCOL_ERROR,
      `A ${what} frame is for stream ${streamId}, which was never opened.`,
    );
  }

  private expect(condition: boolean, code: number, message: string): void {
    if (!condition) throw new ConnectionError(code, message);
  }
}
