import { ConnectionError, ErrorCode, Flag, FrameType, FRAME_HEADER_BYTES, PREFACE } from "./frames";

/** Takes what the parser finds. Every method may throw ConnectionError; the parser must not be used after that. */
export interface FrameSink {
  /** A whole frame of any type but DATA. `payload` is only valid during the call. */
  frame(type: number, flags: number, streamId: number, payload: Buffer): void;
  /** A DATA frame begins; `frameBytes` is its payload with padding, as flow control counts it. */
  dataStart(streamId: number, frameBytes: number): void;
  /** A part of its content: source[start..end). Only valid during the call. */
  dataPart(source: Buffer, start: number, end: number): void;
  dataEnd(endStream: boolean): void;
}

export interface ParserLimits {
  /** Largest frame payload that was announced to the peer, bytes. */
  readonly maxFrameBytes: number;
  /** Largest payload of a frame other than DATA, bytes: these are kept until they are complete. */
  readonly maxControlFrameBytes: number;
  /** Whether the byte stream starts with the client's connection preface. */
  readonly expectPreface: boolean;
}

/**
 * Cuts the byte stream of a peer into frames. The content of DATA frames is handed on as it arrives, in place, so that a large
 * message is copied once only (into its final buffer, by the sink); all other frames are collected until they are complete.
 */
export class FrameParser {
  private mode: "preface" | "header" | "control" | "pad-length" | "data" | "padding";
  private prefaceSeen = 0;
  private readonly header = Buffer.alloc(FRAME_HEADER_BYTES);
  private headerBytes = 0;
  private type = 0;
  private flags = 0;
  private streamId = 0;
  /** Bytes still to come: of the control payload, or of the DATA content. */
  private remaining = 0;
  private paddingRemaining = 0;
  private control: Buffer | null = null;
  private controlBytes = 0;

  constructor(
    private readonly sink: FrameSink,
    private readonly limits: ParserLimits,
  ) {
    this.mode = limits.expectPreface ? "preface" : "header";
  }

  /** @throws ConnectionError when the peer breaks the framing, or from the sink. */
  push(chunk: Buffer): void {
    let at = 0;
    while (at < chunk.length) at = this.step(chunk, at);
  }

  private step(chunk: Buffer, at: number): number {
    switch (this.mode) {
      case "preface":
        return this.preface(chunk, at);
      case "header":
        return this.frameHeader(chunk, at);
      case "control":
        return this.controlPayload(chunk, at);
      case "pad-length":
        return this.padLength(chunk, at);
      case "data":
        return this.data(chunk, at);
      case "padding":
        return this.padding(chunk, at);
    }
  }

  private preface(chunk: Buffer, at: number): number {
    const end = Math.min(chunk.length, at + PREFACE.length - this.prefaceSeen);
    for (let i = at; i < end; i++) {
      if (chunk[i] !== PREFACE[this.prefaceSeen++]) {
        throw new ConnectionError(
          ErrorCode.PROTOCOL_ERROR,
          "The connection does not start with the HTTP/2 preface.",
        );
      }
    }
    if (this.prefaceSeen === PREFACE.length) this.mode = "header";
    return end;
  }

  private frameHeader(chunk: Buffer, at: number): number {
    let header = chunk;
    let headerAt = at;
    let next = at + FRAME_HEADER_BYTES;
    if (this.headerBytes > 0 || next > chunk.length) {
      next = Math.min(chunk.length, at + FRAME_HEADER_BYTES - this.headerBytes);
      this.headerBytes += chunk.copy(this.header, this.headerBytes, at, next);
      if (this.headerBytes < FRAME_HEADER_BYTES) return next;
      this.headerBytes = 0;
      header = this.header;
      headerAt = 0;
    }
    this.startFrame(
      header.readUIntBE(headerAt, 3),
      header[headerAt + 3]!,
      header[headerAt + 4]!,
      header.readUInt32BE(headerAt + 5) & 0x7fffffff,
    );
    return next;
  }

  private startFrame(payloadBytes: number, type: number, flags: number, streamId: number): void {
    if (payloadBytes > this.limits.maxFrameBytes) {
      throw new ConnectionError(
        ErrorCode.FRAME_SIZE_ERROR,
        `A frame of ${payloadBytes} bytes is over SETTINGS_MAX_FRAME_SIZE.`,
      );
    }
    this.type = type;
    this.flags = flags;
    this.streamId = streamId;
    this.remaining = payloadBytes;
    if (type === FrameType.DATA) {
      this.sink.dataStart(streamId, payloadBytes);
      this.paddingRemaining = 0;
      if ((flags & Flag.PADDED) !== 0) {
        if (payloadBytes === 0)
          throw new ConnectionError(ErrorCode.FRAME_SIZE_ERROR, "A padded DATA frame has no pad length.");
        this.mode = "pad-length";
      } else if (payloadBytes === 0) {
        this.finishData();
      } else {
        this.mode = "data";
      }
      return;
    }
    if (payloadBytes > this.limits.maxControlFrameBytes) {
      throw new ConnectionError(
        ErrorCode.ENHANCE_YOUR_CALM,
        `A frame of type ${type} has ${payloadBytes} bytes; that is too much.`,
      );
    }
    if (payloadBytes === 0) {
      this.mode = "header";
      this.sink.frame(type, flags, streamId, Buffer.alloc(0));
    } else {
      this.mode = "control";
    }
  }

  private controlPayload(chunk: Buffer, at: number): number {
    const available = chunk.length - at;
    if (this.control === null && available >= this.remaining) {
      const end = at + this.remaining;
      this.mode = "header";
      this.sink.frame(this.type, this.flags, this.streamId, chunk.subarray(at, end));
      return end;
    }
    if (this.control === null) {
      this.control = Buffer.allocUnsafe(this.remaining);
      this.controlBytes = 0;
    }
    const end = Math.min(chunk.length, at + this.remaining);
    this.controlBytes += chunk.copy(this.control, this.controlBytes, at, end);
    this.remaining -= end - at;
    if (this.remaining === 0) {
      const payload = this.control;
      this.control = null;
      this.mode = "header";
      this.sink.frame(this.type, this.flags, this.streamId, payload);
    }
    return end;
  }

  private padLength(chunk: Buffer, at: number): number {
    this.paddingRemaining = chunk[at]!;
    this.remaining -= 1 + this.paddingRemaining;
    if (this.remaining < 0)
      throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, "A DATA frame has more padding than payload.");
    if (this.remaining > 0) this.mode = "data";
    else this.afterContent();
    return at + 1;
  }

  private data(chunk: Buffer, at: number): number {
    const end = Math.min(chunk.length, at + this.remaining);
    this.remaining -= end - at;
    this.sink.dataPart(chunk, at, end);
    if (this.remaining === 0) this.afterContent();
    return end;
  }

  private padding(chunk: Buffer, at: number): number {
    const end = Math.min(chunk.length, at + this.paddingRemaining);
    this.paddingRemaining -= end - at;
    if (this.paddingRemaining === 0) this.finishData();
    return end;
  }

  private afterContent(): void {
    if (this.paddingRemaining > 0) this.mode = "padding";
    else this.finishData();
  }

  private finishData(): void {
    this.mode = "header";
    this.sink.dataEnd((this.flags & Flag.END_STREAM) !== 0);
  }
}
