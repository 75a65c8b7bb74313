/** Reading side of the protobuf wire format, as far as KServe's inference messages need it. Bounds are checked before every read. */
import { isUtf8 } from "node:buffer";

/** Wire types (https://protobuf.dev/programming-guides/encoding/). */
export const WireType = {
  VARINT: 0,
  FIXED64: 1,
  BYTES: 2,
  GROUP_START: 3,
  GROUP_END: 4,
  FIXED32: 5,
} as const;

/** The bytes are not a message of the expected type. The message names what was read and the byte offset. */
export class WireError extends Error {
  override readonly name = "WireError";
  constructor(
    message: string,
    /** Byte offset in the message. */
    readonly offset: number,
  ) {
    super(`${message} (at byte ${offset})`);
  }
}

/** Thrown when a prefix of a message ends before what is needed; becomes `undefined` in decodeInferRequestHead. */
export class PrefixTooShort extends Error {
  override readonly name = "PrefixTooShort";
}

const maxGroupDepth = 100;
const pow28 = 2 ** 28;
const pow56 = 2 ** 56;

export class WireReader {
  private low28 = 0;
  private middle28 = 0;
  private high8 = 0;

  /**
   * @param bytes the message, or its first bytes
   * @param length length of the whole message; bytes behind `bytes.length` can be skipped but not read
   */
  constructor(
    readonly bytes: Buffer,
    readonly length: number,
    public position: number = 0,
  ) {}

  private need(count: number, end: number): void {
    if (this.position + count > end) throw new WireError("the message is cut off", this.position);
    if (this.position + count > this.bytes.length)
      throw new PrefixTooShort("more bytes of the message are needed");
  }

  private varint(end: number): void {
    let low = 0;
    let middle = 0;
    let high = 0;
    for (let index = 0; index < 10; index++) {
      this.need(1, end);
      const byte = this.bytes[this.position++] as number;
      const bits = byte & 0x7f;
      if (index < 4) low |= bits << (7 * index);
      else if (index < 8) middle |= bits << (7 * (index - 4));
      else if (index === 8) high |= bits;
      else high |= (bits & 1) << 7;
      if (byte < 0x80) {
        this.low28 = low;
        this.middle28 = middle;
        this.high8 = high;
        return;
      }
    }
    throw new WireError("a varint is longer than 10 bytes", this.position - 10);
  }

  /** Unsigned 64-bit varint; exact up to 2^53. */
  uint64(end: number): number {
    this.varint(end);
    return this.low28 + this.middle28 * pow28 + this.high8 * pow56;
  }

  /** Signed 64-bit varint (two's complement); exact from -2^53 to 2^53. */
  int64(end: number): number {
    this.varint(end);
    if (this.high8 < 0x80) return this.low28 + this.middle28 * pow28 + this.high8 * pow56;
    const low = ~this.low28 & (pow28 - 1);
    const middle = ~this.middle28 & (pow28 - 1);
    return -(low + middle * pow28 + (~this.high8 & 0x7f) * pow56 + 1);
  }

  /** Low 32 bits of a varint, signed: int32. */
  int32(end: number): number {
    this.varint(end);
    return this.low28 | ((this.middle28 & 0xf) << 28);
  }

  bool(end: number): boolean {
    this.varint(end);
    return (this.low28 | this.middle28 | this.high8) !== 0;
  }

  float(end: number): number {
    this.need(4, end);
    this.position += 4;
    return this.bytes.readFloatLE(this.position - 4);
  }

  double(end: number): number {
    this.need(8, end);
    this.position += 8;
    return this.bytes.readDoubleLE(this.position - 8);
  }

  /** Field number * 8 + wire type, checked. */
  tag(end: number): number {
    const start = this.position;
    const tag = this.uint64(end);
    if (tag > 0xffffffff || tag < 8) throw new WireError("invalid field number", start);
    const type = tag % 8;
    if (type > 5) throw new WireError(`unknown wire type ${type}`, start);
    return tag;
  }

  /** Reads a length and returns the offset where that many bytes end. They need not have arrived yet. */
  span(end: number): number {
    const start = this.position;
    const length = this.uint64(end);
    if (length > end - this.position) throw new WireError(`a length of ${length} goes past the end`, start);
    return this.position + length;
  }

  string(end: number, field: string): string {
    const stop = this.span(end);
    const start = this.position;
    this.need(stop - start, end);
    this.position = stop;
    if (stop === start) return "";
    if (!isUtf8(this.bytes.subarray(start, stop))) throw new WireError(`${field} is not valid UTF-8`, start);
    return this.bytes.toString("utf8", start, stop);
  }

  /** A view, not a copy. */
  view(end: number): Buffer {
    const stop = this.span(end);
    this.need(stop - this.position, end);
    const view = this.bytes.subarray(this.position, stop);
    this.position = stop;
    return view;
  }

  /** Skips the value of a field that nobody asked for. */
  skip(tag: number, end: number, depth = 0): void {
    switch (tag % 8) {
      case WireType.VARINT:
        this.varint(end);
        return;
      case WireType.FIXED64:
        this.need(8, end);
        this.position += 8;
        return;
      case WireType.BYTES:
        this.position = this.span(end);
        return;
      case WireType.FIXED32:
        this.need(4, end);
        this.position += 4;
        return;
      case WireType.GROUP_START:
        this.skipGroup(tag, end, depth + 1);
        return;
      default:
        throw new WireError("a group ends that never began", this.position);
    }
  }

  private skipGroup(tag: number, end: number, depth: number): void {
    if (depth > maxGroupDepth)
      throw new WireError(`groups are nested deeper than ${maxGroupDepth}`, this.position);
    for (;;) {
      const inner = this.tag(end);
      if (inner % 8 !== WireType.GROUP_END) this.skip(inner, end, depth);
      else if (inner - WireType.GROUP_END === tag - WireType.GROUP_START) return;
      else throw new WireError("a group ends with another field number", this.position);
    }
  }
}
