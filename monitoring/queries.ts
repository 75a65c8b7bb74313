import { loadMetrics as load, tritonMetrics as triton } from "./metrics";

/**
 * Window of every rate of a rule, seconds. It spans at least four scrapes, so that one lost scrape does not leave a gap and a
 * rate never rests on a single pair of samples.
 */
export function rateWindowS(scrapeIntervalS: number): number {
  return 4 * scrapeIntervalS;
}

/**
 * Window of every rate of a panel. Grafana makes it four scrapes, or more when a point on the screen stands for more; it knows the
 * scrape interval from the data source.
 */
export const panelWindow = "$__rate_interval";

/** PromQL expressions over Triton's counters. */
export interface TritonQueries {
  /** Requests answered per second. */
  readonly requestRatePerS: string;
  readonly failureRatePerS: string;
  /** The same for each reason. */
  readonly failureRatePerSByReason: string;
  /** Images per executed batch. */
  readonly meanBatch: string;
  /** Milliseconds per request, from its arrival to its answer, and its parts. */
  readonly requestMs: string;
  readonly queueMs: string;
  readonly computeInputMs: string;
  readonly computeInferMs: string;
  readonly computeOutputMs: string;
  /** Requests that wait for a batch. */
  readonly pending: string;
}

/**
 * Builds the expressions.
 * @param window PromQL range, e.g. `20s`
 * @param by labels that results keep
 */
export function tritonQueries(window: string, by: readonly string[]): TritonQueries {
  const labels = by.join(", ");
  const rate = (metric: string) => `sum by (${labels}) (rate(${metric}[${window}]))`;
  // Per request, because Triton charges each request of a batch the whole batch's time.
  const perRequestMs = (metric: string) => `${rate(metric)} / ${rate(triton.requestSuccess)} / 1000`;
  return {
    requestRatePerS: rate(triton.requestSuccess),
    failureRatePerS: rate(triton.requestFailure),
    failureRatePerSByReason: `sum by (reason) (rate(${triton.requestFailure}[${window}]))`,
    meanBatch: `${rate(triton.inferenceCount)} / ${rate(triton.executionCount)}`,
    requestMs: perRequestMs(triton.requestDurationUs),
    queueMs: perRequestMs(triton.queueDurationUs),
    computeInputMs: perRequestMs(triton.computeInputDurationUs),
    computeInferMs: perRequestMs(triton.computeInferDurationUs),
    computeOutputMs: perRequestMs(triton.computeOutputDurationUs),
    pending: `sum by (${labels}) (${triton.pendingRequests})`,
  };
}

/** PromQL expressions over Triton's GPU gauges; a server without a GPU has none. */
export interface GpuQueries {
  /** Share of time in which the GPU ran, 0..1, for each server. */
  readonly busyByPod: string;
  readonly memoryUsedBytes: string;
  readonly memoryTotalBytes: string;
  /** Watts, for each server, and the most that a GPU may take. */
  readonly powerW: string;
  readonly powerLimitW: string;
}

export function gpuQueries(window: string): GpuQueries {
  return {
    busyByPod: `avg by (pod) (avg_over_time(${triton.gpuUtilization}[${window}]))`,
    memoryUsedBytes: `sum by (pod) (${triton.gpuMemoryUsedBytes})`,
    memoryTotalBytes: `max(${triton.gpuMemoryTotalBytes})`,
    powerW: `avg by (pod) (avg_over_time(${triton.gpuPowerW}[${window}]))`,
    powerLimitW: `max(${triton.gpuPowerLimitW})`,
  };
}

/** PromQL expressions over the load controller's metrics. Times are from the planned send unless they say otherwise. */
export interface LoadQueries {
  /** Measured requests per second, whatever became of them. */
  readonly requestRatePerS: string;
  readonly requestRatePerSByOutcome: string;
  readonly errorRatePerSByKind: string;
  /** Quantile of the response time, milliseconds; exact where it crosses the SLO bound, because a bucket ends there. */
  readonly responseMs: (quantile: number) => string;
  /** Mean from the real send, milliseconds. */
  readonly serviceMs: string;
  /** Quantile of real minus planned send, milliseconds. */
  readonly latenessMs: (quantile: number) => string;
  /** Share of requests that were not answered rightly within the bound, 0..1, as trials judge: late, shed and failed ones. */
  readonly missedShare: string;
  /** Megabytes sent per second. */
  readonly sentMBPerS: string;
  readonly inFlight: string;
  readonly workers: string;
  /** CPU seconds per second of the busiest worker. */
  readonly cpuShare: string;
  /** Measurements that ended since the controller's start. */
  readonly measurementsByResult: string;
}

/** Builds the expressions; `window` is a PromQL range, e.g. `20s`. */
export function loadQueries(window: string): LoadQueries {
  const rate = (selector: string) => `sum(rate(${selector}[${window}]))`;
  const rateBy = (label: string, metric: string) => `sum by (${label}) (rate(${metric}[${window}]))`;
  const quantileMs = (metric: string) => (quantile: number) =>
    `1000 * histogram_quantile(${quantile}, ${rateBy("le", `${metric}_bucket`)})`;
  return {
    requestRatePerS: rate(load.requests),
    requestRatePerSByOutcome: rateBy("outcome", load.requests),
    errorRatePerSByKind: rateBy("kind", load.errors),
    responseMs: quantileMs(load.responseSeconds),
    serviceMs: `1000 * ${rate(`${load.serviceSeconds}_sum`)} / ${rate(`${load.serviceSeconds}_count`)}`,
    latenessMs: quantileMs(load.latenessSeconds),
    missedShare: `${rate(`${load.requests}{outcome!="ok"}`)} / ${rate(load.requests)}`,
    sentMBPerS: `${rate(load.sentBytes)} / 1000000`,
    inFlight: `sum(${load.inFlight})`,
    workers: `sum(${load.workers})`,
    cpuShare: `max(${load.cpuShare})`,
    measurementsByResult: `sum by (result) (${load.measurements})`,
  };
}
