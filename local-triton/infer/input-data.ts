import { GrpcStatusCode } from "../../kserve/status";
import { type DecodedInferRequest, readContents } from "../../kserve/wire";
import { StatusError } from "../grpc/status";

/**
 * Tensor bytes of one input: a view into the message for raw contents, a copy for typed ones.
 * @param model "for model '...'", for error texts
 * @throws StatusError INVALID_ARGUMENT
 */
export function inputData(
  request: DecodedInferRequest,
  index: number,
  message: Buffer,
  model: string,
): Buffer {
  const input = request.inputs[index]!;
  if (input.parameters.has("shared_memory_region")) {
    throw invalid("this server does not offer shared memory; leave the 'shared_memory_region' parameter out");
  }
  const { contents } = input;
  if (request.raw.length > 0) {
    if (contents !== null) {
      throw invalid(
        `contents field must not be specified when using raw_input_contents for '${input.name}' ${model}`,
      );
    }
    const raw = request.raw[index];
    if (raw === undefined) throw missing(input.name, model);
    return message.subarray(raw.offset, raw.offset + raw.length);
  }
  if (contents === null) throw missing(input.name, model);
  const values = readContents(message, contents);
  if (input.datatype === "FP32") {
    if (values.fp32_contents.length === 0) throw missing(input.name, model);
    return Buffer.from(Float32Array.from(values.fp32_contents).buffer);
  }
  if (input.datatype === "UINT8") {
    if (values.uint_contents.length === 0) throw missing(input.name, model);
    return Buffer.from(values.uint_contents);
  }
  throw invalid(
    `typed contents of ${input.datatype} are not supported by this server for input '${input.name}'; use raw_input_contents`,
  );
}

function missing(inputName: string, model: string): StatusError {
  return invalid(`unable to find data for input tensor '${inputName}' ${model} in request.`);
}

function invalid(message: string): StatusError {
  return new StatusError(GrpcStatusCode.INVALID_ARGUMENT, message);
}
