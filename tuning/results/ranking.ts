/** Which variant to take, and why. Pure. */
import type { Precision, Variant } from "../../model-repo/variant";
import type { VariantOutcome } from "../outcome";
import { isUnmeasured } from "./unmeasured";

/** A variant with what was found out about it. */
export interface Candidate {
  readonly variant: Variant;
  readonly outcome: VariantOutcome;
}

export interface Ranking {
  /** Rank by name: 1 is best, tied ones share a rank. Variants without an SLO rate are absent. */
  readonly ranks: ReadonlyMap<string, number>;
  readonly recommended: string | null;
  readonly tiedWith: readonly string[];
  readonly reason: string;
}

/** Two GPU-busy shares closer than this are no reason to prefer one variant. */
const notableBusyDifference = 0.05;
const precisionLoss: Readonly<Record<Precision, number>> = { original: 0, fp32: 0, fp16: 1, int8: 2 };

type Rated = Candidate & { readonly outcome: { readonly sloRate: NonNullable<VariantOutcome["sloRate"]> } };

/**
 * Ranks by SLO rate. Variants whose interval overlaps the best one's are tied with it: the data do not tell them apart. Among
 * them the one with more room on the GPU is taken, then the one with fewer instances, less loss of precision, smaller batches.
 */
export function rank(candidates: readonly Candidate[]): Ranking {
  const rated = candidates.filter(isRated).sort((a, b) => rateOf(b) - rateOf(a));
  const excluded = candidates.filter(({ outcome }) => outcome.excluded !== undefined);
  const unmeasured = candidates.filter(isNotKnown);
  const withoutThem = listed(" Excluded", excluded) + listed(" Not known", unmeasured);
  const best = rated[0];
  if (!best)
    return {
      ranks: new Map(),
      recommended: null,
      tiedWith: [],
      reason:
        unmeasured.length + excluded.length === candidates.length && unmeasured.length > 0
          ? `No valid trial near the limit of any variant, so no SLO rate is known.${withoutThem}`
          : `No variant that was measured held the SLO at any rate.${withoutThem}`,
    };
  const tied = rated.filter((candidate) => candidate.outcome.sloRate.high >= best.outcome.sloRate.low);
  const winner = tied.reduce((chosen, next) => (preference(next, chosen) !== null ? next : chosen));
  const others = tied.filter((candidate) => candidate !== winner);
  return {
    ranks: ranksOf(rated),
    recommended: winner.variant.name,
    tiedWith: others.map((candidate) => candidate.variant.name),
    reason: reasonFor(winner, others, rated, unmeasured.length > 0) + withoutThem,
  };
}

function isNotKnown({ outcome }: Candidate): boolean {
  if (outcome.excluded !== undefined) return false;
  const trials = outcome.trials.map(({ spec, result }) => ({
    purpose: spec.purpose,
    valid: result.load.valid,
  }));
  return isUnmeasured({ sloRate: outcome.sloRate, trials });
}

function listed(title: string, some: readonly Candidate[]): string {
  return some.length === 0 ? "" : `${title}: ${some.map(({ variant }) => variant.name).join(", ")}.`;
}

function isRated(candidate: Candidate): candidate is Rated {
  return candidate.outcome.sloRate !== null;
}

function rateOf(candidate: Rated): number {
  return candidate.outcome.sloRate.estimate;
}

/** A rank is shared by all whose interval overlaps that of the rank's first. */
function ranksOf(rated: readonly Rated[]): Map<string, number> {
  const ranks = new Map<string, number>();
  let first: Rated | null = null;
  let current = 0;
  for (const [index, candidate] of rated.entries()) {
    if (first === null || candidate.outcome.sloRate.high < first.outcome.sloRate.low) {
      first = candidate;
      current = index + 1;
    }
    ranks.set(candidate.variant.name, current);
  }
  return ranks;
}

/** Why `a` is to be preferred to `b` at the same rate; null when it is not. */
function preference(a: Rated, b: Rated): string | null {
  const [busyA, busyB] = [a.outcome.gpuBusy, b.outcome.gpuBusy];
  if (busyA !== null && busyB !== null && Math.abs(busyA - busyB) >= notableBusyDifference)
    return busyA < busyB
      ? `leaves more room on the GPU (${percent(busyA)} busy, not ${percent(busyB)})`
      : null;
  const criteria: [number, string][] = [
    [a.variant.instanceCount - b.variant.instanceCount, "needs fewer instances"],
    [
      precisionLoss[a.variant.artefact.precision] - precisionLoss[b.variant.artefact.precision],
      "gives up less precision",
    ],
    [a.variant.maxBatchSize - b.variant.maxBatchSize, "needs smaller batches"],
  ];
  const decisive = criteria.find(([difference]) => difference !== 0);
  return decisive !== undefined && decisive[0] < 0 ? decisive[1] : null;
}

function reasonFor(
  winner: Rated,
  others: readonly Rated[],
  rated: readonly Rated[],
  someNotKnown: boolean,
): string {
  const [firstOther] = others;
  if (firstOther) {
    const names = others.map((candidate) => candidate.variant.name).join(", ");
    const why = preference(winner, firstOther);
    return `Tied with ${names}: the intervals overlap.` + (why === null ? "" : ` Taken since it ${why}.`);
  }
  const next = rated[1];
  if (!next)
    return someNotKnown
      ? "The only variant whose SLO rate is known."
      : "The only variant that held the SLO at some rate.";
  const ratio = rateOf(winner) / rateOf(next);
  const lead =
    ratio < 2
      ? `${percent(ratio - 1)} above the next best`
      : `${ratio.toFixed(1)} times that of the next best`;
  return `Highest SLO rate: ${lead}, ${next.variant.name}; the intervals do not overlap.`;
}

function percent(value: number): string {
  return `${(value * 100).toFixed(value < 0.1 ? 1 : 0)} %`;
}
