/**
 * Requests as they go over the wire, framed once: HEADERS and all DATA frames of a payload stand in one buffer; for each sending only
 * the stream ids and the deadline are patched, and the buffer goes out in one write. Frames have 16,384 bytes, the largest size
 * that every peer must accept (RFC 9113, 6.5.2); larger ones, where the peer allows them, were measured to save nothing.
 */
import { GRPC_PREFIX_BYTES, writeGrpcPrefix } from "../../http2/grpc-prefix";
import { literal } from "../../http2/literals";
import {
  Flag,
  FRAME_HEADER_BYTES,
  FrameType,
  MIN_MAX_FRAME_BYTES,
  writeFrameHeader,
} from "../../http2/frames";

const inferPath = "/inference.GRPCInferenceService/ModelInfer";
/** grpc-timeout has at most eight digits; they are written with leading zeros so that the length stays. */
const timeoutDigits = 8;
const maxTimeoutMs = 10 ** timeoutDigits - 1;
/**
 * Framed buffers over all payloads, if these are fewer: as many whole requests can lie in full sockets at once. Further ones go out in
 * parts, which costs about a fifth more CPU but no memory.
 */
const FRAMED_BUFFERS = 16;
const streamIdOffset = 5;
/** From one DATA frame of a framed request to the next. */
const FRAME_STRIDE_BYTES = FRAME_HEADER_BYTES + MIN_MAX_FRAME_BYTES;

interface FramedPayload {
  /** Bytes of the prefixed message. */
  readonly messageBytes: number;
  /** First framed buffer. What stands between the frame headers never changes, so views of it can be sent at any time. */
  readonly master: Buffer;
  /** Buffers that no socket holds. */
  readonly spare: Buffer[];
}

export class RequestFrames {
  private readonly payloads: readonly FramedPayload[];
  private readonly headersBytes: number;

  /**
   * @param authority host:port that the server is addressed by
   * @param messages serialized requests, without prefix
   * @param isSecure whether the connection is TLS
   */
  constructor(authority: string, messages: readonly Buffer[], isSecure = false) {
    const block = Buffer.concat([
      // An empty dynamic table, said in every block: legal whatever SETTINGS_HEADER_TABLE_SIZE the peer announces (RFC 7541, 4.2).
      Buffer.from([0x20]),
      Buffer.from([0x83, isSecure ? 0x87 : 0x86]), // :method POST, :scheme https or http
      literal(":path", inferPath),
      literal(":authority", authority),
      literal("te", "trailers"),
      literal("content-type", "application/grpc"),
      literal("user-agent", "triton-slo-loadgen"),
      literal("grpc-timeout", `${"0".repeat(timeoutDigits)}m`),
    ]);
    this.headersBytes = FRAME_HEADER_BYTES + block.length;
    const copies = Math.max(0, Math.ceil(FRAMED_BUFFERS / messages.length) - 1);
    this.payloads = messages.map((message) => {
      const master = frameRequest(block, message);
      const spare = [...Array.from({ length: copies }, () => Buffer.from(master)), master];
      return { messageBytes: GRPC_PREFIX_BYTES + message.length, master, spare };
    });
  }

  /** Bytes that count against the windows: the prefixed message. */
  messageBytes(payloadIndex: number): number {
    return this.payload(payloadIndex).messageBytes;
  }

  /**
   * The whole request, ready to be written; give it back with `release` when the socket has taken it. Undefined when sockets hold all
   * buffers of this payload: then send `headers` and `data`.
   */
  acquire(payloadIndex: number, streamId: number, timeoutMs: number): Buffer | undefined {
    const buffer = this.payload(payloadIndex).spare.pop();
    if (buffer === undefined) return undefined;
    this.patchHeaders(buffer, streamId, timeoutMs);
    for (let at = this.headersBytes + streamIdOffset; at < buffer.length; at += FRAME_STRIDE_BYTES)
      buffer.writeUInt32BE(streamId, at);
    return buffer;
  }

