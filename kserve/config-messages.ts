/**
 * Triton's model configuration as a message (kserve/proto/model_config.proto), in the shape that proto-loader gives:
 * see messages.ts. Schedulers that this project does not use (sequence, ensemble) are left untyped.
 */

export type DataType =
  | "TYPE_INVALID"
  | "TYPE_BOOL"
  | "TYPE_UINT8"
  | "TYPE_UINT16"
  | "TYPE_UINT32"
  | "TYPE_UINT64"
  | "TYPE_INT8"
  | "TYPE_INT16"
  | "TYPE_INT32"
  | "TYPE_INT64"
  | "TYPE_FP16"
  | "TYPE_FP32"
  | "TYPE_FP64"
  | "TYPE_STRING"
  | "TYPE_BF16";

export interface ModelTensorReshape {
  shape: number[];
}

export interface ModelInput {
  name: string;
  data_type: DataType;
  format: "FORMAT_NONE" | "FORMAT_NHWC" | "FORMAT_NCHW";
  dims: number[];
  reshape: ModelTensorReshape | null;
  is_shape_tensor: boolean;
  allow_ragged_batch: boolean;
  optional: boolean;
  is_non_linear_format_io: boolean;
}

export interface ModelOutput {
  name: string;
  data_type: DataType;
  dims: number[];
  reshape: ModelTensorReshape | null;
  label_filename: string;
  is_shape_tensor: boolean;
  is_non_linear_format_io: boolean;
}

export interface ModelRateLimiter {
  resources: { name: string; global: boolean; count: number }[];
  priority: number;
}

export interface ModelInstanceGroup {
  name: string;
  kind: "KIND_AUTO" | "KIND_GPU" | "KIND_CPU" | "KIND_MODEL";
  count: number;
  rate_limiter: ModelRateLimiter | null;
  gpus: number[];
  secondary_devices: { kind: "KIND_NVDLA"; device_id: number }[];
  profile: string[];
  passive: boolean;
  host_policy: string;
}

/** Exactly one of the three is set. */
export interface ModelVersionPolicy {
  latest?: { num_versions: number } | null;
  all?: Record<never, never> | null;
  specific?: { versions: number[] } | null;
}

export interface ModelQueuePolicy {
  timeout_action: "REJECT" | "DELAY";
  default_timeout_microseconds: number;
  allow_timeout_override: boolean;
  max_queue_size: number;
}

export interface ModelDynamicBatching {
  preferred_batch_size: number[];
  max_queue_delay_microseconds: number;
  preserve_ordering: boolean;
  priority_levels: number;
  default_priority_level: number;
  default_queue_policy: ModelQueuePolicy | null;
  priority_queue_policy: Record<string, ModelQueuePolicy>;
}

export interface ExecutionAccelerator {
  name: string;
  parameters: Record<string, string>;
}

export interface ModelOptimizationPolicy {
  graph: { level: number } | null;
  priority: "PRIORITY_DEFAULT" | "PRIORITY_MAX" | "PRIORITY_MIN";
  cuda: Record<string, unknown> | null;
  execution_accelerators: {
    gpu_execution_accelerator: ExecutionAccelerator[];
    cpu_execution_accelerator: ExecutionAccelerator[];
  } | null;
  input_pinned_memory: { enable: boolean } | null;
  output_pinned_memory: { enable: boolean } | null;
  gather_kernel_buffer_threshold: number;
  eager_batching: boolean;
}

/** Exactly one of zero_data, random_data and input_data_file is set. */
export interface ModelWarmupInput {
  data_type: DataType;
  dims: number[];
  zero_data?: boolean;
  random_data?: boolean;
  input_data_file?: string;
}

export interface ModelWarmup {
  name: string;
  batch_size: number;
  inputs: Record<string, ModelWarmupInput>;
  count: number;
}

export interface ModelConfig {
  name: string;
  platform: string;
  backend: string;
  runtime: string;
  version_policy: ModelVersionPolicy | null;
  max_batch_size: number;
  input: ModelInput[];
  output: ModelOutput[];
  batch_input: Record<string, unknown>[];
  batch_output: Record<string, unknown>[];
  optimization: ModelOptimizationPolicy | null;
  /** At most one of the three schedulers is set. */
  dynamic_batching?: ModelDynamicBatching | null;
  sequence_batching?: Record<string, unknown> | null;
  ensemble_scheduling?: Record<string, unknown> | null;
  instance_group: ModelInstanceGroup[];
  default_model_filename: string;
  cc_model_filenames: Record<string, string>;
  metric_tags: Record<string, string>;
  parameters: Record<string, { string_value: string }>;
  model_warmup: ModelWarmup[];
  model_operations: { op_library_filename: string[] } | null;
  model_transaction_policy: { decoupled: boolean } | null;
  model_repository_agents: { agents: { name: string; parameters: Record<string, string> }[] } | null;
  response_cache: { enable: boolean } | null;
  model_metrics: Record<string, unknown> | null;
}
