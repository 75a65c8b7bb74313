/**
 * What the trials alone say, without a model: the highest rate that held and the lowest that did not. A fitted model places the knee
 * between them more precisely than bisection could; where it places it elsewhere, the model is wrong and the trials are right.
 */
import type { Interval } from "../outcome";
import type { KneeTrial } from "./knee-trials";
import type { SearchState } from "./search-state";

export interface TrialBracket {
  /** Highest load whose trial held the SLO and lies below every load that clearly missed it; 0 when there is none. */
  readonly held: number;
  /** The same among trials that passed by their verdict; one that only looks held may be a matter of chance. */
  readonly clearlyHeld: number;
  /** Lowest load whose trial clearly missed the SLO; Infinity when there is none. */
  readonly missed: number;
  /** Highest load that was tried; 0 when there is none. */
  readonly highest: number;
  /** Lowest load that was tried; Infinity when there is none. */
  readonly lowest: number;
}

/** ln(quantile / bound) from which a miss is no matter of chance: a tenth over the bound. */
export const clearMiss = 0.1;

export function bracketOf(state: SearchState): TrialBracket {
  const missed = Math.min(
    ...state.kneeTrials.filter(({ excess }) => excess > clearMiss).map(({ value }) => value),
  );
  const below = state.kneeTrials.filter(({ excess, value }) => excess <= 0 && value < missed);
  const highestOf = (trials: readonly KneeTrial[]): number =>
    Math.max(0, ...trials.map(({ value }) => value));
  return {
    held: highestOf(below),
    clearlyHeld: highestOf(below.filter(({ judged }) => judged.verdict === "pass")),
    missed,
    highest: highestOf(state.kneeTrials),
    lowest: Math.min(...state.kneeTrials.map(({ value }) => value)),
  };
}

/** The knee may lie this far outside the trials' bracket by chance: the trials are short, and the model averages over them. */
export const steadyTolerance = 0.04;

/** A knee this far above or below every trial has not been seen by any. */
const unseen = 1.08;

/**
 * Whether the model's knee contradicts the trials, lies where no trial has been, or there is none.
 * @param tolerance how far the knee may lie outside the trials' bracket by chance, relative
 */
export function contradicts(kneeValue: number | null, bracket: TrialBracket, tolerance: number): boolean {
  const { clearlyHeld, missed, highest } = bracket;
  if (kneeValue === null || liesBelowAllTrials(kneeValue, bracket)) return true;
  if (kneeValue > highest * unseen) return true;
  return kneeValue > missed * (1 + tolerance) || kneeValue < clearlyHeld * (1 - tolerance);
}

/**
 * An interval that ends no further out than what trials have clearly shown, and by chance; the estimate lies within that (see `contradicts`).
 * Where a model leaves the limit wide open, a load that clearly held it is still known.
 * @param perLoad requests/s of a unit of load
 */
export function endingWithin(
  interval: Interval,
  { clearlyHeld, missed }: TrialBracket,
  tolerance: number,
  perLoad: number,
): Interval {
  const { estimate, low, high } = interval;
  return {
    ...interval,
    low: Math.min(estimate, Math.max(low, clearlyHeld * perLoad * (1 - tolerance))),
    high: Math.max(estimate, Math.min(high, missed * perLoad * (1 + tolerance))),
  };
}

/** Whether all trials were made well above the model's knee: then none of them says where below it lies. */
export function liesBelowAllTrials(kneeValue: number, { lowest }: TrialBracket): boolean {
  return lowest < Infinity && kneeValue * unseen < lowest;
}

/** Load that the load generator cannot offer, as far as is known; Infinity when no limit is known. */
export function offerableLimit({ options: { facts, mode }, lostAt }: SearchState): number {
  return Math.min(mode === "users" ? Infinity : (facts.clientCeilingPerS ?? Infinity), lostAt);
}
