/** Puts the trials' speed fits together into the knee's place with its uncertainty. */
import { studentTQuantile } from "../statistics/special";
import type { SpeedFit } from "./speed-fit";
import { wobbleOf } from "./time-course";

/** One trial's fit and the load it was made at. */
export interface PlacedFit {
  /** ln of requests/s or users. */
  readonly logValue: number;
  readonly fit: SpeedFit;
}

export interface SpeedEstimate {
  /** Speed of the server against its model, at the knee. */
  readonly logSpeed: number;
  /** How much the fitted speed changes with the load: 0 when the model has the right shape, towards 1 when the real knee is flatter. */
  readonly trend: number;
  /** Standard error of the knee's place, in ln of the load; widened by the scatter of the trials. */
  readonly standardError: number;
  readonly degreesOfFreedom: number;
  /** Standard deviation (ln) of the server's speed from trial to trial, beyond what is expected of a steady one. */
  readonly spread: number;
  /** Scatter of the trials over what was expected of them; about 1 when the model fits. */
  readonly scatter: number;
}

/** Constants of the error model, found on simulated sweeps with known truth (bench/search.ts). */
export interface ErrorModel {
  /** Standard deviation of the probe's prediction: ln of the speed. */
  readonly prior: number;
  /** ln of the speed that is expected before any trial. */
  readonly priorAt: number;
  /** Standard deviation of `trend` before any trial. */
  readonly shape: number;
  /** Error of a trial's fit that does not depend on where it was made. */
  readonly floor: number;
  /** Error of a trial's fit per distance (ln of the load) from the knee: what the model's shape makes of far trials. */
  readonly far: number;
  /** Error of a measured y; divided by the slope it is an error of the speed. */
  readonly excess: number;
  /** Error of a limit: a trial that missed so thoroughly that only "no faster than this" is known. */
  readonly limit: number;
  /** Weight of the expectation "scatter = 1", in trials. */
  readonly scatterWeight: number;
}

export const defaultErrorModel: ErrorModel = {
  prior: 0.05,
  priorAt: 0,
  shape: 0.15,
  floor: 0.004,
  far: 0.1,
  excess: 0.04,
  limit: 0.015,
  scatterWeight: 3,
};

/** Largest trend that is believed: at 1 the load would not matter at all. */
const mostTrend = 0.7;

/**
 * Bayesian regression of the fitted speed on the load: speed_j = speed + trend x (ln load_j - centre) + error_j, with a prior on both
 * that says "the model is right". The knee is the load whose own speed puts the model's knee there; with a trend it lies
 * 1 / (1 - trend) times as far from the trials as without. The expected variance of an error contains the squared wobble of the trials'
 * seconds (time-course.ts): a trial's percentile is made by its worst spells, so trials differ by about as much as seconds do, however
 * many seconds they have. On 39 random servers with a wobble over 0.4 % (bench/search-worlds.ts), the standard deviation of trials was
 * 0.9 to 1.6 times the wobble (quartiles).
 * @param logKnee ln of the model's knee at a given speed
 */
export function combineFits(
  fits: readonly PlacedFit[],
  logKnee: (logSpeed: number) => number,
  model: ErrorModel = defaultErrorModel,
): SpeedEstimate {
  let knee = logKnee(0);
  let estimate = estimateNear(knee, fits, logKnee, model);
  // Distances depend on the knee that is sought.
  for (let round = 0; round < 4; round++) {
    knee = logKnee(estimate.logSpeed);
    estimate = estimateNear(knee, fits, logKnee, model);
  }
  return estimate;
}

