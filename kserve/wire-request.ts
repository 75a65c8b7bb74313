/** ModelInferRequest on the wire: the hot path, without building a message object around 602 kB of tensor. */
import {
  noParameters,
  readParameterEntry,
  readTensor,
  writeParameters,
  type InferParameter,
  type InferParameters,
  type Span,
  type WireTensor,
} from "./wire-tensor";
import { PrefixTooShort, WireReader } from "./wire-reader";
import { WireWriter } from "./wire-writer";

/** A request with one raw input and at most one requested output: what an image classification client sends. */
export interface InferRequestArgs {
  readonly modelName: string;
  /** Empty or left out: the newest. */
  readonly modelVersion?: string;
  /** Echoed in the answer; left out by default. */
  readonly id?: string;
  readonly inputName: string;
  /** KServe spelling: `FP32`, `UINT8`... */
  readonly datatype: string;
  /** With the batch dimension. */
  readonly shape: readonly number[];
  /** Tensor data, row-major, little endian. */
  readonly raw: Buffer;
  /** Left out: the server answers with all outputs. */
  readonly outputName?: string;
  /**
   * Classification extension: answer with the `classCount` most probable classes as BYTES `score:index:label`
   * instead of the tensor. Needs outputName. Left out or 0: the tensor.
   */
  readonly classCount?: number;
  /** Request parameters, e.g. `timeout` (int64, microseconds) or `priority`. */
  readonly parameters?: InferParameters;
}

export interface DecodedRequestedOutput {
  readonly name: string;
  readonly parameters: InferParameters;
}

export interface DecodedInferRequest {
  readonly modelName: string;
  readonly modelVersion: string;
  readonly id: string;
  readonly parameters: InferParameters;
  readonly inputs: readonly WireTensor[];
  readonly outputs: readonly DecodedRequestedOutput[];
  /** Where each entry of raw_input_contents lies in the message. */
  readonly raw: readonly Span[];
}

/**
 * Serializes a request. The payload is copied once.
 * @throws RangeError for a shape or class count that is no integer, TypeError for a classCount without outputName
 */
export function encodeInferRequest(args: InferRequestArgs): Buffer {
  const writer = new WireWriter()
    .optionalText(1, args.modelName)
    .optionalText(2, args.modelVersion)
    .optionalText(3, args.id);
  writeParameters(writer, 4, args.parameters);
  writer.message(5, (input) =>
    input.optionalText(1, args.inputName).optionalText(2, args.datatype).packedIntegers(3, args.shape),
  );
  const { outputName, classCount = 0 } = args;
  if (outputName !== undefined) {
    const parameters: InferParameters =
      classCount === 0
        ? noParameters
        : new Map<string, InferParameter>([["classification", { kind: "int64", value: classCount }]]);
    writer.message(6, (output) => writeParameters(output.optionalText(1, outputName), 2, parameters));
  } else if (classCount !== 0) {
    throw new TypeError("classCount needs outputName: the classification is asked of one named output");
  }
  return writer.bytes(7, args.raw).finish();
}

function readRequestedOutput(reader: WireReader, end: number): DecodedRequestedOutput {
  const stop = reader.span(end);
  let name = "";
  let parameters = noParameters;
  while (reader.position < stop) {
    const tag = reader.tag(stop);
    if (tag === 10) name = reader.string(stop, "an output's name");
    else if (tag === 18) parameters = readParameterEntry(reader, stop, parameters);
    else reader.skip(tag, stop);
  }
  return { name, parameters };
}

function readRequest(reader: WireReader): DecodedInferRequest {
  const end = reader.length;
  let modelName = "";
  let modelVersion = "";
  let id = "";
  let parameters = noParameters;
  const inputs: WireTensor[] = [];
  const outputs: DecodedRequestedOutput[] = [];
  const raw: Span[] = [];
  while (reader.position < end) {
    const tag = reader.tag(end);
    if (tag === 10) modelName = reader.string(end, "model_name");
    else if (tag === 18) modelVersion = reader.string(end, "model_version");
    else if (tag === 26) id = reader.string(end, "id");
    else if (tag === 34) parameters = readParameterEntry(reader, end, parameters);
    else if (tag === 42) inputs.push(readTensor(reader, end));
    else if (tag === 50) outputs.push(readRequestedOutput(reader, end));
    else if (tag === 58) {
      const stop = reader.span(end);
      raw.push({ offset: reader.position, length: stop - reader.position });
      reader.position = stop;
    } else reader.skip(tag, end);
  }
  return { modelName, modelVersion, id, parameters, inputs, outputs, raw };
}

/**
 * Decodes a serialized ModelInferRequest. Tensor data is not copied: `raw` says where it lies in `message`.
 * @throws WireError if the bytes are no such message
 */
export function decodeInferRequest(message: Buffer): DecodedInferRequest {
  return readRequest(new WireReader(message, message.length));
}

/**
 * Decodes a request of `messageLength` bytes of which only the first ones are at hand, so that a server need not join the
 * chunks of a body whose tensor it does not look at. Clients write raw contents last, so the first chunk is nearly always enough.
 * @returns undefined when it is not: join the chunks and call decodeInferRequest
 * @throws WireError if the bytes are no such message
 */
export function decodeInferRequestHead(
  prefix: Buffer,
  messageLength: number,
): DecodedInferRequest | undefined {
  try {
    return readRequest(new WireReader(prefix, messageLength));
  } catch (error) {
    if (error instanceof PrefixTooShort) return undefined;
    throw error;
  }
}

/** Parameter `classification` of a requested output: the number of classes asked for, or null when the tensor is wanted. */
export function classificationCount(output: DecodedRequestedOutput): number | null {
  const parameter = output.parameters.get("classification");
  if (parameter?.kind !== "int64" && parameter?.kind !== "uint64") return null;
  return parameter.value > 0 ? parameter.value : null;
}
