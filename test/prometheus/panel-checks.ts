/**
 * What every query of a panel and every recording rule must give after a trial on both servers, from the trial's own numbers. Keys are
 * `panel's title/legend` or the rule's name; the values' keys are the legends of the series.
 */
import type { Trial } from "./harness/world";

export interface Measured extends Trial {
  /** Window of the queries, seconds; it lies inside the measured one. */
  readonly windowS: number;
  /** Offered load, both servers together. */
  readonly ratePerS: number;
  readonly slo: { readonly boundMs: number };
  readonly gpuMemoryTotal: number;
  readonly gpuPowerLimitW: number;
  /** Measurements that have ended, this one included. */
  readonly ended: { readonly valid: number; readonly invalid: number };
  readonly serverUsdPerH: number;
}

/** Bounds of one series' value. Least 0 and most above: it may be absent, being zero. Both 0: it is there and zero. */
export interface Expectation {
  readonly least: number;
  readonly most: number;
}

export type Check = (measured: Measured) => Readonly<Record<string, Expectation>>;

/** Within a share of a value, plus something absolute. */
function near(value: number | null | undefined, share: number, absolute = 0): Expectation {
  if (value === null || value === undefined || !Number.isFinite(value))
    throw new Error("the trial itself has no such number");
  const margin = Math.abs(value) * share + absolute;
  return { least: Math.max(0, value - margin), most: value + margin };
}
const range = (least: number, most: number): Expectation => ({ least, most });
const zero = range(0, 0);
const small = 1e-6;

/** Share of the intervals' requests that missed the objective. */
function missedShare({ load }: Measured): number {
  return 1 - load.total.ok / load.total.planned;
}

const real = "triton-real";
const local = "triton-local";

// Buckets of response times are a tenth of the bound wide, and a quantile is interpolated in one.
const response =
  (read: (load: Trial["load"]["response"]) => number, legend: string): Check =>
  ({ load, slo }) => ({ [legend]: near(read(load.response), 0.2, slo.boundMs / 10) });
const missed: Check = (measured) => ({ missed: near(missedShare(measured), 0.3, 0.05) });
const gpuBusy: Check = ({ server }) => ({ [local]: near(server.gpuBusy, 0.25, 0.05) });
const part =
  (legend: string, read: (server: Trial["server"]) => number | null): Check =>
  ({ server }) => ({ [legend]: near(read(server), 0.3, 1) });

