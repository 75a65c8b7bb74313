import { loadMetrics as load, tritonMetrics as triton } from "./metrics";
import { loadQueries, rateWindowS } from "./queries";
import { recorded } from "./recording-rules";
import { promDuration, runbookUrl, type AlertRule, type RulesInput } from "./rule-types";
import { jobs } from "./scrape-jobs";

/** Minutes as seconds. */
const minutes = (count: number): number => 60 * count;

/**
 * Burn rates and windows after the Site Reliability Workbook, chapter 5 (sre.google/workbook/alerting-on-slos): 14.4 spends 2 % of a
 * month's budget in an hour, 6 spends 5 % in six hours. The short window says that it is still so.
 */
const burns = [
  { alert: "SloBurnFast", rate: 14.4, longS: minutes(60), shortS: minutes(5), severity: "page" },
  { alert: "SloBurnSlow", rate: 6, longS: minutes(360), shortS: minutes(30), severity: "ticket" },
] as const;

/**
 * Share of missed requests at which an alert fires. A lax objective (p50, say) has a budget that no share of requests can burn so many
 * times as fast: then it is halfway between the budget and all requests.
 */
export function burnThreshold(burnRate: number, sloPercentile: number): number {
  const budget = (100 - sloPercentile) / 100;
  return Number(Math.min(burnRate * budget, (1 + budget) / 2).toFixed(6));
}

/** Alerts on the servers. */
export function serverAlerts(input: RulesInput): AlertRule[] {
  const { servers } = input;
  const rule = alertIn(input);
  const missing = rule("TritonServersMissing", "page", minutes(5), {
    expr: `(count(up{job="${jobs.triton}"} == 1) or vector(0)) < ${servers}`,
    summary: `fewer than ${servers} Triton servers answer`,
    action: "npm run explain: GPU quota or stockout, driver, image pull, model load",
  });
  return [
    ...(servers === null || servers === 0 ? [] : [missing]),
    rule("TritonNotReady", "page", minutes(5), {
      expr: `up{job="${jobs.tritonReady}"} == 0`,
      summary: "{{ $labels.pod }} is not ready: it runs, but not all of its models do",
      action: "read the server's log for the model that failed to load",
    }),
    rule("TritonFailures", "page", minutes(5), {
      expr: `sum by (model) (${recorded.failureRatePerS}) > 0.001 * (sum by (model) (${recorded.requestRatePerS}) + sum by (model) (${recorded.failureRatePerS}))`,
      summary: "more than 0.1 % of the requests to {{ $labels.model }} fail",
      action: "look at the failures by reason and at the server's log",
    }),
    rule("TritonQueueGrowing", "page", minutes(5), {
      expr: `sum by (model) (deriv(${triton.pendingRequests}[${windowIn(input, minutes(5))}])) > 0.1 and sum by (model) (${triton.pendingRequests}) > 1`,
      summary: "requests to {{ $labels.model }} wait longer and longer",
      action: "the load is above what the servers hold: add a server (replicas), or serve a faster variant",
    }),
    rule("TritonGpuSaturated", "ticket", minutes(15), {
      expr: `${recorded.gpuBusy} > 0.95`,
      summary: "the GPU of {{ $labels.pod }} is busy all the time",
      action: "a lower precision or one more server; more instances do not help",
    }),
    rule("TritonHostBound", "ticket", minutes(15), {
      expr: `${recorded.gpuBusy} < 0.7 and on (pod) (max by (pod) (${recorded.queueMs}) > ${input.sloBoundMs / 2})`,
      summary: "requests wait in {{ $labels.pod }} while its GPU idles",
      action: "one more instance, or a smaller input (UINT8)",
    }),
  ];
}

/** Alerts on the objective, as far as the load generator measures it. */
export function sloAlerts(input: RulesInput): AlertRule[] {
  const rule = alertIn(input);
  return burns.map(({ alert, rate, longS, shortS, severity }) => {
    const above = (windowS: number) =>
      `(${loadQueries(windowIn(input, windowS)).missedShare}) > ${burnThreshold(rate, input.sloPercentile)}`;
    return rule(alert, severity, 0, {
      expr: `${above(longS)} and ${above(shortS)}`,
      summary: `the budget of the ${input.sloPercentile} % within ${input.sloBoundMs} ms is spent ${rate} times too fast`,
      action: "a sweep does this on purpose; otherwise lower the load or add a server",
    });
  });
}

/** Alerts on the load generator, and on what Prometheus cannot read. */
export function loadAlerts(input: RulesInput): AlertRule[] {
  const { scrapeIntervalS, sloBoundMs, loadWorkers } = input;
  const rule = alertIn(input);
  const workersMissing = rule("LoadWorkersMissing", "ticket", minutes(5), {
    expr: `(${loadQueries("1m").workers} or vector(0)) < ${loadWorkers}`,
    summary: `fewer than ${loadWorkers} load workers are registered`,
    action: "kubectl describe the workers' pods: room on the load pool, image, token",
  });
  return [
    ...(loadWorkers === 0 ? [] : [workersMissing]),
    rule("LoadGeneratorLate", "ticket", minutes(1), {
      // The lateness that makes a trial invalid: loadgen's rule, on the same figure.
      expr: `${loadQueries(promDuration(rateWindowS(scrapeIntervalS))).latenessMs(0.99)} > ${0.05 * sloBoundMs}`,
      summary: "the load workers send too late: their trials are invalid",
      action: "more workers or larger machines (loadWorkers, loadMachineType)",
    }),
    rule("LoadTrialsInvalid", "ticket", 0, {
      expr: `sum(increase(${load.measurements}{result="invalid"}[${windowIn(input, minutes(30))}])) >= 2`,
      summary: "several trials in a row cannot be used",
      action: "the tune command names the reason: a late client, a lost worker, an unreachable server",
    }),
    rule("ScrapeMissing", "ticket", minutes(5), {
      expr: `up{job=~"${jobs.triton}|${jobs.load}"} == 0`,
      summary: "{{ $labels.pod }} does not answer on its metrics port",
      action: "look at the pod and at the NetworkPolicies of its namespace",
    }),
  ];
}

/** A PromQL range: of the nominal length times the time scale, but never less than four scrapes. */
function windowIn({ timeScale = 1, scrapeIntervalS }: RulesInput, seconds: number): string {
  return promDuration(Math.max(seconds * timeScale, 4 * scrapeIntervalS));
}

interface AlertText {
  readonly expr: string;
  readonly summary: string;
  readonly action: string;
}

function alertIn({ timeScale = 1 }: RulesInput) {
  return (
    alert: string,
    severity: "page" | "ticket",
    forS: number,
    { expr, summary, action }: AlertText,
  ): AlertRule => ({
    alert,
    expr,
    for: promDuration(forS * timeScale),
    labels: { severity },
    annotations: { summary, action, runbook_url: runbookUrl(alert) },
  });
}
