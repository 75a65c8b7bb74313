/** Whether a window shows a steady state: saturation (a queue that grows) and warm-up (a queue that still fills). */
import { normalQuantile } from "./special";

/** What the tests need of one interval of the window. */
export interface WatchedInterval {
  readonly planned: number;
  /** In flight at the interval's end. */
  readonly inFlight: number;
  /** Part of the misses that was never sent because of the in-flight cap. */
  readonly shed: number;
}

export interface Growth {
  /** Growth of the number in flight, requests a second: last third of the window against the first. */
  readonly perS: number;
  /** Growth over what chance alone explains, in standard deviations. */
  readonly z: number;
  /** Mean number in flight over the last third. */
  readonly finalInFlight: number;
  /** The queue grows for certain, and its requests wait longer than the bound. */
  readonly saturated: boolean;
}

/**
 * Saturation. At the very edge, where the mean load equals the capacity, the queue is a random walk without drift; with Poisson
 * arrivals its variance is one request per request. A queue that grows three standard deviations faster has a drift: the load is
 * over the capacity. It is called saturated when, besides, a request that arrives at the end waits longer than the bound (Little's
 * law), or when requests were shed at the end.
 */
export function growthOf(
  intervals: readonly WatchedInterval[],
  intervalS: number,
  boundMs: number,
  randomArrivals: boolean,
): Growth {
  const third = Math.max(1, Math.floor(intervals.length / 3));
  const first = intervals.slice(0, third);
  const last = intervals.slice(-third);
  const finalInFlight = mean(last.map((interval) => interval.inFlight));
  const grown = finalInFlight - mean(first.map((interval) => interval.inFlight));
  const elapsedS = (intervals.length - third) * intervalS;
  if (elapsedS <= 0) return { perS: 0, z: 0, finalInFlight, saturated: false };
  const ratePerS = mean(intervals.map((interval) => interval.planned)) / intervalS;
  // Beside the arrivals' chance, one batch more or less is nothing: a tenth of what the bound lets wait.
  const chance = Math.sqrt(
    (randomArrivals ? ratePerS * elapsedS : 0) + ((ratePerS * boundMs) / 10_000) ** 2 + 1,
  );
  const z = grown / chance;
  const waitsTooLong = finalInFlight > (ratePerS * boundMs) / 1000;
  const sheds = last.every((interval) => interval.shed > 0);
  return {
    perS: grown / elapsedS,
    z,
    finalInFlight,
    saturated: (z > normalQuantile(0.9987) && waitsTooLong) || sheds,
  };
}

/**
 * Warm-up: how many intervals at the start to leave out, by MSER (White 1997): the cut that gives the rest's mean the smallest
 * standard error. At most half of the window; 0 unless what is cut lies below the rest, because only a queue that is still
 * filling makes a verdict too mild.
 * @param means a figure per interval, such as the mean response time; NaN where nothing was answered.
 */
export function warmUpIntervals(means: readonly number[]): number {
  let best = 0;
  let bestError = Infinity;
  for (let cut = 0; cut <= means.length / 2; cut++) {
    const rest = means.slice(cut).filter((value) => !Number.isNaN(value));
    if (rest.length < 2) break;
    const average = mean(rest);
    const error = rest.reduce((sum, value) => sum + (value - average) ** 2, 0) / rest.length ** 2;
    if (error < bestError) {
      bestError = error;
      best = cut;
    }
  }
  const cutOff = means.slice(0, best).filter((value) => !Number.isNaN(value));
  return cutOff.length > 0 &&
    Math.max(...cutOff) < mean(means.slice(best).filter((value) => !Number.isNaN(value)))
    ? best
    : 0;
}

function mean(values: readonly number[]): number {
  return values.length === 0 ? NaN : values.reduce((sum, value) => sum + value, 0) / values.length;
}