function estimateNear(
  about: number,
  fits: readonly PlacedFit[],
  logKnee: (logSpeed: number) => number,
  model: ErrorModel,
): SpeedEstimate {
  const wobble = wobbleOf(fits.map(({ fit }) => fit.course));
  const place = (placed: PlacedFit): Row => rowOf(placed, about, model, wobble);
  const proper = fits.filter(({ fit }) => fit.slope > 0).map(place);
  // Trials that only say "no faster than this" count where the others say that it is.
  const speed = fitLine(proper, 1, model, about, 0).level;
  const broken = fits.filter(({ fit }) => fit.slope <= 0 && fit.logSpeed < speed);
  const rows = [...proper, ...broken.map(place)];
  const degreesOfFreedom = model.scatterWeight + Math.max(0, rows.length - 1);
  let scatter = 1;
  let line = fitLine(rows, scatter, model, about, 0);
  // The wider the scatter, the less the trials say against the prior: each depends on the other.
  for (let round = 0; round < 8; round++) {
    scatter = Math.sqrt((model.scatterWeight + line.squares) / degreesOfFreedom);
    line = fitLine(rows, scatter, model, about, line.trend);
  }
  const { level, trend, centre } = line;
  let knee = logKnee(level);
  for (let round = 0; round < 20; round++) {
    const step = logKnee(level + trend * (knee - centre)) - knee;
    knee += step / (1 - trend);
    if (Math.abs(step) < 1e-6) break;
  }
  const standardError =
    Math.sqrt(line.levelVariance + (knee - centre) ** 2 * line.trendVariance) / (1 - trend);
  const logSpeed = level + trend * (knee - centre);
  return { logSpeed, trend, standardError, degreesOfFreedom, spread: spreadOf(rows, scatter), scatter };
}

/** What the scatter leaves beyond the errors expected of a steady server, as one more error of all trials' speeds. */
function spreadOf(rows: readonly Row[], scatter: number): number {
  if (rows.length < 2) return 0;
  // Of the better half: far trials are expected to be off anyway.
  const near = [...rows].sort((a, b) => b.weight - a.weight).slice(0, Math.ceil(rows.length / 2));
  const beyond =
    near.reduce((sum, { weight, steady }) => sum + scatter ** 2 / weight - steady, 0) / near.length;
  return Math.sqrt(Math.max(0, beyond));
}

interface Row {
  readonly at: number;
  readonly speed: number;
  /** 1 / expected variance. */
  readonly weight: number;
  /** The variance that would be expected of a steady server. */
  readonly steady: number;
}

function rowOf({ logValue, fit }: PlacedFit, about: number, model: ErrorModel, wobble: number): Row {
  const own = fit.slope > 0 ? model.floor ** 2 + (model.excess / fit.slope) ** 2 : model.limit ** 2;
  const steady = own + (model.far * (logValue - about)) ** 2;
  return { at: logValue, speed: fit.logSpeed, weight: 1 / (steady + wobble ** 2), steady };
}

interface Line {
  readonly level: number;
  readonly trend: number;
  readonly centre: number;
  readonly levelVariance: number;
  readonly trendVariance: number;
  /** Sum of squared residuals over expected variances. */
  readonly squares: number;
}

/**
 * @param trendBefore that of the last round: the prior on it has long tails (Cauchy), so that a server which does not have the model's shape
 *   is believed once its trials say so clearly
 */
function fitLine(
  rows: readonly Row[],
  scatter: number,
  model: ErrorModel,
  without: number,
  trendBefore: number,
): Line {
  const total = rows.reduce((sum, { weight }) => sum + weight, 0);
  const centre = total > 0 ? rows.reduce((sum, { at, weight }) => sum + weight * at, 0) / total : without;
  let [a22, b1, b2] = [2 / (2 * model.shape ** 2 + trendBefore ** 2), model.priorAt / model.prior ** 2, 0];
  for (const { at, speed, weight } of rows) {
    const w = weight / scatter ** 2;
    a22 += w * (at - centre) ** 2;
    b1 += w * speed;
    b2 += w * speed * (at - centre);
  }
  // Around the weighted centre the two unknowns do not depend on each other.
  const a11 = total / scatter ** 2 + 1 / model.prior ** 2;
  const level = b1 / a11;
  const trend = Math.max(-mostTrend, Math.min(mostTrend, b2 / a22));
  const squares = rows.reduce(
    (sum, { at, speed, weight }) => sum + weight * (speed - level - trend * (at - centre)) ** 2,
    0,
  );
  return { level, trend, centre, levelVariance: 1 / a11, trendVariance: 1 / a22, squares };
}

/** Half width of the two-sided interval of the knee's place, in ln of the load. */
export function halfWidth(estimate: SpeedEstimate, level: number, more = 0): number {
  return (
    studentTQuantile(0.5 + level / 2, estimate.degreesOfFreedom) * Math.hypot(estimate.standardError, more)
  );
}
