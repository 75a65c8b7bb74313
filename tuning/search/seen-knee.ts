/**
 * Where a server clearly missed the SLO at a load below the knee that its model has, and far more than the model lets expect, the model's
 * shape is wrong there: a real knee is flatter. How the trials' own excesses grow with the load then says where it is. Pure.
 */
import { clearMiss } from "./bracket";
import type { KneeTrial } from "./knee-trials";

/** A trial and its y beyond what the model has at the estimated speed and this load. */
export interface ComparedTrial {
  readonly trial: KneeTrial;
  readonly surprise: number;
}

/** Loads (requests/s, or users); low <= estimate <= high. */
export interface SeenKnee {
  readonly estimate: number;
  readonly low: number;
  /** The lowest load that was clearly missed. */
  readonly high: number;
}

/** Less is chance, or a spell: y of steady servers deviates by about 0.04 (estimate.ts). */
const leastSurprise = 0.25;
/** Trials further (y) from the bound are in another regime: saturated. */
const near = 1;
/** Standard error of a trial's y: chance, and the bend of what is taken for a straight line. */
const excessError = 0.06;
/** y rises with the load (ln) at least like this near a knee: a tenth more load, a tenth more time. */
const leastSlope = 1;
/** Two-sided 95 %. */
const sigmas = 1.96;

/** Null where no trial contradicts this knee like that, or trials contradict each other. */
export function seenKnee(compared: readonly ComparedTrial[], kneeValue: number): SeenKnee | null {
  const missed = compared.filter(
    ({ trial: { judged, excess }, surprise }) =>
      judged.verdict === "fail" && excess > clearMiss && surprise > leastSurprise,
  );
  const high = Math.min(...missed.map(({ trial }) => trial.value));
  const trials = compared.map(({ trial }) => trial);
  if (high >= kneeValue || trials.some(({ value, excess }) => value >= high && excess <= 0)) return null;
  const line = lineOf(trials.filter(({ excess }) => Math.abs(excess) < near));
  if (line === null) return null;
  const atMost = (log: number): number => Math.min(high, Math.exp(log));
  return { estimate: atMost(line.logKnee), low: atMost(line.logKnee - sigmas * line.standardError), high };
}

/** Least squares of y over ln load; null with fewer than two loads. */
function lineOf(trials: readonly KneeTrial[]): { logKnee: number; standardError: number } | null {
  const x = mean(trials.map(({ value }) => Math.log(value)));
  const y = mean(trials.map(({ excess }) => excess));
  let [squares, products] = [0, 0];
  for (const { value, excess } of trials) {
    squares += (Math.log(value) - x) ** 2;
    products += (Math.log(value) - x) * (excess - y);
  }
  if (!(squares > 0)) return null;
  const slope = Math.max(leastSlope, products / squares);
  const logKnee = x - y / slope;
  const leverage = 1 / trials.length + (logKnee - x) ** 2 / squares;
  return { logKnee, standardError: (excessError * Math.sqrt(leverage)) / slope };
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
