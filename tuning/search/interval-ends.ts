/**
 * The ends of the knee's interval. A speed that is uncertain by one per cent leaves the knee of a steady server uncertain by one per
 * cent. Where long executions alone use up most of the misses that are allowed, the knee is flat and moves by several: the model is then
 * simulated at both ends of the speed's interval (inverting the relation instead of its tangent: Fieller 1954).
 */
import { normalQuantile } from "../statistics/special";
import { halfWidth, type SpeedEstimate } from "./estimate";
import type { Knee } from "./model-knee";

/** How far (ln of the load, >= 0) the knee moves when the speed moves by so much (ln). */
export type KneeMoves = (speed: number) => number;

export const inProportion: KneeMoves = (speed) => Math.abs(speed);

/** Where the SLO would hold at no load at all, or nothing is known: a tenth of the estimate, and ten times it, stand for that. */
const lost = Math.log(10);

/** No speed further from the estimate is simulated (ln): an interval that wide says nothing, and a server that fast takes hours. */
export const farthest = Math.log(2);

/** @param kneeAt knee by one and the same simulation at speeds (ln) around the estimate; null: the SLO holds at no load */
export function movesOf(kneeAt: (speed: number) => Knee | null): KneeMoves {
  const centre = kneeAt(0);
  const within = (speed: number): number => {
    const end = kneeAt(speed);
    if (centre === null || end === null) return lost;
    const moved = Math.log(end.value / centre.value) * Math.sign(speed);
    // The bound stays where it is while everything else gets faster: never by less than in proportion.
    return Math.max(moved, Math.abs(speed));
  };
  return (speed) => {
    const near = Math.sign(speed) * Math.min(Math.abs(speed), farthest);
    return Math.min(lost, within(near) + Math.abs(speed - near));
  };
}

export interface Ends {
  /** ln of the load from the estimate down to the low end, and up to the high one; > 0. */
  readonly below: number;
  readonly above: number;
}

/**
 * Of a two-sided interval of this level.
 * @param chance standard error (ln of the load) of the simulated knee itself
 */
export function endsOf(estimate: SpeedEstimate, level: number, chance: number, moves: KneeMoves): Ends {
  const speed = halfWidth(estimate, level);
  // Known, and not estimated from the trials: no degrees of freedom to lose.
  const simulated = normalQuantile(0.5 + level / 2) * chance;
  return { below: Math.hypot(moves(-speed), simulated), above: Math.hypot(moves(speed), simulated) };
}
