/** ModelInferResponse on the wire. */
import {
  noParameters,
  readParameterEntry,
  readTensor,
  writeParameters,
  type InferParameters,
  type WireTensor,
} from "./wire-tensor";
import { WireReader } from "./wire-reader";
import { WireWriter } from "./wire-writer";

export interface InferResponseArgs {
  readonly modelName: string;
  readonly modelVersion: string;
  /** The request's id, echoed. */
  readonly id?: string;
  readonly parameters?: InferParameters;
  readonly outputs: readonly InferResponseOutput[];
}

export interface InferResponseOutput {
  readonly name: string;
  readonly datatype: string;
  readonly shape: readonly number[];
  readonly raw: Buffer;
}

export interface DecodedInferResponse {
  readonly modelName: string;
  readonly modelVersion: string;
  readonly id: string;
  readonly parameters: InferParameters;
  readonly outputs: readonly WireTensor[];
  /** Entries of raw_output_contents, in the order of the outputs: views into the message, not copies. */
  readonly raw: readonly Buffer[];
}

/** Serializes a response whose outputs are raw, as Triton answers. */
export function encodeInferResponse(args: InferResponseArgs): Buffer {
  const writer = new WireWriter()
    .optionalText(1, args.modelName)
    .optionalText(2, args.modelVersion)
    .optionalText(3, args.id);
  writeParameters(writer, 4, args.parameters);
  for (const { name, datatype, shape } of args.outputs)
    writer.message(5, (output) =>
      output.optionalText(1, name).optionalText(2, datatype).packedIntegers(3, shape),
    );
  for (const { raw } of args.outputs) writer.bytes(6, raw);
  return writer.finish();
}

/**
 * Decodes a serialized ModelInferResponse.
 * @throws WireError if the bytes are no such message
 */
export function decodeInferResponse(message: Buffer): DecodedInferResponse {
  const reader = new WireReader(message, message.length);
  const end = message.length;
  let modelName = "";
  let modelVersion = "";
  let id = "";
  let parameters = noParameters;
  const outputs: WireTensor[] = [];
  const raw: Buffer[] = [];
  while (reader.position < end) {
    const tag = reader.tag(end);
    if (tag === 10) modelName = reader.string(end, "model_name");
    else if (tag === 18) modelVersion = reader.string(end, "model_version");
    else if (tag === 26) id = reader.string(end, "id");
    else if (tag === 34) parameters = readParameterEntry(reader, end, parameters);
    else if (tag === 42) outputs.push(readTensor(reader, end));
    else if (tag === 50) raw.push(reader.view(end));
    else reader.skip(tag, end);
  }
  return { modelName, modelVersion, id, parameters, outputs, raw };
}
