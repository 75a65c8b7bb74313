/** What the fitted model predicts from each configuration change, and which one is advised. */
import type { NextMove } from "../outcome";
import { candidatesOf, type ChangeContext, worthwhileGain } from "./candidates";
import { gainOf, type Prediction } from "./relief";

export interface MoveContext extends ChangeContext {
  readonly prediction: Prediction;
  /** SLO rate of the variant as measured: gains are applied to it. */
  readonly sloRate: number;
}

/** Gains within one per cent are the same: the model is no better than that. */
const sameGain = 0.01;

interface RankedMove extends NextMove {
  readonly effort: number;
  readonly instances: number;
}

/** All changes with their predicted gains, the largest gain first; of those that gain as much as the best, the simplest first. */
export function movesOf(context: MoveContext): NextMove[] {
  return ranked(context).filter(({ instances }) => instances <= context.instancesAllowed);
}

/** What to do next. */
export interface Advice {
  /** The change with the largest predicted gain; another replica when no change of configuration gains enough. */
  readonly nextMove: NextMove;
  /** More instances would gain more than anything else, but the memory does not hold them. */
  readonly blockedByMemory: boolean;
}

export function adviceFor(context: MoveContext): Advice {
  const all = ranked(context);
  const [best] = all;
  const possible = all.filter(({ instances }) => instances <= context.instancesAllowed);
  const gain = possible[0]?.predictedGain ?? -1;
  const blockedByMemory =
    best !== undefined &&
    best.instances > context.instancesAllowed &&
    best.predictedGain >= Math.max(worthwhileGain, gain + sameGain);
  return {
    nextMove: possible[0] && gain >= worthwhileGain ? moveOf(possible[0]) : replica(context),
    blockedByMemory,
  };
}

function ranked(context: MoveContext): RankedMove[] {
  const tried = candidatesOf({ ...context, instancesAllowed: Infinity }).map((candidate) => {
    const gain = gainOf(candidate.system, context.prediction);
    const { change, effort, system } = candidate;
    const instances = system.server.instanceCount;
    return { change, effort, instances, predictedGain: gain, predictedSloRate: context.sloRate * (1 + gain) };
  });
  const most = (fits: (move: RankedMove) => boolean): number =>
    Math.max(-1, ...tried.filter(fits).map(({ predictedGain }) => predictedGain));
  const best = most(({ instances }) => instances <= context.instancesAllowed);
  const simple = (move: RankedMove): number =>
    Math.abs(move.predictedGain - best) <= sameGain ? move.effort : Infinity;
  return tried.sort((a, b) => {
    const [left, right] = [simple(a), simple(b)];
    return left < Infinity && right < Infinity ? left - right : b.predictedGain - a.predictedGain;
  });
}

function moveOf({ change, predictedSloRate, predictedGain }: RankedMove): NextMove {
  return { change, predictedSloRate, predictedGain };
}

function replica({ sloRate }: MoveContext): NextMove {
  return {
    change: "another replica (no change of this configuration is predicted to gain much)",
    predictedSloRate: 2 * sloRate,
    predictedGain: 1,
  };
}
