/** Parts that requests and responses share: parameters, tensor headers and typed contents. */
import { WireError, WireType, type WireReader } from "./wire-reader";
import type { WireWriter } from "./wire-writer";

/** Value of an InferParameter, with the member of the oneof that carried it: Triton checks the kind. */
export type InferParameter =
  | { readonly kind: "bool"; readonly value: boolean }
  | { readonly kind: "int64" | "uint64" | "double"; readonly value: number }
  | { readonly kind: "string"; readonly value: string }
  | { readonly kind: "unset" };

export type InferParameters = ReadonlyMap<string, InferParameter>;

/** Members of InferTensorContents in the order of their field numbers 1 to 8. */
export const contentsFields = [
  "bool_contents",
  "int_contents",
  "int64_contents",
  "uint_contents",
  "uint64_contents",
  "fp32_contents",
  "fp64_contents",
  "bytes_contents",
] as const;
export type ContentsField = (typeof contentsFields)[number];

/** Where bytes lie in the message they were decoded from. */
export interface Span {
  readonly offset: number;
  readonly length: number;
}

/** Typed tensor data, checked but not yet read: see readContents in wire-contents.ts. */
export interface ContentsSpan {
  readonly spans: readonly Span[];
  /** Elements by field; fields without elements are absent. */
  readonly counts: Readonly<Partial<Record<ContentsField, number>>>;
}

export interface WireTensor {
  readonly name: string;
  /** KServe spelling: `FP32`, `BYTES`... */
  readonly datatype: string;
  readonly shape: readonly number[];
  readonly parameters: InferParameters;
  /** Null when the message had no `contents`. */
  readonly contents: ContentsSpan | null;
}

/** The one map that all messages without parameters share. */
export const noParameters: InferParameters = new Map();

function readParameter(reader: WireReader, end: number): InferParameter {
  let parameter: InferParameter = { kind: "unset" };
  while (reader.position < end) {
    const tag = reader.tag(end);
    if (tag === 8) parameter = { kind: "bool", value: reader.bool(end) };
    else if (tag === 16) parameter = { kind: "int64", value: reader.int64(end) };
    else if (tag === 26) parameter = { kind: "string", value: reader.string(end, "string_param") };
    else if (tag === 33) parameter = { kind: "double", value: reader.double(end) };
    else if (tag === 40) parameter = { kind: "uint64", value: reader.uint64(end) };
    else reader.skip(tag, end);
  }
  return parameter;
}

/** Reads one entry of map<string, InferParameter> and returns the map with it. */
export function readParameterEntry(reader: WireReader, end: number, into: InferParameters): InferParameters {
  const stop = reader.span(end);
  let key = "";
  let value: InferParameter = { kind: "unset" };
  while (reader.position < stop) {
    const tag = reader.tag(stop);
    if (tag === 10) key = reader.string(stop, "a parameter's name");
    else if (tag === 18) value = readParameter(reader, reader.span(stop));
    else reader.skip(tag, stop);
  }
  const map =
    into === noParameters ? new Map<string, InferParameter>() : (into as Map<string, InferParameter>);
  return map.set(key, value);
}

function writeParameter(writer: WireWriter, parameter: InferParameter): void {
  if (parameter.kind === "bool") writer.integer(1, parameter.value ? 1 : 0);
  else if (parameter.kind === "int64") writer.integer(2, parameter.value);
  else if (parameter.kind === "string") writer.text(3, parameter.value);
  else if (parameter.kind === "double") writer.double(4, parameter.value);
  else if (parameter.kind === "uint64") writer.integer(5, parameter.value);
}

export function writeParameters(
  writer: WireWriter,
  field: number,
  parameters: InferParameters | undefined,
): void {
  for (const [name, parameter] of parameters ?? noParameters)
    writer.message(field, (entry) =>
      entry.text(1, name).message(2, (value) => writeParameter(value, parameter)),
    );
}

/** Reads the value of a `repeated int64` field in either of its two forms and appends it to the list. */
function readIntegers(reader: WireReader, tag: number, end: number, into: number[]): void {
  if (tag % 8 === WireType.VARINT) {
    into.push(reader.int64(end));
    return;
  }
  const stop = reader.span(end);
  while (reader.position < stop) into.push(reader.int64(stop));
}

function countVarints(reader: WireReader, stop: number): number {
  let count = 0;
  for (; reader.position < stop; count++) reader.skip(WireType.VARINT, stop);
  return count;
}

function countFixed(reader: WireReader, end: number, elementBytes: number, field: ContentsField): number {
  const start = reader.position;
  const stop = reader.span(end);
  const length = stop - reader.position;
  if (length % elementBytes !== 0)
    throw new WireError(`packed ${field} is no multiple of ${elementBytes} bytes`, start);
  reader.position = stop;
  return length / elementBytes;
}

/** Passes over one field of InferTensorContents and returns how many elements it holds. */
function countElements(reader: WireReader, tag: number, end: number): number {
  const wireType = tag % 8;
  const number = (tag - wireType) / 8;
  if (wireType === WireType.BYTES && number <= 5) return countVarints(reader, reader.span(end));
  if (wireType === WireType.BYTES && number === 6) return countFixed(reader, end, 4, contentsFields[5]);
  if (wireType === WireType.BYTES && number === 7) return countFixed(reader, end, 8, contentsFields[6]);
  reader.skip(tag, end);
  if (number <= 5) return wireType === WireType.VARINT ? 1 : 0;
  if (number === 6) return wireType === WireType.FIXED32 ? 1 : 0;
  if (number === 7) return wireType === WireType.FIXED64 ? 1 : 0;
  return number === 8 && wireType === WireType.BYTES ? 1 : 0;
}

/** Checks a contents message and counts its elements, without building arrays out of what a stranger sent. */
function scanContents(reader: WireReader, end: number, before: ContentsSpan | null): ContentsSpan {
  const stop = reader.span(end);
  const span = { offset: reader.position, length: stop - reader.position };
  const counts = { ...before?.counts };
  while (reader.position < stop) {
    const tag = reader.tag(stop);
    const elements = countElements(reader, tag, stop);
    const field = contentsFields[(tag - (tag % 8)) / 8 - 1];
    if (field !== undefined && elements > 0) counts[field] = (counts[field] ?? 0) + elements;
  }
  return { spans: [...(before?.spans ?? []), span], counts };
}

/** Reads InferInputTensor or InferOutputTensor: their fields are the same. */
export function readTensor(reader: WireReader, end: number): WireTensor {
  const stop = reader.span(end);
  let name = "";
  let datatype = "";
  const shape: number[] = [];
  let parameters = noParameters;
  let contents: ContentsSpan | null = null;
  while (reader.position < stop) {
    const tag = reader.tag(stop);
    if (tag === 10) name = reader.string(stop, "a tensor's name");
    else if (tag === 18) datatype = reader.string(stop, "a tensor's datatype");
    else if (tag === 24 || tag === 26) readIntegers(reader, tag, stop, shape);
    else if (tag === 34) parameters = readParameterEntry(reader, stop, parameters);
    else if (tag === 42) contents = scanContents(reader, stop, contents);
    else reader.skip(tag, stop);
  }
  return { name, datatype, shape, parameters, contents };
}
