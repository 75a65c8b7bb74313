/**
 * Interval of the miss share under autocorrelation. Neighbouring requests share a queue, so near the knee n requests are worth
 * far fewer independent ones. Batch means (Conway 1963; Schmeiser 1982): the window is cut into batches so long that their
 * means hardly depend on each other; their spread gives the variance. Counts per batch are random, so the share is a ratio
 * estimator (Cochran, Sampling Techniques, 6.3).
 */
import { shareInterval } from "./binomial";
import { normalQuantile, studentTQuantile } from "./special";

/** Counts of one interval of the window. */
export interface CountedInterval {
  readonly planned: number;
  /** Late or failed. */
  readonly misses: number;
}

export interface BatchMeans {
  readonly share: number;
  readonly low: number;
  readonly high: number;
  readonly level: number;
  /** Standard error of the share; 0 when nothing varies. */
  readonly standardError: number;
  /** Intervals per batch that the automatic choice ended at. */
  readonly intervalsPerBatch: number;
  readonly batches: number;
  /** Lag-1 autocorrelation of the batches. */
  readonly lag1: number;
  /** Requests over the number of independent ones that would give the same variance, >= 1. */
  readonly varianceRatio: number;
  /** False when even the longest batches depend on each other: the interval is then a lower limit of the uncertainty. */
  readonly independent: boolean;
}

/** Fewest batches that still give a usable variance (Schmeiser 1982: 10 to 30). */
const LEAST_BATCHES = 10;

/**
 * Batches are doubled until their lag-1 autocorrelation is no longer significantly positive (von Neumann's test at 5 %), while
 * at least 10 batches remain; what correlation is left widens the variance as for a first-order autoregression. The limits come
 * from Clopper and Pearson at the effective number of requests, so they stay in 0..1. Without any miss (or with nothing else)
 * nothing varies, and the window counts as `independentParts` requests.
 * @param independentParts about how many independent moments the window holds: its length over the SLO bound, because a queue in
 *   which nobody waits longer than the bound has forgotten what was before.
 * @throws RangeError when nothing was planned.
 */
export function batchMeansOf(
  intervals: readonly CountedInterval[],
  independentParts: number,
  level = 0.95,
): BatchMeans {
  const planned = intervals.reduce((sum, interval) => sum + interval.planned, 0);
  const misses = intervals.reduce((sum, interval) => sum + interval.misses, 0);
  if (planned === 0) throw new RangeError("No request was planned: there is no miss share.");
  const share = misses / planned;
  const chosen = chooseBatches(intervals, share);
  const standardError = Math.sqrt(chosen.variance) / planned;
  const binomialVariance = (share * (1 - share)) / planned;
  const degenerate = binomialVariance === 0;
  const ratio = Math.max(1, degenerate ? planned / independentParts : standardError ** 2 / binomialVariance);
  // Student's t for the few batches that the variance comes from, as a smaller effective count.
  const t = studentTQuantile(0.5 + level / 2, Math.max(1, chosen.batches - 1));
  const widened = degenerate ? ratio : ratio * (t / normalQuantile(0.5 + level / 2)) ** 2;
  const { low, high } = shareInterval(planned / widened, misses / widened, level);
  return {
    share,
    low,
    high,
    level,
    standardError,
    intervalsPerBatch: chosen.size,
    batches: chosen.batches,
    lag1: chosen.lag1,
    varianceRatio: ratio,
    independent: chosen.independent,
  };
}

interface Batching {
  readonly size: number;
  readonly batches: number;
  readonly lag1: number;
  /** Variance of the window's sum of misses minus share x planned. */
  readonly variance: number;
  readonly independent: boolean;
}

function chooseBatches(intervals: readonly CountedInterval[], share: number): Batching {
  let last = batching(intervals, share, 1);
  for (let size = 2; !last.independent && Math.floor(intervals.length / size) >= LEAST_BATCHES; size *= 2) {
    last = batching(intervals, share, size);
  }
  return last;
}

function batching(intervals: readonly CountedInterval[], share: number, size: number): Batching {
  const batches = Math.max(1, Math.floor(intervals.length / size));
  const residuals = new Array<number>(batches).fill(0);
  intervals.forEach((interval, i) => {
    // A rest that fills no batch goes into the last one.
    residuals[Math.min(batches - 1, Math.floor(i / size))]! += interval.misses - share * interval.planned;
  });
  const squares = residuals.reduce((sum, residual) => sum + residual ** 2, 0);
  if (batches < 2 || squares === 0) return { size, batches, lag1: 0, variance: 0, independent: batches >= 2 };
  let products = 0;
  for (let i = 1; i < batches; i++) products += residuals[i]! * residuals[i - 1]!;
  const lag1 = products / squares;
  const left = Math.min(0.9, Math.max(0, lag1));
  const variance = (squares * batches * (1 + left)) / ((batches - 1) * (1 - left));
  return { size, batches, lag1, variance, independent: lag1 <= normalQuantile(0.95) / Math.sqrt(batches) };
}
