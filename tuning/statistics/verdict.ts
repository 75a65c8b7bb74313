/** Three-way verdict on one trial: does the SLO hold at this load? */
import type { IntervalResult } from "../../loadgen/load-spec";
import type { JudgedTrial } from "../outcome";
import type { TrialResult, TrialSpec, Verdict } from "../trial";
import { batchMeansOf, type BatchMeans } from "./batch-means";
import { leastRequests } from "./binomial";
import { growthOf, warmUpIntervals } from "./stationarity";

/** Confidence of a trial's interval of the miss share (two-sided). */
export const verdictLevel = 0.95;

/**
 * Judges a trial. `pass`: the whole interval of the miss share is at or below 1 - quantile and the queue does not grow. `fail`: the
 * whole interval is above it, or the queue grows beyond the bound. Everything else is `undecided`: go on measuring. An invalid
 * trial and a trial without requests are undecided, never a pass.
 */
export function judge(spec: TrialSpec, result: TrialResult): JudgedTrial {
  const { load } = result;
  const ratePerS = loadOf(spec, result);
  const { verdict, reason, share } = decide(spec, result);
  const level = verdictLevel;
  const missShare = share
    ? { estimate: share.share, low: share.low, high: share.high, level }
    : {
        estimate: load.total.planned > 0 ? 1 - load.total.ok / load.total.planned : 1,
        low: 0,
        high: 1,
        level,
      };
  return { spec, result, verdict, missShare, ratePerS, reason };
}

/** Offered load of an open loop; throughput of a closed one: what was answered in the window, requests a second. */
export function loadOf(spec: TrialSpec, { load }: TrialResult): number {
  if (spec.shape.kind !== "users") return spec.shape.ratePerS;
  return (load.total.planned - load.total.shed) / spec.measureS;
}

interface Decision {
  readonly verdict: Verdict;
  readonly reason: string;
  readonly share: BatchMeans | null;
}

function decide(spec: TrialSpec, { load }: TrialResult): Decision {
  const allowed = 1 - spec.slo.quantile;
  if (!load.valid) {
    const why = load.invalidReasons.join("; ") || "no reason given";
    return {
      verdict: "undecided",
      reason: `The trial is invalid and says nothing about the server: ${why}.`,
      share: null,
    };
  }
  if (load.intervals.every(({ planned }) => planned === 0)) {
    return {
      verdict: "undecided",
      reason: "No request was planned in the window: no data is never a pass.",
      share: null,
    };
  }
  const cut = warmUpIntervals(
    load.intervals.map((interval) =>
      interval.answered > 0 ? interval.responseSumMs / interval.answered : NaN,
    ),
  );
  const used = load.intervals.slice(cut);
  const share = batchMeansOf(
    used.map(counted),
    (used.length * load.intervalS * 1000) / spec.slo.boundMs,
    verdictLevel,
  );
  const growth = growthOf(load.intervals, load.intervalS, spec.slo.boundMs, spec.shape.kind === "poisson");
  const requests = used.reduce((sum, interval) => sum + interval.planned, 0);
  const least = leastRequests(0, spec.slo.quantile, verdictLevel);
  const figures = describe(share, allowed, cut * load.intervalS);
  if (growth.saturated) {
    const grows = `the number in flight grows by ${growth.perS.toFixed(0)} a second and ends at ${growth.finalInFlight.toFixed(0)}`;
    return { verdict: "fail", reason: `Saturated: ${grows}. ${figures}`, share };
  }
  if (share.low > allowed) return { verdict: "fail", reason: figures, share };
  if (requests < least) {
    return {
      verdict: "undecided",
      reason: `Only ${requests} requests; at least ${least} are needed. ${figures}`,
      share,
    };
  }
  if (share.high <= allowed) {
    return growth.z > 3
      ? {
          verdict: "undecided",
          reason: `The queue grows over the window, though no request is late enough yet. ${figures}`,
          share,
        }
      : { verdict: "pass", reason: figures, share };
  }
  return { verdict: "undecided", reason: figures, share };
}

function counted(interval: IntervalResult): { planned: number; misses: number } {
  return { planned: interval.planned, misses: interval.late + interval.failed };
}

function describe(share: BatchMeans, allowed: number, cutS: number): string {
  const percent = (value: number): string => `${(100 * value).toFixed(2)} %`;
  const side = share.high <= allowed ? "all within" : share.low > allowed ? "all above" : "on both sides of";
  const dependence =
    share.varianceRatio > 2
      ? ` Requests depend on each other: ${share.varianceRatio.toFixed(0)} are worth one.`
      : "";
  const cut = cutS > 0 ? ` The first ${cutS.toFixed(1)} s are left out: the queue was still filling.` : "";
  return (
    `${percent(share.share)} of the requests missed the SLO, interval ${percent(share.low)} to ${percent(share.high)}, ` +
    `${side} the allowed ${percent(allowed)}.${dependence}${cut}`
  );
}
