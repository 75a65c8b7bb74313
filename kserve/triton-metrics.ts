/**
 * Names of Triton's metrics (port 8002) that anything here reads: diagnosis, dashboards, rules, autoscaler. One list, checked
 * against what a real server answers. Durations add up per request: every request of a batch is charged the whole batch.
 */
export const tritonMetrics = {
  requestSuccess: "nv_inference_request_success",
  /** By `reason`. A full queue (`max_queue_size`) is counted nowhere but at the client. */
  requestFailure: "nv_inference_request_failure",
  /** Images inferred. */
  inferenceCount: "nv_inference_count",
  /** Batches executed. */
  executionCount: "nv_inference_exec_count",
  requestDurationUs: "nv_inference_request_duration_us",
  queueDurationUs: "nv_inference_queue_duration_us",
  computeInputDurationUs: "nv_inference_compute_input_duration_us",
  computeInferDurationUs: "nv_inference_compute_infer_duration_us",
  computeOutputDurationUs: "nv_inference_compute_output_duration_us",
  pendingRequests: "nv_inference_pending_request_count",
  /** Share of time in which any kernel ran, 0..1; read every `--metrics-interval-ms`. */
  gpuUtilization: "nv_gpu_utilization",
  gpuMemoryUsedBytes: "nv_gpu_memory_used_bytes",
  gpuMemoryTotalBytes: "nv_gpu_memory_total_bytes",
  gpuPowerW: "nv_gpu_power_usage",
  gpuPowerLimitW: "nv_gpu_power_limit",
} as const;
