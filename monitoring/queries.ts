import { loadMetrics as load, tritonMetrics as triton } from "./metrics";

/**
 * Window of every rate. It spans at least four scrapes, so that one lost scrape does not leave a gap and a rate never rests
 * on a single pair of samples.
 */
export function rateWindowS(scrapeIntervalS: number): number {
  return Math.max(4 * scrapeIntervalS, 20);
}

/** PromQL expressions over Triton's counters, for one rate window. */
export interface TritonQueries {
  /** Requests answered per second and model. */
  readonly requestRatePerS: string;
  readonly failureRatePerS: string;
  /** Images per executed batch. */
  readonly meanBatch: string;
  /** Milliseconds per request. */
  readonly meanQueueMs: string;
  readonly meanComputeInputMs: string;
  readonly meanComputeInferMs: string;
  readonly meanComputeOutputMs: string;
  /** Share of time in which the GPU ran, 0..1, mean over GPUs. */
  readonly gpuBusy: string;
  /** The same for each server. */
  readonly gpuBusyByPod: string;
  readonly gpuMemoryUsedBytes: string;
  readonly pending: string;
}

/** Builds the expressions; `by` are the labels that results keep. */
export function tritonQueries(windowS: number, by: readonly string[] = ["model"]): TritonQueries {
  const labels = by.join(", ");
  const rate = (metric: string) => `sum by (${labels}) (rate(${metric}[${windowS}s]))`;
  // Per request, because Triton charges each request of a batch the whole batch's time.
  const perRequestMs = (metric: string) => `${rate(metric)} / ${rate(triton.requestSuccess)} / 1000`;
  return {
    requestRatePerS: rate(triton.requestSuccess),
    failureRatePerS: rate(triton.requestFailure),
    meanBatch: `${rate(triton.inferenceCount)} / ${rate(triton.executionCount)}`,
    meanQueueMs: perRequestMs(triton.queueDurationUs),
    meanComputeInputMs: perRequestMs(triton.computeInputDurationUs),
    meanComputeInferMs: perRequestMs(triton.computeInferDurationUs),
    meanComputeOutputMs: perRequestMs(triton.computeOutputDurationUs),
    gpuBusy: `avg(avg_over_time(${triton.gpuUtilization}[${windowS}s]))`,
    gpuBusyByPod: `avg by (pod) (avg_over_time(${triton.gpuUtilization}[${windowS}s]))`,
    gpuMemoryUsedBytes: `sum(${triton.gpuMemoryUsedBytes})`,
    pending: `sum by (${labels}) (${triton.pendingRequests})`,
  };
}

/** PromQL expressions over the load controller's metrics, for one rate window. */
export interface LoadQueries {
  readonly requestRatePerS: string;
  /** Quantile of the response time from the planned send, milliseconds. */
  readonly quantileMs: (quantile: number) => string;
  /** Share of the answers within the SLO bound, 0..1; exact, because a bucket ends at the bound. */
  readonly withinBound: (boundMs: number) => string;
  readonly sentMBPerS: string;
  readonly latenessMs: string;
  readonly inFlight: string;
  readonly workers: string;
}

/** Builds the expressions. */
export function loadQueries(windowS: number): LoadQueries {
  const rate = (metric: string) => `rate(${metric}[${windowS}s])`;
  const { responseSeconds } = load;
  return {
    requestRatePerS: `sum(${rate(load.requests)})`,
    quantileMs: (quantile) =>
      `1000 * histogram_quantile(${quantile}, sum by (le) (${rate(`${responseSeconds}_bucket`)}))`,
    withinBound: (boundMs) =>
      `sum(${rate(`${responseSeconds}_bucket{le="${boundMs / 1000}"}`)}) / sum(${rate(`${responseSeconds}_count`)})`,
    sentMBPerS: `sum(${rate(load.sentBytes)}) / 1000000`,
    latenessMs: `1000 * max(${load.latenessSeconds})`,
    inFlight: `sum(${load.inFlight})`,
    workers: `sum(${load.workers})`,
  };
}
