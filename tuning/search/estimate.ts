/** Puts the trials' speed fits together into the SLO rate with its interval. */
import { studentTQuantile } from "../statistics/special";
import type { SpeedFit } from "./speed-fit";

/** One trial's fit and the load it was made at. */
export interface PlacedFit {
  /** ln of requests/s or users. */
  readonly logValue: number;
  readonly fit: SpeedFit;
}

export interface SpeedEstimate {
  readonly logSpeed: number;
  /** Standard error of logSpeed, widened by the scatter of the trials. */
  readonly standardError: number;
  readonly degreesOfFreedom: number;
  /** Scatter of the trials over what was expected of them; about 1 when the model fits. */
  readonly scatter: number;
}

/** Constants of the error model, found on simulated sweeps with known truth (bench/search.ts). */
export interface ErrorModel {
  /** Standard deviation of the probe's prediction: ln of the speed. */
  readonly prior: number;
  /** Error of a trial's fit that does not depend on where it was made. */
  readonly floor: number;
  /** Error of a measured y; divided by the slope it is an error of the speed. */
  readonly excess: number;
  /** Error of the model's shape: share of the distance between trial and knee. */
  readonly shape: number;
  /** Weight of the expectation "scatter = 1", in trials. */
  readonly scatterWeight: number;
}

export const defaultErrorModel: ErrorModel = { prior: 0.02, floor: 0.004, excess: 0.03, shape: 0.12, scatterWeight: 4 };

/**
 * Weighted mean of the fits and of the prior (the model as the probe found it: logSpeed 0). Trials near the knee count most,
 * because the model's shape matters least there. The standard error grows with the scatter between trials.
 * @param logKnee ln of the knee's load at a given logSpeed
 */
export function combineFits(
  fits: readonly PlacedFit[],
  logKnee: (logSpeed: number) => number,
  model: ErrorModel = defaultErrorModel,
): SpeedEstimate {
  let logSpeed = 0;
  let errors: number[] = [];
  let weight = 1 / model.prior ** 2;
  for (let round = 0; round < 4; round++) {
    const at = logKnee(logSpeed);
    errors = fits.map(({ logValue, fit }) => errorOf(fit, logValue - at, model));
    weight = 1 / model.prior ** 2;
    let sum = 0;
    fits.forEach(({ fit }, j) => {
      weight += 1 / errors[j]! ** 2;
      sum += fit.logSpeed / errors[j]! ** 2;
    });
    logSpeed = sum / weight;
  }
  const residuals = fits.map(({ fit }, j) => (fit.logSpeed - logSpeed) / errors[j]!);
  const squares = residuals.reduce((sum, residual) => sum + residual ** 2, 0);
  const degreesOfFreedom = model.scatterWeight + Math.max(0, fits.length - 1);
  const scatter = Math.sqrt((model.scatterWeight + squares) / (model.scatterWeight + Math.max(0, fits.length - 1)));
  return { logSpeed, standardError: scatter / Math.sqrt(weight), degreesOfFreedom, scatter };
}

function errorOf(fit: SpeedFit, distance: number, model: ErrorModel): number {
  if (fit.slope <= 0) return Infinity;
  return Math.hypot(model.floor, model.excess / fit.slope, model.shape * distance);
}

/** Half width of the two-sided interval, in ln of the speed. */
export function halfWidth(estimate: SpeedEstimate, level: number, more = 0): number {
  return studentTQuantile(0.5 + level / 2, estimate.degreesOfFreedom) * Math.hypot(estimate.standardError, more);
}
