/** Reads the values of typed tensor contents (InferTensorContents) whose place readTensor has noted. */
import type { InferTensorContents } from "./messages";
import type { ContentsSpan } from "./wire-tensor";
import { WireReader, WireType } from "./wire-reader";

type NumberReader = (end: number) => number;

/** Reads a repeated scalar in either form, packed or one by one. */
function readScalars<T>(
  reader: WireReader,
  tag: number,
  end: number,
  read: (end: number) => T,
  into: T[],
): void {
  if (tag % 8 !== WireType.BYTES) {
    into.push(read(end));
    return;
  }
  const stop = reader.span(end);
  while (reader.position < stop) into.push(read(stop));
}

/**
 * Values of a tensor's typed contents.
 * @param bytes the message that the tensor was decoded from
 * @throws WireError if `bytes` is another message
 */
export function readContents(bytes: Buffer, contents: ContentsSpan): InferTensorContents {
  const values: InferTensorContents = {
    bool_contents: [],
    int_contents: [],
    int64_contents: [],
    uint_contents: [],
    uint64_contents: [],
    fp32_contents: [],
    fp64_contents: [],
    bytes_contents: [],
  };
  for (const { offset, length } of contents.spans) {
    const end = offset + length;
    const reader = new WireReader(bytes, bytes.length, offset);
    const numbers: Readonly<Record<number, readonly [number[], NumberReader, number]>> = {
      2: [values.int_contents, (stop) => reader.int32(stop), WireType.VARINT],
      3: [values.int64_contents, (stop) => reader.int64(stop), WireType.VARINT],
      4: [values.uint_contents, (stop) => reader.int32(stop) >>> 0, WireType.VARINT],
      5: [values.uint64_contents, (stop) => reader.uint64(stop), WireType.VARINT],
      6: [values.fp32_contents, (stop) => reader.float(stop), WireType.FIXED32],
      7: [values.fp64_contents, (stop) => reader.double(stop), WireType.FIXED64],
    };
    while (reader.position < end) {
      const tag = reader.tag(end);
      const wireType = tag % 8;
      const list = numbers[(tag - wireType) / 8];
      if (list !== undefined && (wireType === WireType.BYTES || wireType === list[2]))
        readScalars(reader, tag, end, list[1], list[0]);
      else if (tag === 8 || tag === 10)
        readScalars(reader, tag, end, (stop) => reader.bool(stop), values.bool_contents);
      else if (tag === 66) values.bytes_contents.push(reader.view(end));
      else reader.skip(tag, end);
    }
  }
  return values;
}