  release(payloadIndex: number, buffer: Buffer): void {
    this.payload(payloadIndex).spare.push(buffer);
  }

  /** Only the HEADERS frame, in a buffer of its own: for requests that go out in parts. */
  headers(payloadIndex: number, streamId: number, timeoutMs: number): Buffer {
    const buffer = Buffer.from(this.payload(payloadIndex).master.subarray(0, this.headersBytes));
    this.patchHeaders(buffer, streamId, timeoutMs);
    return buffer;
  }

  /**
   * Calls `write` with DATA frames, header and content apart, for bytes [from, to) of the prefixed message. The last byte of the
   * message ends the stream. The content is a view that nobody changes.
   */
  data(
    payloadIndex: number,
    streamId: number,
    from: number,
    to: number,
    write: (part: Buffer) => void,
  ): void {
    const { master, messageBytes } = this.payload(payloadIndex);
    const frames = Math.floor((to - 1) / MIN_MAX_FRAME_BYTES) - Math.floor(from / MIN_MAX_FRAME_BYTES) + 1;
    const headers = Buffer.allocUnsafe(frames * FRAME_HEADER_BYTES);
    let headerAt = 0;
    for (let at = from; at < to;) {
      const frame = Math.floor(at / MIN_MAX_FRAME_BYTES);
      const end = Math.min(to, (frame + 1) * MIN_MAX_FRAME_BYTES);
      const flags = end === messageBytes ? Flag.END_STREAM : 0;
      const next = writeFrameHeader(headers, headerAt, end - at, FrameType.DATA, flags, streamId);
      write(headers.subarray(headerAt, next));
      const shift = this.headersBytes + (frame + 1) * FRAME_HEADER_BYTES;
      write(master.subarray(at + shift, end + shift));
      headerAt = next;
      at = end;
    }
  }

  private patchHeaders(buffer: Buffer, streamId: number, timeoutMs: number): void {
    buffer.writeUInt32BE(streamId, streamIdOffset);
    let rest = Math.min(maxTimeoutMs, Math.max(1, Math.ceil(timeoutMs)));
    // The digits stand right before the unit, which is the block's last byte.
    const unitAt = this.headersBytes - 1;
    for (let at = unitAt - 1; at >= unitAt - timeoutDigits; at--) {
      buffer[at] = 0x30 + (rest % 10);
      rest = Math.floor(rest / 10);
    }
  }

  private payload(index: number): FramedPayload {
    const payload = this.payloads[index];
    if (payload === undefined)
      throw new RangeError(`there is no payload ${index}: the pool has ${this.payloads.length}`);
    return payload;
  }
}

function frameRequest(headerBlock: Buffer, message: Buffer): Buffer {
  const messageBytes = GRPC_PREFIX_BYTES + message.length;
  const frames = Math.ceil(messageBytes / MIN_MAX_FRAME_BYTES);
  const buffer = Buffer.allocUnsafe(
    FRAME_HEADER_BYTES + headerBlock.length + frames * FRAME_HEADER_BYTES + messageBytes,
  );
  let at = writeFrameHeader(buffer, 0, headerBlock.length, FrameType.HEADERS, Flag.END_HEADERS, 0);
  at += headerBlock.copy(buffer, at);
  for (let from = 0; from < messageBytes; from += MIN_MAX_FRAME_BYTES) {
    const to = Math.min(messageBytes, from + MIN_MAX_FRAME_BYTES);
    const flags = to === messageBytes ? Flag.END_STREAM : 0;
    at = writeFrameHeader(buffer, at, to - from, FrameType.DATA, flags, 0);
    if (from === 0) at = writeGrpcPrefix(buffer, at, message.length);
    at += message.copy(buffer, at, Math.max(0, from - GRPC_PREFIX_BYTES), to - GRPC_PREFIX_BYTES);
  }
  return buffer;
}
