/**
 * Names of the controller's metrics: what `/metrics` answers, and what dashboards and rules may ask for.
 * Requests count when they end; those of the warm-up are left out, so that the counters add up to what trials report.
 */
export const loadMetrics = {
  /** Counter by `outcome`: ok (right, within the SLO bound), late, shed (never sent: the in-flight cap), failed. */
  requests: "loadgen_requests_total",
  /** Counter of failed requests by `kind`: the gRPC status, wrong-answer or client-error. */
  errors: "loadgen_errors_total",
  /** Histogram of response times from the planned send; a bucket ends exactly at the SLO bound. */
  responseSeconds: "loadgen_response_seconds",
  /** Sum and count of times from the real send. */
  serviceSeconds: "loadgen_service_seconds",
  /** Histogram of real minus planned send; a bucket ends at the lateness that makes a trial invalid. */
  latenessSeconds: "loadgen_lateness_seconds",
  /** Counter of message bytes, warm-up included. */
  sentBytes: "loadgen_sent_bytes_total",
  /** Gauge over all workers. */
  inFlight: "loadgen_in_flight",
  /** Gauge: registered workers. */
  workers: "loadgen_workers",
  /** Gauge by `worker`: CPU seconds per second spent waiting awake for planned sends. */
  busyWaitShare: "loadgen_worker_busy_wait_share",
  /** Gauge by `worker`: CPU seconds per second, without busy waiting. */
  cpuShare: "loadgen_worker_cpu_share",
  /** Counter of measurements by `result`: valid, invalid (its numbers must not be used), aborted. */
  measurements: "loadgen_measurements_total",
  /** 1 while a measurement runs, with labels `variant`, `trial` and `id`; absent otherwise. */
  measurementRunning: "loadgen_measurement_running",
} as const;
