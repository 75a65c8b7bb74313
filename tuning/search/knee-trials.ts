/** What trials near the knee say without a model. Pure. */
import type { JudgedTrial } from "../outcome";
import type { PlacedFit } from "./estimate";

/** A trial on the searched axis, with what it says. */
export interface KneeTrial {
  readonly judged: JudgedTrial;
  /** Requests/s, or users. */
  readonly value: number;
  /** ln(quantile / bound): the SLO holds where it is <= 0. */
  readonly excess: number;
}

/** y this far from 0 is on one side of the knee without doubt, whatever the model says. */
const clearExcess = 0.5;

/** Largest load that held without doubt, and smallest that did not; 0 and Infinity when there is none. */
export function clearLoads(trials: readonly KneeTrial[]): { low: number; high: number } {
  let low = 0;
  let high = Infinity;
  for (const { value, excess } of trials) {
    if (excess < -clearExcess) low = Math.max(low, value);
    if (excess > clearExcess) high = Math.min(high, value);
  }
  // Contradicting trials say nothing.
  return low < high ? { low, high } : { low: 0, high: Infinity };
}

/** Trials in a row, up to the last one, that missed so thoroughly that they only give a limit. */
export function thoroughMissesOf(fits: readonly PlacedFit[]): number {
  let count = 0;
  for (const { fit } of [...fits].reverse()) {
    if (fit.slope > 0 || fit.logSpeed > 0) break;
    count++;
  }
  return count;
}
