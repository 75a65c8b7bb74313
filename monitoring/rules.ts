import { loadMetrics as load, tritonMetrics as triton } from "./metrics";
import { loadQueries, rateWindowS, tritonQueries } from "./queries";

/** A recording rule of Prometheus. */
export interface RecordingRule {
  readonly record: string;
  readonly expr: string;
}

/** An alert rule of Prometheus. */
export interface AlertRule {
  readonly alert: string;
  readonly expr: string;
  /** How long the condition must hold. */
  readonly for: string;
  readonly labels: { readonly severity: "page" | "ticket" };
  readonly annotations: { readonly summary: string; readonly action: string };
}

export interface RuleGroup {
  readonly name: string;
  readonly rules: readonly (RecordingRule | AlertRule)[];
}

export interface RulesInput {
  readonly scrapeIntervalS: number;
  /** SLO: this share of answers, in percent, within this bound. */
  readonly sloPercentile: number;
  readonly sloBoundMs: number;
  /** Servers that there should be; null when an autoscaler decides. */
  readonly servers: number | null;
}

/** Names of the recording rules. */
export const recorded = {
  requestRatePerS: "triton:requests:rate",
  failureRatePerS: "triton:failures:rate",
  meanBatch: "triton:batch_size:mean",
  queueMs: "triton:queue_ms:mean",
  computeInputMs: "triton:compute_input_ms:mean",
  computeInferMs: "triton:compute_infer_ms:mean",
  gpuBusy: "triton:gpu_busy:mean",
} as const;

/** Rules file of the stack: what the panels show, recorded once, and what somebody should look at. */
export function ruleGroups(input: RulesInput): RuleGroup[] {
  return [
    { name: "triton-recording", rules: recordingRules(input) },
    { name: "triton-alerts", rules: [...serverAlerts(input), ...saturationAlerts(input)] },
    { name: "load-alerts", rules: loadAlerts(input) },
  ];
}

function recordingRules({ scrapeIntervalS }: RulesInput): RecordingRule[] {
  const queries = tritonQueries(rateWindowS(scrapeIntervalS), ["model", "pod"]);
  return [
    { record: recorded.requestRatePerS, expr: queries.requestRatePerS },
    { record: recorded.failureRatePerS, expr: queries.failureRatePerS },
    { record: recorded.meanBatch, expr: queries.meanBatch },
    { record: recorded.queueMs, expr: queries.meanQueueMs },
    { record: recorded.computeInputMs, expr: queries.meanComputeInputMs },
    { record: recorded.computeInferMs, expr: queries.meanComputeInferMs },
    { record: recorded.gpuBusy, expr: queries.gpuBusyByPod },
  ];
}

function serverAlerts({ servers }: RulesInput): AlertRule[] {
  const missing: AlertRule = {
    alert: "TritonServersMissing",
    expr: `(count(up{job="triton"} == 1) or vector(0)) < ${servers}`,
    for: "5m",
    labels: { severity: "page" },
    annotations: {
      summary: `fewer than ${servers} Triton servers answer`,
      action: "kubectl -n triton describe pods: GPU quota or stockout, driver, image pull, model load",
    },
  };
  const failing: AlertRule = {
    alert: "TritonFailures",
    expr: `sum by (model) (${recorded.failureRatePerS}) > 0.001 * sum by (model) (${recorded.requestRatePerS})`,
    for: "5m",
    labels: { severity: "page" },
    annotations: {
      summary: "more than 0.1 % of the requests to {{ $labels.model }} fail",
      action:
        "look at the reason label and at the server's log; a full queue is counted nowhere but at the client",
    },
  };
  return servers === null || servers === 0 ? [failing] : [missing, failing];
}

function saturationAlerts({ sloBoundMs }: RulesInput): AlertRule[] {
  return [
    {
      alert: "TritonQueueGrowing",
      expr: `sum by (model) (deriv(${triton.pendingRequests}[5m])) > 0.1 and sum by (model) (${recorded.queueMs}) > ${sloBoundMs / 2}`,
      for: "5m",
      labels: { severity: "page" },
      annotations: {
        summary: "requests to {{ $labels.model }} wait longer and longer",
        action: "the load is above what the servers hold: add a server (replicas), or serve a faster variant",
      },
    },
    {
      alert: "TritonGpuSaturated",
      expr: `${recorded.gpuBusy} > 0.95`,
      for: "15m",
      labels: { severity: "ticket" },
      annotations: {
        summary: "the GPU of {{ $labels.pod }} is busy all the time",
        action: "precision or one more server, not more instances",
      },
    },
    {
      alert: "TritonHostBound",
      expr: `${recorded.gpuBusy} < 0.7 and on (pod) sum by (pod) (${recorded.queueMs}) > ${sloBoundMs / 2}`,
      for: "15m",
      labels: { severity: "ticket" },
      annotations: {
        summary: "requests wait in {{ $labels.pod }} while its GPU idles",
        action: "one more instance, or a smaller input (UINT8)",
      },
    },
  ];
}

function loadAlerts({ sloPercentile, sloBoundMs }: RulesInput): AlertRule[] {
  const allowed = (100 - sloPercentile) / 100;
  const bound = sloBoundMs / 1000;
  const missed = (windowS: number) => `1 - ${loadQueries(windowS).withinBound(sloBoundMs)}`;
  return [
    {
      alert: "LoadSloMissed",
      // Two windows: the long one says that it matters, the short one that it is still so.
      expr: `(${missed(1800)}) > ${allowed} and (${missed(300)}) > ${allowed}`,
      for: "0m",
      labels: { severity: "ticket" },
      annotations: {
        summary: `less than ${sloPercentile} % of the answers come within ${sloBoundMs} ms`,
        action: "during a sweep this is expected; otherwise lower the load or add a server",
      },
    },
    {
      alert: "LoadGeneratorLate",
      expr: `${load.latenessSeconds} > ${0.05 * bound}`,
      for: "1m",
      labels: { severity: "ticket" },
      annotations: {
        summary: "the load workers send too late: their trials are invalid",
        action: "more workers or larger machines (loadWorkers, loadMachineType)",
      },
    },
    {
      alert: "ScrapeMissing",
      expr: 'up{job=~"triton|load-generator"} == 0',
      for: "5m",
      labels: { severity: "ticket" },
      annotations: {
        summary: "{{ $labels.pod }} does not answer on its metrics port",
        action: "look at the pod and at the NetworkPolicies of its namespace",
      },
    },
  ];
}
