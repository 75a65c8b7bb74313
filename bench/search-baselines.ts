/**
 * What people do today, as fixed strategies: the rate is doubled until a trial fails, then bisected to 2 %. They differ in how long a
 * trial is and how it is judged.
 */
import { Random } from "../serving-model/random";
import { simulate } from "../serving-model/simulate";
import { percentileMs } from "../serving-model/latency-bins";
import { binomialVerdict, leastRequests } from "../tuning/statistics/binomial";
import { trialGapS, type SweepAnswer } from "./search-answer";
import type { World } from "./search-worlds";

export interface Baseline {
  readonly name: string;
  /** Runs trials one after the other, from `startedS` of the sweep's time. */
  trial(world: World, ratePerS: number, startedS: number, seed: number): { passed: boolean; lengthS: number };
}

const firstRatePerS = 8;
const lastRatio = 1.02;
const commonWarmupS = 5;
const commonWindowS = 30;
/** Confidence of LoadGen's early-stopping test. */
const loadgenConfidence = 0.99;
/** Requests, as a multiple of the fewest that can pass. */
const enoughRequests = 1.5;
/** perf_analyzer's defaults: windows of 5 s, three in a row within 10 %, at most ten. */
const analyzer = { windowS: 5, mostWindows: 10, inARow: 3, tolerance: 0.1 } as const;

function windowOf(
  world: World,
  ratePerS: number,
  startedS: number,
  seed: number,
  warmupS: number,
  measureS: number,
) {
  return simulate(world.server(seed, startedS), {
    shape: { kind: "poisson", ratePerS },
    seed,
    warmupS,
    measureS,
    sloBoundMs: world.slo.boundMs - world.overheadMs,
    // Twice the bound's worth: beyond it the trial has failed.
    maxInFlight: Math.max(256, Math.ceil((ratePerS * world.slo.boundMs) / 100)),
  });
}

const common: Baseline = {
  name: "doubling and bisection, 30 s, point percentile (the common rule)",
  trial: (world, ratePerS, startedS, seed) => {
    const run = windowOf(world, ratePerS, startedS, seed, commonWarmupS, commonWindowS);
    return { passed: run.missShare <= 1 - world.slo.quantile, lengthS: commonWarmupS + commonWindowS };
  },
};

const loadgen: Baseline = {
  name: "doubling and bisection, 30 s, LoadGen's binomial test",
  trial: (world, ratePerS, startedS, seed) => {
    // As LoadGen does, it runs on until there are enough requests for a pass at all.
    const least = leastRequests(0, world.slo.quantile, loadgenConfidence);
    const windowS = Math.max(commonWindowS, (enoughRequests * least) / ratePerS);
    const { planned, late } = windowOf(world, ratePerS, startedS, seed, commonWarmupS, windowS);
    const verdict = binomialVerdict(planned, late, world.slo.quantile, loadgenConfidence);
    return { passed: verdict === "pass", lengthS: commonWarmupS + windowS };
  },
};

const perfAnalyzer: Baseline = {
  name: "doubling and bisection, perf_analyzer's three stable windows",
  trial: (world, ratePerS, startedS, seed) => {
    const { windowS, mostWindows, inARow, tolerance } = analyzer;
    const windows: { throughputPerS: number; quantileMs: number; planned: number; late: number }[] = [];
    while (windows.length < mostWindows) {
      // The same run, a window later.
      const run = windowOf(world, ratePerS, startedS, seed, windows.length * windowS, windowS);
      const { throughputPerS, planned, late } = run;
      windows.push({
        throughputPerS,
        planned,
        late,
        quantileMs: percentileMs(run.responseCounts, world.slo.quantile),
      });
      const last = windows.slice(-inARow);
      const steady = (pick: (window: (typeof windows)[number]) => number): boolean => {
        const mean = last.reduce((sum, window) => sum + pick(window), 0) / last.length;
        return last.every((window) => Math.abs(pick(window) / mean - 1) <= tolerance);
      };
      if (last.length < inARow || !steady((w) => w.throughputPerS) || !steady((w) => w.quantileMs)) continue;
      const sum = (pick: (window: (typeof windows)[number]) => number): number =>
        last.reduce((total, window) => total + pick(window), 0);
      const passed = sum((w) => w.late) <= (1 - world.slo.quantile) * sum((w) => w.planned);
      return { passed, lengthS: windows.length * windowS };
    }
    // Never steady: no measurement.
    return { passed: false, lengthS: mostWindows * windowS };
  },
};

export const baselines: readonly Baseline[] = [common, loadgen, perfAnalyzer];

/** One sweep of a baseline in a world. */
export function runBaseline(baseline: Baseline, world: World): SweepAnswer {
  const seeds = new Random(world.seed * 31 + 5);
  const trials: { ratePerS: number; fromS: number; toS: number }[] = [];
  let nowS = 0;
  let loadedS = 0;
  const holds = (ratePerS: number): boolean => {
    const { passed, lengthS } = baseline.trial(world, ratePerS, nowS, seeds.nextUint32());
    trials.push({ ratePerS, fromS: nowS, toS: nowS + lengthS });
    nowS += lengthS + trialGapS;
    loadedS += lengthS;
    return passed && ratePerS <= world.offerablePerS;
  };
  let low = 0;
  let high = firstRatePerS;
  while (holds(high)) {
    low = high;
    high *= 2;
  }
  while (low > 0 && high / low > lastRatio) {
    const middle = Math.sqrt(low * high);
    if (holds(middle)) low = middle;
    else high = middle;
  }
  const found = low > 0;
  return {
    estimate: found ? low : null,
    interval: found ? { low, high } : null,
    promised: found ? low : null,
    trials,
    measuredS: loadedS,
    diagnosis: null,
  };
}
