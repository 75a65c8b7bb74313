/** From a variant to Triton's model configuration. */
import type { CompleteModelConfig, ModelConfig, ModelWarmup } from "./config-types";
import type { ModelArtefact, Platform, Variant } from "./variant";

export interface ModelConfigOptions {
  /** Where the instances run. Default `KIND_GPU`; `KIND_CPU` for a server without one. */
  readonly instanceKind?: "KIND_GPU" | "KIND_CPU";
  /**
   * Write model_warmup, so that a model is ready only after its engines exist: TF-TRT and ONNX Runtime build or rebuild
   * TensorRT engines at the first request, which the first users would otherwise wait for. Default: when the artefact has engines.
   */
  readonly warmup?: boolean;
}

/** Backend of each platform, and the model file's name that the backend looks for by default. */
export const platformBackends: Readonly<Record<Platform, { backend: string; defaultModelFilename: string }>> =
  {
    tensorflow_savedmodel: { backend: "tensorflow", defaultModelFilename: "model.savedmodel" },
    tensorrt_plan: { backend: "tensorrt", defaultModelFilename: "model.plan" },
    onnxruntime_onnx: { backend: "onnxruntime", defaultModelFilename: "model.onnx" },
  };

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

/** ONNX Runtime runs an unconverted model on CUDA, and a precision through its TensorRT accelerator. */
function accelerator({ platform, precision }: ModelArtefact): Pick<ModelConfig, "optimization"> {
  if (platform !== "onnxruntime_onnx" || precision === "original") return {};
  const parameters = { precision_mode: precision.toUpperCase() };
  return {
    optimization: {
      execution_accelerators: { gpu_execution_accelerator: [{ name: "tensorrt", parameters }] },
    },
  };
}

/** The configuration as a person would write it: only what differs from Triton's defaults. */
export function declaredModelConfig(variant: Variant, options: ModelConfigOptions = {}): ModelConfig {
  const { artefact, preferredBatchSizes } = variant;
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
    ...accelerator(artefact),
    dynamic_batching: {
      ...(preferredBatchSizes.length === 0 ? {} : { preferred_batch_size: preferredBatchSizes }),
      max_queue_delay_microseconds: variant.queueDelayUs,
    },
    instance_group: [{ kind: options.instanceKind ?? "KIND_GPU", count: variant.instanceCount }],
    ...(artefact.platform === "tensorflow_savedmodel" ? { default_model_filename: savedModelFolder } : {}),
    ...(warmup ? { model_warmup: warmups(variant) } : {}),
  };
}

/**
 * Fills in what Triton fills in when it loads a model (observed in the ModelConfig answer of Triton 2.51): backend and file
 * name of the platform, version policy, pinned memory, names, counts and GPUs of the instance groups.
 * @param gpus devices that the server has; a KIND_GPU group without its own list gets all of them
 */
export function withTritonDefaults(config: ModelConfig, gpus: readonly number[] = [0]): CompleteModelConfig {
  const name = config.name ?? "";
  const known = platformBackends[config.platform as Platform] as
    (typeof platformBackends)[Platform] | undefined;
  const groups = config.instance_group?.length ? config.instance_group : [{}];
  return {
    ...config,
    name,
    platform: config.platform ?? "",
    backend: config.backend ?? known?.backend ?? "",
    version_policy: config.version_policy ?? { latest: { num_versions: 1 } },
    max_batch_size: config.max_batch_size ?? 0,
    input: (config.input ?? []).map((input) => ({
      format: "FORMAT_NONE",
      is_shape_tensor: false,
      allow_ragged_batch: false,
      optional: false,
      ...input,
    })),
    output: (config.output ?? []).map((output) => ({
      label_filename: "",
      is_shape_tensor: false,
      ...output,
    })),
    optimization: {
      priority: "PRIORITY_DEFAULT",
      gather_kernel_buffer_threshold: 0,
      eager_batching: false,
      ...config.optimization,
      input_pinned_memory: config.optimization?.input_pinned_memory ?? { enable: true },
      output_pinned_memory: config.optimization?.output_pinned_memory ?? { enable: true },
    },
    ...(config.dynamic_batching === undefined
      ? {}
      : {
          dynamic_batching: {
            preferred_batch_size: [],
            max_queue_delay_microseconds: 0,
            preserve_ordering: false,
            priority_levels: 0,
            default_priority_level: 0,
            ...config.dynamic_batching,
          },
        }),
    instance_group: groups.map((group, index) => {
      const kind = group.kind ?? "KIND_AUTO";
      const resolved = kind === "KIND_AUTO" ? (gpus.length > 0 ? "KIND_GPU" : "KIND_CPU") : kind;
      return {
        passive: false,
        ...group,
        name: group.name || `${name}_${index}`,
        kind: resolved,
        count: group.count || 1,
        gpus: resolved === "KIND_GPU" && !group.gpus?.length ? gpus : (group.gpus ?? []),
      };
    }),
    default_model_filename: config.default_model_filename || (known?.defaultModelFilename ?? ""),
    parameters: config.parameters ?? {},
    model_warmup: config.model_warmup ?? [],
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
