import type { CompleteModelConfig, ModelConfig } from "../../model-repo/config-types";
import { type Executor, ModelLoadError } from "../executor";

/**
 * What Triton finds wrong with a configuration while it polls the repository; the client hears only "failed to poll from model
 * repository", the reason goes to the log.
 * @returns the first offence as a sentence; null when there is none
 */
export function pollOffence(modelName: string, config: ModelConfig): string | null {
  const maxBatchSize = config.max_batch_size ?? 0;
  if (config.name !== undefined && config.name !== "" && config.name !== modelName) {
    return `the configuration's name is '${config.name}', the model's folder '${modelName}'`;
  }
  if (maxBatchSize < 0) return `max_batch_size is ${maxBatchSize}; it must be >= 0`;
  for (const size of config.dynamic_batching?.preferred_batch_size ?? []) {
    if (size < 1 || size > maxBatchSize) {
      return `preferred_batch_size has ${size}; it must be from 1 to max_batch_size (${maxBatchSize})`;
    }
  }
  return ioOffence(config);
}

function ioOffence(config: ModelConfig): string | null {
  for (const kind of ["input", "output"] as const) {
    const names = new Set<string>();
    const tensors = config[kind] ?? [];
    if (tensors.length === 0) return `there is no ${kind}`;
    for (const { name = "", data_type = "TYPE_INVALID", dims = [] } of tensors) {
      if (name === "") return `an ${kind} has no name`;
      if (names.has(name)) return `${kind} '${name}' is there twice`;
      names.add(name);
      if (data_type === "TYPE_INVALID") return `${kind} '${name}' has no data_type`;
      if (dims.length === 0) return `${kind} '${name}' has no dims`;
      if (dims.some((dim) => dim < 1 && dim !== -1))
        return `${kind} '${name}' has a dimension that is neither >= 1 nor -1`;
    }
  }
  return null;
}

/**
 * Features of Triton that this server does not have. Better refused than served differently.
 * @throws ModelLoadError
 */
export function checkSupported(
  config: CompleteModelConfig,
  { gpuIds, instanceKind }: Pick<Executor, "gpuIds" | "instanceKind">,
): void {
  const refuse = (what: string): never => {
    throw new ModelLoadError(
      `Invalid argument: this server does not support ${what} (model '${config.name}')`,
    );
  };
  if (config.sequence_batching !== undefined) refuse("sequence_batching");
  if (config.ensemble_scheduling !== undefined) refuse("ensemble_scheduling");
  if (config.response_cache?.enable === true) refuse("response_cache");
  if (config.model_transaction_policy?.decoupled === true) refuse("decoupled models");
  if ((config.dynamic_batching?.priority_levels ?? 0) > 0) refuse("dynamic_batching.priority_levels");
  if (config.version_policy.latest === undefined || (config.version_policy.latest.num_versions ?? 1) > 1) {
    refuse("a version_policy other than the latest version");
  }
  for (const group of config.instance_group) {
    if (group.kind !== instanceKind)
      refuse(`instance groups of kind ${group.kind ?? "KIND_AUTO"}; use ${instanceKind}`);
    const unknown = (group.gpus ?? []).find((id) => !gpuIds.includes(id));
    if (unknown !== undefined) {
      throw new ModelLoadError(
        `Invalid argument: instance group ${group.name} of model ${config.name} specifies invalid or unsupported gpu id ` +
          `${unknown}. GPUs of this server are: ${gpuIds.join(" ")}`,
      );
    }
  }
}
