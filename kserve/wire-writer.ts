/** Writing side of the protobuf wire format: parts are collected as Buffers and joined once, so a payload is copied only once. */

/** Bytes of a non-negative or negative integer as a varint (negative: ten bytes, two's complement). */
export function varint(value: number): Buffer {
  if (!Number.isSafeInteger(value))
    throw new RangeError(`cannot encode ${value}: not an integer within +-2^53`);
  const bytes: number[] = [];
  if (value < 0) {
    let rest = BigInt.asUintN(64, BigInt(value));
    for (; rest > 0x7fn; rest >>= 7n) bytes.push(Number(rest & 0x7fn) | 0x80);
    bytes.push(Number(rest));
  } else {
    let rest = value;
    for (; rest > 0x7f; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 0x80);
    bytes.push(rest);
  }
  return Buffer.from(bytes);
}

export class WireWriter {
  private readonly parts: Buffer[] = [];
  private size = 0;

  private push(part: Buffer): this {
    this.parts.push(part);
    this.size += part.length;
    return this;
  }

  private tag(field: number, wireType: number): this {
    return this.push(varint(field * 8 + wireType));
  }

  /** A varint field, also when 0: members of a oneof must be written. */
  integer(field: number, value: number): this {
    return this.tag(field, 0).push(varint(value));
  }

  double(field: number, value: number): this {
    const bytes = Buffer.allocUnsafe(8);
    bytes.writeDoubleLE(value);
    return this.tag(field, 1).push(bytes);
  }

  bytes(field: number, value: Buffer): this {
    return this.tag(field, 2).push(varint(value.length)).push(value);
  }

  text(field: number, value: string): this {
    return this.bytes(field, Buffer.from(value, "utf8"));
  }

  /** A singular string: left out when empty, as proto3 does. */
  optionalText(field: number, value: string | undefined): this {
    return value === undefined || value === "" ? this : this.text(field, value);
  }

  /** Packed repeated integers; left out when empty. */
  packedIntegers(field: number, values: readonly number[]): this {
    return values.length === 0 ? this : this.bytes(field, Buffer.concat(values.map(varint)));
  }

  message(field: number, write: (writer: WireWriter) => void): this {
    const inner = new WireWriter();
    write(inner);
    this.tag(field, 2).push(varint(inner.size));
    for (const part of inner.parts) this.push(part);
    return this;
  }

  finish(): Buffer {
    return Buffer.concat(this.parts, this.size);
  }
}