const panels: Readonly<Record<string, Check>> = {
  "Requests per second/{{model}}": ({ ratePerS }) => ({ good: near(ratePerS, 0.15) }),
  "Response time/p95": response(({ p95Ms }) => p95Ms, "p95"),
  "Response time/p50": response(({ p50Ms }) => p50Ms, "p50"),
  "Mean batch size/{{model}}": ({ server }) => ({ good: near(server.meanBatch, 0.2) }),
  "GPU utilisation/{{pod}}": gpuBusy,
  "GPU memory/{{pod}}": ({ server }) => ({ [local]: near(server.gpuMemoryUsedBytes, 0.01) }),
  "GPU memory/one GPU has": ({ gpuMemoryTotal }) => ({ "one GPU has": near(gpuMemoryTotal, 0) }),
  "Failures per second/{{model}}": () => ({ good: zero }),

  "Offered load/{{outcome}}": ({ ratePerS, load: { total } }) => {
    const rate = (count: number) => near((ratePerS * count) / total.planned, 0.15, 3);
    return {
      ok: rate(total.ok),
      late: rate(total.late - total.shed),
      shed: rate(total.shed),
      failed: rate(total.failed),
    };
  },
  "Missed objective/missed": missed,
  "Time of a request/queue": part("queue", ({ queueMs }) => queueMs),
  "Time of a request/input": part("input", ({ computeInputMs }) => computeInputMs),
  "Time of a request/inference": part("inference", ({ computeInferMs }) => computeInferMs),
  "Time of a request/output": part("output", ({ computeOutputMs }) => computeOutputMs),
  "Time of a request/wire": ({ load, server }) => {
    const inServer =
      server.queueMs! + server.computeInputMs! + server.computeInferMs! + server.computeOutputMs!;
    return { wire: near(Math.max(0, load.service.meanMs - inServer), 0.5, 3) };
  },
  "Batch size/mean": ({ server }) => ({ mean: near(server.meanBatch, 0.2) }),
  "GPU busy/{{pod}}": gpuBusy,
  "Lateness of the load generator/p99": ({ load }) => ({
    p99: range(small, 2 * load.health.latenessP99Ms + 1),
  }),
  "Lateness of the load generator/p50": ({ load }) => ({ p50: range(small, load.health.latenessP99Ms + 1) }),
  "Sent/all workers": ({ load }) => ({ "all workers": near(load.health.wireMBPerS, 0.15) }),
  "Load workers/workers": () => ({ workers: near(1, 0) }),
  "Requests in flight/in flight": ({ ratePerS }) => ({ "in flight": range(0, ratePerS) }),
  "Load workers/cores of the busiest": () => ({ "cores of the busiest": range(small, 2) }),

  "GPU power/{{pod}}": ({ server }) => ({ [local]: near(server.gpuPowerW, 0.25) }),
  "GPU power/one GPU may": ({ gpuPowerLimitW }) => ({ "one GPU may": near(gpuPowerLimitW, 0) }),
  "Trials/{{result}}": ({ ended: { valid, invalid } }) => ({
    valid: range(Math.min(valid, small), valid),
    invalid: range(Math.min(invalid, small), invalid),
  }),

  "Servers/answering": () => ({ answering: near(2, 0) }),
  "Servers/ready": () => ({ ready: near(2, 0) }),
  "Servers/wanted": () => ({ wanted: near(2, 0) }),
  "Requests by server/{{pod}}": ({ ratePerS }) => ({
    [real]: near(ratePerS / 2, 0.15),
    [local]: near(ratePerS / 2, 0.15),
  }),
  "Spent budget/missed": missed,
  "Failures by reason/{{reason}}": () => ({ REJECTED: zero }),
  "Errors at the client/{{kind}}": () => ({ UNAVAILABLE: zero }),
  // Nothing fires; the alerts' own tests look at this panel while something does.
  "Firing alerts/{{alertname}}": () => ({}),
  "GPU saturation/{{pod}}": gpuBusy,
  "Waiting requests/{{pod}}": ({ ratePerS }) => ({ [real]: range(0, ratePerS), [local]: range(0, ratePerS) }),
  "Time in the queue/{{pod}}": ({ servers }) => ({
    [real]: near(servers.real.queueMs, 0.3, 1),
    [local]: near(servers.local.queueMs, 0.3, 1),
  }),
  "Cost per million requests/now": ({ ratePerS, serverUsdPerH }) => ({
    now: near((2 * serverUsdPerH * 1e6) / (3600 * ratePerS), 0.15),
  }),
};

const byServer =
  (read: (server: Trial["server"]) => number | null, share: number, absolute = 0): Check =>
  ({ servers }) => ({
    [`good ${real}`]: near(read(servers.real), share, absolute),
    [`good ${local}`]: near(read(servers.local), share, absolute),
  });

const rules: Readonly<Record<string, Check>> = {
  "triton:requests:rate": ({ ratePerS }) => ({
    [`good ${real}`]: near(ratePerS / 2, 0.15),
    [`good ${local}`]: near(ratePerS / 2, 0.15),
  }),
  "triton:failures:rate": () => ({ [`good ${real}`]: zero }),
  "triton:batch_size:mean": byServer(({ meanBatch }) => meanBatch, 0.2),
  "triton:request_ms:mean": ({ servers }) => {
    const whole = ({ queueMs, computeInputMs, computeInferMs, computeOutputMs }: Trial["server"]) =>
      queueMs! + computeInputMs! + computeInferMs! + computeOutputMs!;
    return {
      [`good ${real}`]: near(whole(servers.real), 0.3, 3),
      [`good ${local}`]: near(whole(servers.local), 0.3, 3),
    };
  },
  "triton:queue_ms:mean": byServer(({ queueMs }) => queueMs, 0.3, 2),
  "triton:compute_input_ms:mean": byServer(({ computeInputMs }) => computeInputMs, 0.3, 1),
  "triton:compute_infer_ms:mean": byServer(({ computeInferMs }) => computeInferMs, 0.3, 1),
  "triton:compute_output_ms:mean": byServer(({ computeOutputMs }) => computeOutputMs, 0.3, 1),
  "triton:gpu_busy:mean": gpuBusy,
  "load:requests:rate": ({ ratePerS }) => ({ "": near(ratePerS, 0.15) }),
  "load:slo_missed:ratio": (measured) => ({ "": near(missedShare(measured), 0.3, 0.05) }),
  "load:sent_megabytes:rate": ({ load }) => ({ "": near(load.health.wireMBPerS, 0.15) }),
  "triton:servers:wanted": () => ({ "": near(2, 0) }),
};

export const checks: Readonly<Record<string, Check>> = { ...panels, ...rules };
