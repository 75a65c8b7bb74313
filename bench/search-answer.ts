/** What a sweep of any strategy answers, and how it is scored. */
import type { Diagnosis } from "../tuning/outcome";
import type { TruthCache } from "./search-cache";
import { isRightMove, rightDiagnosis, trueRate } from "./search-truth";
import type { World, WorldKind } from "./search-worlds";

/** Between two trials, model seconds: results are read, the next load is set up. */
export const trialGapS = 2;

export interface SweepAnswer {
  /** Requests/s; null: the SLO holds at no rate. */
  readonly estimate: number | null;
  readonly interval: { readonly low: number; readonly high: number } | null;
  /** The rate that it says may be run at. */
  readonly promised: number | null;
  /** In order; times of the sweep, model seconds. */
  readonly trials: readonly { readonly ratePerS: number; readonly fromS: number; readonly toS: number }[];
  /** Load altogether, model seconds. */
  readonly measuredS: number;
  readonly diagnosis: Diagnosis | null;
}

export interface Score {
  readonly seed: number;
  readonly kind: WorldKind;
  readonly strategy: string;
  readonly truth: number | null;
  /** estimate / truth - 1; -1 when there is a truth but no estimate, Infinity when it is the other way round. */
  readonly error: number;
  readonly covered: boolean;
  readonly falsePass: boolean;
  /** Half the interval's width, relative; null without an interval. */
  readonly halfWidth: number | null;
  /** promised / truth. */
  readonly promisedShare: number | null;
  readonly measuredS: number;
  readonly trials: number;
  /** Null: it names no cause. */
  readonly rightCause: boolean | null;
  readonly rightMove: boolean | null;
  readonly said: string | null;
  readonly right: string | null;
}

/** Trials this near to the reported rate are those that confirm it. */
const confirmingShare = 0.05;

export function scoreOf(strategy: string, answer: SweepAnswer, world: World, truths: TruthCache): Score {
  const { estimate, interval, promised, trials, diagnosis } = answer;
  const endS = trials.at(-1)?.toS ?? 0;
  const near = trials.filter(
    ({ ratePerS }) => estimate !== null && Math.abs(ratePerS / estimate - 1) <= confirmingShare,
  );
  const truth = trueRate(
    world,
    near[0]?.fromS ?? trials.at(-1)?.fromS ?? 0,
    near.at(-1)?.toS ?? endS,
    truths,
  );
  const why = diagnosis === null ? null : rightDiagnosis(world, endS, truths);
  // Where the load generator is the limit there is no change of the server to name.
  const movesCount = why !== null && !why.causes.includes("client-bound");
  return {
    seed: world.seed,
    kind: world.kind,
    strategy,
    truth,
    error:
      truth === null ? (estimate === null ? 0 : Infinity) : estimate === null ? -1 : estimate / truth - 1,
    covered:
      truth === null
        ? interval === null
        : interval !== null && interval.low <= truth && truth <= interval.high,
    falsePass: promised !== null && promised > (truth ?? 0),
    halfWidth: interval === null ? null : (interval.high / interval.low - 1) / 2,
    promisedShare: promised === null || truth === null ? null : promised / truth,
    measuredS: answer.measuredS,
    trials: trials.length,
    rightCause: why === null ? null : why.causes.includes(diagnosis!.cause),
    rightMove: why === null ? null : !movesCount || isRightMove(diagnosis!.nextMove?.change ?? "", why),
    said: diagnosis === null ? null : `${diagnosis.cause}; ${diagnosis.nextMove?.change ?? "-"}`,
    right: why === null ? null : `${why.causes.join("|")}; ${why.moves.join("|")}`,
  };
}
