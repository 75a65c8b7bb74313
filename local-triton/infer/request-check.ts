import {
  classificationCount,
  type DecodedInferRequest,
  type DecodedRequestedOutput,
  type WireTensor,
} from "../../kserve/wire";
import { GrpcStatusCode } from "../../kserve/status";
import { StatusError } from "../grpc/status";
import { inputData } from "./input-data";
import { type IoRules, isKnownDatatype, type TensorRule } from "./tensors";

/** An output that the client asked for. */
export interface WantedOutput {
  readonly rule: TensorRule;
  /** Classification extension: how many classes; null for the tensor itself. */
  readonly classes: number | null;
}

/** A request that can be executed. */
export interface CheckedRequest {
  readonly images: number;
  /** Tensor of the one input; valid as long as the message. */
  readonly input: Buffer;
  readonly outputs: readonly WantedOutput[];
  /** Parameter `timeout`, microseconds; 0: none. */
  readonly timeoutUs: number;
}

/**
 * Checks a request against the model as Triton 2.51 does: same order, same codes and texts (test/local-triton/fixtures).
 * @param message the serialized request
 * @throws StatusError INVALID_ARGUMENT
 */
export function checkRequest(
  request: DecodedInferRequest,
  message: Buffer,
  modelName: string,
  rules: IoRules,
): CheckedRequest {
  const prefix = requestPrefix(request.id);
  const model = `for model '${modelName}'`;
  const timeoutUs = timeoutOf(request);
  const data: Buffer[] = [];
  for (const [index, input] of request.inputs.entries()) {
    if (request.inputs.findIndex((other) => other.name === input.name) < index) {
      throw invalid(`${prefix}input '${input.name}' already exists in request`);
    }
    data.push(inputData(request, index, message, model));
  }
  const outputs = wantedOutputs(request.outputs, rules.outputs, model);
  if (request.inputs.length !== rules.inputs.length) {
    throw invalid(`${prefix}${countMismatch(request.inputs, rules.inputs, model)}`);
  }
  let images = 1;
  for (const [index, input] of request.inputs.entries()) {
    const rule = rules.inputs.find((candidate) => candidate.name === input.name);
    if (rule === undefined) throw invalid(`unexpected inference input '${input.name}' ${model}`);
    images = checkInput(input, rule, rules.maxBatchSize, data[index]!.length, prefix, modelName);
  }
  return { images, input: data[0]!, outputs, timeoutUs };
}

/** "[request id: ...] ", with which Triton begins the errors that it finds in its core. */
export function requestPrefix(id: string): string {
  return `[request id: ${id === "" ? "<id_unknown>" : id}] `;
}

function timeoutOf(request: DecodedInferRequest): number {
  const timeout = request.parameters.get("timeout");
  if (timeout === undefined) return 0;
  if (timeout.kind !== "int64")
    throw invalid("invalid value type for 'timeout' parameter, expected int64_param.");
  return Math.max(0, timeout.value);
}

/** @returns the request's batch size; 1 for a model without a batch dimension */
function checkInput(
  input: WireTensor,
  rule: TensorRule,
  maxBatchSize: number,
  bytes: number,
  prefix: string,
  modelName: string,
): number {
  const model = `for model '${modelName}'`;
  if (input.datatype !== rule.datatype) {
    const got = isKnownDatatype(input.datatype) ? input.datatype : "<invalid>";
    throw invalid(
      `${prefix}inference input '${input.name}' data-type is '${got}', but model '${modelName}' expects '${rule.datatype}'`,
    );
  }
  let batch = 1;
  if (maxBatchSize > 0) {
    batch = input.shape[0] ?? 0;
    if (batch > maxBatchSize) {
      throw invalid(`${prefix}inference request batch-size must be <= ${maxBatchSize} for '${modelName}'`);
    }
  }
  const fits =
    input.shape.length === rule.shape.length &&
    rule.shape.every((dim, at) => dim === -1 || dim === input.shape[at]);
  if (!fits) {
    throw invalid(
      `${prefix}unexpected shape for input '${input.name}' ${model}. Expected [${rule.shape.join(",")}], ` +
        `got [${input.shape.join(",")}].${maxBatchSize > 0 ? BATCH_NOTE : ""}`,
    );
  }
  // Triton counts a batch of 0 as 1 here, and reads a negative one as an unsigned 32-bit number.
  const items = maxBatchSize > 0 ? input.shape.slice(1) : input.shape;
  const expected = items.reduce((product, dim) => product * dim, (batch >>> 0 || 1) * rule.elementBytes);
  if (bytes !== expected) {
    throw invalid(
      `${prefix}input byte size mismatch for input '${input.name}' ${model}. Expected ${expected}, got ${bytes}`,
    );
  }
  return Math.max(1, batch);
}

const BATCH_NOTE =
  " NOTE: Setting a non-zero max_batch_size in the model config requires a batch dimension to be prepended to each input shape. " +
  "If you want to specify the full shape including the batch dim in your input dims config, try setting max_batch_size to zero. " +
  "See the model configuration docs for more info on max_batch_size.";

function countMismatch(got: readonly WireTensor[], rules: readonly TensorRule[], model: string): string {
  const names = got.map((input) => input.name);
  const missing = rules.map((rule) => rule.name).filter((name) => !names.includes(name));
  const quoted = (list: readonly string[]): string =>
    [...list]
      .sort()
      .map((name) => `'${name}'`)
      .join(",");
  // Without a missing one Triton prints the closing bracket only.
  const missingText = missing.length === 0 ? "]" : `[${quoted(missing)}]`;
  return (
    `expected ${rules.length} inputs but got ${got.length} inputs ${model}. Got input(s) [${quoted(names)}], ` +
    `but missing required input(s) ${missingText}. Please provide all required input(s).`
  );
}

function wantedOutputs(
  requested: readonly DecodedRequestedOutput[],
  rules: readonly TensorRule[],
  model: string,
): readonly WantedOutput[] {
  if (requested.length === 0) return rules.map((rule) => ({ rule, classes: null }));
  return requested.map((output) => {
    const rule = rules.find((candidate) => candidate.name === output.name);
    if (rule === undefined) throw invalid(`unexpected inference output '${output.name}' ${model}`);
    const classification = output.parameters.get("classification");
    if (classification !== undefined && classification.kind !== "int64") {
      throw invalid("invalid value type for 'classification' parameter, expected int64_param.");
    }
    if (output.parameters.has("shared_memory_region")) {
      throw invalid(
        "this server does not offer shared memory; leave the 'shared_memory_region' parameter out",
      );
    }
    return { rule, classes: classificationCount(output) };
  });
}

function invalid(message: string): StatusError {
  return new StatusError(GrpcStatusCode.INVALID_ARGUMENT, message);
}
