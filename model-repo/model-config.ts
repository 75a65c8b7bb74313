/** From a variant to Triton's model configuration. */
import { withTritonDefaults } from "./config-defaults";
import type { CompleteModelConfig, ModelConfig, ModelWarmup } from "./config-types";
import type { ModelArtefact, Variant } from "./variant";

export interface ModelConfigOptions {
  /** Where the instances run. Default `KIND_GPU`; `KIND_CPU` for a server without one. */
  readonly instanceKind?: "KIND_GPU" | "KIND_CPU";
  /**
   * Write model_warmup, so that a model is ready only after its engines exist: TF-TRT and ONNX Runtime build or rebuild
   * TensorRT engines at the first request, which the first users would otherwise wait for. Default: when the artefact has engines.
   */
  readonly warmup?: boolean;
}

/** Name of the SavedModel folder in the documents' repository layout: `<model>/1/model`. */
const savedModelFolder = "model";

/** The largest batch first: TF-TRT sizes an engine by the first batch it sees. */
function warmups({ maxBatchSize, artefact }: Variant): ModelWarmup[] {
  const sizes = maxBatchSize === 1 ? [1] : [maxBatchSize, 1];
  const { name, type, dims } = artefact.input;
  return sizes.map((size) => ({
    name: `batch_${size}`,
    batch_size: size,
    inputs: { [name]: { data_type: `TYPE_${type}`, dims, zero_data: true } },
  }));
}

/** On a GPU, ONNX Runtime runs an unconverted model on CUDA, and a precision through its TensorRT accelerator. */
function accelerator(
  { platform, precision }: ModelArtefact,
  { instanceKind }: ModelConfigOptions,
): Pick<ModelConfig, "optimization"> {
  if (platform !== "onnxruntime_onnx" || precision === "original" || instanceKind === "KIND_CPU") return {};
  const parameters = { precision_mode: precision.toUpperCase() };
  return {
    optimization: {
      execution_accelerators: { gpu_execution_accelerator: [{ name: "tensorrt", parameters }] },
    },
  };
}

/**
 * The configuration as a person would write it: only what differs from Triton's defaults.
 * @throws Error for a model of a platform that this project does not write configurations for
 */
export function declaredModelConfig(variant: Variant, options: ModelConfigOptions = {}): ModelConfig {
  const { artefact, preferredBatchSizes } = variant;
  if (artefact.platform === "other")
    throw new Error(
      `${variant.name} is a model of somebody else's backend: its configuration stays where it was written`,
    );
  const { input, output } = artefact;
  const warmup = options.warmup ?? artefact.precision !== "original";
  return {
    name: variant.name,
    platform: artefact.platform,
    max_batch_size: variant.maxBatchSize,
    input: [
      {
        name: input.name,
        data_type: `TYPE_${input.type}`,
        ...(input.format === null ? {} : { format: input.format }),
        dims: input.dims,
      },
    ],
    output: [
      {
        name: output.name,
        data_type: `TYPE_${output.type}`,
        dims: output.dims,
        ...(artefact.labelsFile === null ? {} : { label_filename: artefact.labelsFile }),
      },
    ],
    ...accelerator(artefact, options),
    dynamic_batching: {
      ...(preferredBatchSizes.length === 0 ? {} : { preferred_batch_size: preferredBatchSizes }),
      max_queue_delay_microseconds: variant.queueDelayUs,
    },
    instance_group: [{ kind: options.instanceKind ?? "KIND_GPU", count: variant.instanceCount }],
    ...(artefact.platform === "tensorflow_savedmodel" ? { default_model_filename: savedModelFolder } : {}),
    ...(warmup ? { model_warmup: warmups(variant) } : {}),
  };
}

/** The variant's whole configuration, as Triton answers it. */
export function toModelConfig(variant: Variant, options?: ModelConfigOptions): CompleteModelConfig {
  return withTritonDefaults(declaredModelConfig(variant, options));
}

/**
 * Value of RepositoryModelLoad's parameter `config`: the whole configuration as JSON, because Triton replaces and does not merge.
 */
export function toConfigOverrideJson(variant: Variant, options?: ModelConfigOptions): string {
  return JSON.stringify(toModelConfig(variant, options));
}
