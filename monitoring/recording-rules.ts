import { loadQueries, gpuQueries, rateWindowS, tritonQueries } from "./queries";
import { promDuration, type RecordingRule, type RulesInput } from "./rule-types";

/** Names of the recording rules, `level:metric:operation`. */
export const recorded = {
  requestRatePerS: "triton:requests:rate",
  failureRatePerS: "triton:failures:rate",
  meanBatch: "triton:batch_size:mean",
  requestMs: "triton:request_ms:mean",
  queueMs: "triton:queue_ms:mean",
  computeInputMs: "triton:compute_input_ms:mean",
  computeInferMs: "triton:compute_infer_ms:mean",
  computeOutputMs: "triton:compute_output_ms:mean",
  gpuBusy: "triton:gpu_busy:mean",
  loadRatePerS: "load:requests:rate",
  missedShare: "load:slo_missed:ratio",
  sentMBPerS: "load:sent_megabytes:rate",
  /** How many servers there should be. */
  serversWanted: "triton:servers:wanted",
} as const;

/** What panels show and alerts ask for, recorded once: by model and server, GPU use by server, the load over all workers. */
export function recordingRules({ scrapeIntervalS, servers }: RulesInput): RecordingRule[] {
  const window = promDuration(rateWindowS(scrapeIntervalS));
  const triton = tritonQueries(window, ["model", "pod"]);
  const load = loadQueries(window);
  return [
    { record: recorded.requestRatePerS, expr: triton.requestRatePerS },
    { record: recorded.failureRatePerS, expr: triton.failureRatePerS },
    { record: recorded.meanBatch, expr: triton.meanBatch },
    { record: recorded.requestMs, expr: triton.requestMs },
    { record: recorded.queueMs, expr: triton.queueMs },
    { record: recorded.computeInputMs, expr: triton.computeInputMs },
    { record: recorded.computeInferMs, expr: triton.computeInferMs },
    { record: recorded.computeOutputMs, expr: triton.computeOutputMs },
    { record: recorded.gpuBusy, expr: gpuQueries(window).busyByPod },
    { record: recorded.loadRatePerS, expr: load.requestRatePerS },
    { record: recorded.missedShare, expr: load.missedShare },
    { record: recorded.sentMBPerS, expr: load.sentMBPerS },
    ...(servers === null ? [] : [{ record: recorded.serversWanted, expr: `vector(${servers})` }]),
  ];
}
