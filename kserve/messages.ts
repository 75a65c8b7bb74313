/**
 * Messages of the KServe v2 service (kserve/proto/grpc_service.proto) as proto-loader gives them with this room's options:
 * snake_case names, enums by name, every scalar and list present (filled with its default), an absent sub-message is null,
 * and 64-bit integers as numbers. Above 2^53 a number is rounded (relative error below 1.2e-16): the only fields that could
 * get there are nanosecond sums after 104 days of accumulated time, where that does not matter.
 */
import type { ModelConfig } from "./config-messages";

export type * from "./config-messages";

/**
 * What a caller may send: everything is optional, because protobuf fills in defaults. Bytes stay as they are.
 */
export type Draft<T> = T extends Uint8Array
  ? T
  : T extends readonly (infer U)[]
    ? readonly Draft<U>[]
    : T extends object
      ? { readonly [K in keyof T]?: Draft<T[K]> | undefined }
      : T;

/** A message without fields. */
export type Empty = Record<never, never>;

export interface ServerLiveResponse {
  live: boolean;
}

export interface ServerReadyResponse {
  ready: boolean;
}

/** Model and version; an empty version means the newest. */
export interface ModelReference {
  name: string;
  version: string;
}

export interface ModelReadyResponse {
  ready: boolean;
}

export interface ServerMetadataResponse {
  name: string;
  version: string;
  extensions: string[];
}

export interface TensorMetadata {
  name: string;
  /** KServe spelling: `FP32`, `BYTES`... */
  datatype: string;
  /** With the batch dimension (-1) when the model batches. */
  shape: number[];
}

export interface ModelMetadataResponse {
  name: string;
  versions: string[];
  platform: string;
  inputs: TensorMetadata[];
  outputs: TensorMetadata[];
}

export interface InferParameterMessage {
  bool_param?: boolean;
  int64_param?: number;
  string_param?: string;
  double_param?: number;
  uint64_param?: number;
}

/** Typed tensor data; Triton accepts it beside raw contents and never answers with it. */
export interface InferTensorContents {
  bool_contents: boolean[];
  int_contents: number[];
  int64_contents: number[];
  uint_contents: number[];
  uint64_contents: number[];
  fp32_contents: number[];
  fp64_contents: number[];
  bytes_contents: Buffer[];
}

export interface InferTensor {
  name: string;
  datatype: string;
  shape: number[];
  parameters: Record<string, InferParameterMessage>;
  contents: InferTensorContents | null;
}

export interface InferRequestedOutput {
  name: string;
  parameters: Record<string, InferParameterMessage>;
}

export interface ModelInferRequest {
  model_name: string;
  model_version: string;
  id: string;
  parameters: Record<string, InferParameterMessage>;
  inputs: InferTensor[];
  outputs: InferRequestedOutput[];
  raw_input_contents: Buffer[];
}

export interface ModelInferResponse {
  model_name: string;
  model_version: string;
  id: string;
  parameters: Record<string, InferParameterMessage>;
  outputs: InferTensor[];
  raw_output_contents: Buffer[];
}

export interface ModelConfigResponse {
  config: ModelConfig | null;
}

export interface StatisticDuration {
  /** Events. */
  count: number;
  /** Their summed duration, nanoseconds. */
  ns: number;
}

/** Per request: every request of a batch is charged the whole batch's compute time. */
export interface InferStatistics {
  success: StatisticDuration | null;
  fail: StatisticDuration | null;
  queue: StatisticDuration | null;
  compute_input: StatisticDuration | null;
  compute_infer: StatisticDuration | null;
  compute_output: StatisticDuration | null;
  cache_hit: StatisticDuration | null;
  cache_miss: StatisticDuration | null;
}

export interface InferResponseStatistics {
  compute_infer: StatisticDuration | null;
  compute_output: StatisticDuration | null;
  success: StatisticDuration | null;
  fail: StatisticDuration | null;
  empty_response: StatisticDuration | null;
  cancel: StatisticDuration | null;
}

/** Per execution: `count` is the number of executions of this batch size. */
export interface InferBatchStatistics {
  batch_size: number;
  compute_input: StatisticDuration | null;
  compute_infer: StatisticDuration | null;
  compute_output: StatisticDuration | null;
}

export interface MemoryUsage {
  type: string;
  id: number;
  byte_size: number;
}

export interface ModelStatistics {
  name: string;
  version: string;
  /** Unix milliseconds of the last inference; 0 when there was none. */
  last_inference: number;
  /** Inferences: a request of batch size n counts n. */
  inference_count: number;
  /** Executions: a batch counts 1. */
  execution_count: number;
  inference_stats: InferStatistics | null;
  batch_stats: InferBatchStatistics[];
  memory_usage: MemoryUsage[];
  response_stats: Record<string, InferResponseStatistics>;
}

export interface ModelStatisticsResponse {
  model_stats: ModelStatistics[];
}

export interface ModelRepositoryParameter {
  bool_param?: boolean;
  int64_param?: number;
  string_param?: string;
  bytes_param?: Buffer;
}

export interface RepositoryIndexRequest {
  repository_name: string;
  /** Only models that are ready. */
  ready: boolean;
}

export interface ModelIndex {
  name: string;
  version: string;
  /** `READY`, `UNAVAILABLE`, `LOADING`, `UNLOADING`, or empty for a model never loaded. */
  state: string;
  reason: string;
}

export interface RepositoryIndexResponse {
  models: ModelIndex[];
}

export interface RepositoryModelRequest {
  repository_name: string;
  model_name: string;
  /** Load: `config` (JSON that replaces the configuration), `file:<version>/<name>`. Unload: `unload_dependents`. */
  parameters: Record<string, ModelRepositoryParameter>;
}

export interface HealthCheckRequest {
  service: string;
}

export interface HealthCheckResponse {
  status: "UNKNOWN" | "SERVING" | "NOT_SERVING" | "SERVICE_UNKNOWN";
}
