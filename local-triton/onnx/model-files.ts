/** What an ONNX model must be to be served by its configuration. Pure. */
import type { CompleteModelConfig } from "../../model-repo/config-types";
import type { TensorType } from "../../model-repo/variant";
import { ModelLoadError } from "../executor";
import type { InstanceSettings, SessionTensor } from "./messages";

/** ONNX Runtime's words for the types that images may have. */
const sessionTypes: Readonly<Record<TensorType, string>> = { FP32: "float32", UINT8: "uint8" };

/** The part of the configuration that the sessions need. @throws ModelLoadError for a model that is no image classifier */
export function classifierOf(config: CompleteModelConfig): Pick<InstanceSettings, "input" | "output"> {
  const { name } = config;
  if (config.platform !== "onnxruntime_onnx" && config.backend !== "onnxruntime")
    throw invalid(
      `this server runs ONNX models only; '${name}' is of platform '${config.platform || config.backend}'`,
    );
  const [input, ...otherInputs] = config.input;
  const [output, ...otherOutputs] = config.output;
  if (input === undefined || output === undefined || otherInputs.length > 0 || otherOutputs.length > 0)
    throw invalid(`this server runs models of one input and one output; '${name}' has others`);
  const type = input.data_type.replace("TYPE_", "");
  if (type !== "FP32" && type !== "UINT8")
    throw invalid(
      `this server takes TYPE_FP32 and TYPE_UINT8 images; input '${input.name}' is ${input.data_type}`,
    );
  if (input.dims.some((dim) => dim < 1))
    throw invalid(`this server needs fixed input dims; input '${input.name}' has [${input.dims.join(",")}]`);
  const [classes, ...otherDims] = output.dims;
  if (output.data_type !== "TYPE_FP32" || classes === undefined || classes < 1 || otherDims.length > 0)
    throw invalid(
      `this server answers with one TYPE_FP32 score per class; output '${output.name}' is different`,
    );
  if (config.max_batch_size < 1)
    throw invalid(`max_batch_size of '${name}' is 0; this server needs models that batch`);
  return { input: { name: input.name, type, dims: input.dims }, output: { name: output.name, classes } };
}

/**
 * Compares the model's file with its configuration.
 * @throws ModelLoadError that lists the real inputs or outputs
 */
export function checkSession(
  config: CompleteModelConfig,
  inputs: readonly SessionTensor[],
  outputs: readonly SessionTensor[],
): void {
  const { input, output } = classifierOf(config);
  checkTensor(config, "input", input.name, sessionTypes[input.type], input.dims, inputs);
  checkTensor(config, "output", output.name, "float32", [output.classes], outputs);
  if (inputs.length > 1)
    throw invalid(`model '${config.name}' has the inputs ${namesOf(inputs)}; this server fills one`);
}

function checkTensor(
  config: CompleteModelConfig,
  kind: "input" | "output",
  name: string,
  type: string,
  dims: readonly number[],
  there: readonly SessionTensor[],
): void {
  const found = there.find((tensor) => tensor.name === name);
  if (found === undefined)
    throw invalid(`unexpected inference ${kind} '${name}', allowed ${kind}s are: ${namesOf(there)}`);
  if (found.type !== type)
    throw invalid(
      `model '${config.name}', tensor '${name}': the model has ${found.type}, the configuration ${type}`,
    );
  const [batch = 0, ...own] = found.shape;
  const fits = own.length === dims.length && own.every((dim, axis) => dim === -1 || dim === dims[axis]);
  const batches = batch === -1 || (batch === 1 && config.max_batch_size === 1);
  if (!fits || !batches)
    throw invalid(
      `model '${config.name}', tensor '${name}': the model has the shape [${found.shape.join(",")}], the configuration ` +
        `[-1,${dims.join(",")}]${fits ? "; export it with an open batch dimension" : ""}`,
    );
}

function namesOf(tensors: readonly SessionTensor[]): string {
  return tensors.map(({ name, type, shape }) => `${name} (${type} [${shape.join(",")}])`).join(", ");
}

function invalid(reason: string): ModelLoadError {
  return new ModelLoadError(`Invalid argument: ${reason}`);
}
