/** The documents' own question: is a given rate reached, by which variant, with how much room? Pure. */
import type { Candidate } from "./ranking";
import type { Result } from "./result-schema";

/**
 * A variant reaches the goal for sure when its operating rate (99 % bound) does; the goal is missed for sure when every interval
 * ends below it; anything else is uncertain, and says so.
 */
export function answerGoal(ratePerS: number, candidates: readonly Candidate[]): NonNullable<Result["goal"]> {
  const operatingRate = (candidate: Candidate) => candidate.outcome.operatingRate ?? 0;
  const reaching = candidates
    .filter((candidate) => operatingRate(candidate) >= ratePerS)
    .sort((a, b) => operatingRate(b) - operatingRate(a));
  const goal = `${rounded(ratePerS)} requests/s`;
  const [best] = reaching;
  if (best) {
    const room = operatingRate(best) / ratePerS - 1;
    const reachedBy = reaching.map((candidate) => candidate.variant.name);
    const also = reachedBy.length > 1 ? ` Also reached by ${reachedBy.slice(1).join(", ")}.` : "";
    return {
      ratePerS,
      answer: "yes",
      variant: best.variant.name,
      reachedBy,
      room,
      summary: `The goal of ${goal} is reached by ${best.variant.name} with ${(room * 100).toFixed(0)} % to spare.${also}`,
    };
  }
  const possible = candidates
    .filter((candidate) => (candidate.outcome.sloRate?.high ?? 0) >= ratePerS)
    .sort((a, b) => (b.outcome.sloRate?.estimate ?? 0) - (a.outcome.sloRate?.estimate ?? 0));
  const [likely] = possible;
  if (likely)
    return {
      ratePerS,
      answer: "uncertain",
      variant: likely.variant.name,
      reachedBy: [],
      room: operatingRate(likely) / ratePerS - 1,
      summary:
        `Whether ${likely.variant.name} reaches the goal of ${goal} cannot be told from these trials: the goal lies ` +
        `above its operating rate and not above its interval. Measure longer with --thorough.`,
    };
  return {
    ratePerS,
    answer: "no",
    variant: null,
    reachedBy: [],
    room: null,
    summary: `No variant that was measured reaches the goal of ${goal} on one replica.`,
  };
}

function rounded(value: number): string {
  return Math.round(value).toLocaleString("en-US");
}
