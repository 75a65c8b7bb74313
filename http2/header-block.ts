import { ConnectionError, ErrorCode, Flag, FrameType } from "./frames";

export interface HeaderBlock {
  readonly block: Buffer;
  readonly endStream: boolean;
}

/** Largest header block over all its frames, bytes. */
const MAX_BLOCK_BYTES = 65_536;

/** Joins HEADERS and its CONTINUATION frames into one block; takes padding and priority off. */
export class HeaderBlockCollector {
  /** Stream whose block is not complete; 0: none. */
  private openStreamId = 0;
  private endStream = false;
  private parts: Buffer[] = [];
  private bytes = 0;

  /**
   * While a block is open, nothing but its CONTINUATION may come, and no CONTINUATION otherwise.
   * @throws ConnectionError PROTOCOL_ERROR
   */
  check(type: number, streamId: number): void {
    const continues = type === FrameType.CONTINUATION;
    if (continues !== (this.openStreamId !== 0) || (continues && streamId !== this.openStreamId)) {
      throw new ConnectionError(
        ErrorCode.PROTOCOL_ERROR,
        "A header block is interrupted, or continued where none is open.",
      );
    }
  }

  /** Adds a HEADERS or CONTINUATION frame; returns the block when it is complete. `payload` may be reused by the caller afterwards. */
  add(type: number, flags: number, streamId: number, payload: Buffer): HeaderBlock | null {
    let part = payload;
    if (type === FrameType.HEADERS) {
      if (streamId === 0)
        throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, "A HEADERS frame names no stream.");
      this.endStream = (flags & Flag.END_STREAM) !== 0;
      part = withoutPadding(payload, flags);
    }
    const complete = (flags & Flag.END_HEADERS) !== 0;
    if (complete && this.parts.length === 0) {
      this.openStreamId = 0;
      return { block: part, endStream: this.endStream };
    }
    this.bytes += part.length;
    if (this.bytes > MAX_BLOCK_BYTES) {
      throw new ConnectionError(
        ErrorCode.ENHANCE_YOUR_CALM,
        `A header block is over ${MAX_BLOCK_BYTES} bytes.`,
      );
    }
    // An empty part adds nothing, and a flood of them must not add up.
    if (part.length > 0) this.parts.push(Buffer.from(part));
    this.openStreamId = complete ? 0 : streamId;
    if (!complete) return null;
    const block = Buffer.concat(this.parts);
    this.parts = [];
    this.bytes = 0;
    return { block, endStream: this.endStream };
  }
}

function withoutPadding(payload: Buffer, flags: number): Buffer {
  const padded = (flags & Flag.PADDED) !== 0;
  const start = (padded ? 1 : 0) + ((flags & Flag.PRIORITY) !== 0 ? 5 : 0);
  const end = payload.length - (padded ? (payload[0] ?? 0) : 0);
  if (payload.length < start)
    throw new ConnectionError(ErrorCode.FRAME_SIZE_ERROR, "A HEADERS frame is too short.");
  if (end < start)
    throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, "A HEADERS frame has more padding than payload.");
  return payload.subarray(start, end);
}
