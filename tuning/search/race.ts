/**
 * Racing between variants: one that is clearly worse than the best one so far gets no more trials. What is left of its answer is one-sided:
 * it holds at most so much. Pure.
 */
import type { RacedOut, VariantOutcome } from "../outcome";
import { bracketOf, contradicts } from "./bracket";
import { halfWidth } from "./estimate";
import type { SearchState } from "./search-state";

/** What has to be beaten. */
export interface Leader {
  readonly variantName: string;
  /** Lower end of the interval of its SLO rate, requests/s. */
  readonly atLeastPerS: number;
}

/** One-sided level of "at most": high, because a variant that is given up by mistake is not looked at again. */
const raceLevel = 0.999;
/** Trials near the knee that agree, before anything is given up; and how near (ln of the load). */
const leastTrials = 2;
const nearKnee = 0.1;
/**
 * Error of an early estimate beyond its own, relative: the knee by a rough simulation, and a server that varies without that showing in so
 * few trials. Measured on random servers (bench/search-worlds.ts): without it, 89 % of the 95 % intervals of searches that ended early
 * held the truth.
 */
export const earlyError = 0.01;

/** The variant whose rate is certain to be the highest so far; null while none has a rate. */
export function leaderOf(outcomes: readonly VariantOutcome[]): Leader | null {
  return outcomes.reduce<Leader | null>((leader, { variantName, sloRate }) => {
    if (sloRate === null || sloRate.low <= (leader?.atLeastPerS ?? 0)) return leader;
    return { variantName, atLeastPerS: sloRate.low };
  }, null);
}

/**
 * Null while the variant may still be as good as the leader. One whose trials disagree, or that its model does not fit, is never given
 * up: what is known of it so early is not certain enough. With users, their number bounds the rate from above: they think for a second.
 */
export function racedOut(state: SearchState, leader: Leader | null): RacedOut | null {
  const { estimate, kneeValue, kneeTrials } = state;
  if (leader === null || estimate === null || kneeValue === null || state.disagrees || state.unsettled)
    return null;
  const near = kneeTrials.filter(({ value }) => Math.abs(Math.log(value / kneeValue)) < nearKnee);
  if (near.length < leastTrials || contradicts(kneeValue, bracketOf(state), state.tolerance)) return null;
  const atMostPerS = kneeValue * Math.exp(halfWidth(estimate, 2 * raceLevel - 1, earlyError));
  if (atMostPerS >= leader.atLeastPerS) return null;
  return {
    leader: leader.variantName,
    leaderAtLeastPerS: leader.atLeastPerS,
    atMostPerS,
    level: raceLevel,
  };
}

/** In a sentence. */
export function racedOutNote({ leader, leaderAtLeastPerS, atMostPerS, level }: RacedOut): string {
  return (
    `Its search was ended early: it holds at most ${atMostPerS.toFixed(0)} requests/s (one-sided, ${(100 * level).toFixed(1)} %), ` +
    `while ${leader} holds at least ${leaderAtLeastPerS.toFixed(0)}. Its own figures are rougher than those of a full search.`
  );
}
