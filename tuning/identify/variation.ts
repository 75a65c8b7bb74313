/**
 * How a server's phase times vary, as far as it acts on its knee: some servers now and then take several times as long (a neighbour, a
 * pause of the runtime, a cold cache), and their knee is flatter and lower than that of a steady server. Which of a few such laws a
 * server follows is told from how its response times are distributed, over trials near the knee and one well below.
 */
import type { PhaseVariation } from "../../serving-model/node-model";
import { Random } from "../../serving-model/random";

/** Phase times are lognormal around the nominal one; a share of them takes `tailFactor` times as long. */
export interface VariationLaw {
  /** Coefficient of variation. */
  readonly cv: number;
  readonly tailShare: number;
  readonly tailFactor: number;
}

export const steady: VariationLaw = { cv: 0, tailShare: 0, tailFactor: 1 };

/** Factors and shares of the laws that are told apart. Finer ones would not be: a trial sees some tens of long phases. */
const factors = [3.5, 5, 7.5];
const shares = [0.0025, 0.006, 0.014];

/** Laws to try first: none, jitter, and long phases of a middling share. */
export const firstLaws: readonly VariationLaw[] = [
  steady,
  { cv: 0.3, tailShare: 0, tailFactor: 1 },
  ...factors.map((tailFactor) => ({ cv: 0, tailShare: shares[1]!, tailFactor })),
];

/** Laws to try once it is known which of the first ones fits best: its neighbours. */
export function neighboursOf({ tailShare, tailFactor }: VariationLaw): readonly VariationLaw[] {
  if (tailShare === 0) return [];
  return shares
    .filter((share) => share !== tailShare)
    .map((share) => ({ cv: 0, tailShare: share, tailFactor }));
}

/** Null for a steady server. */
export function variationFor({
  cv,
  tailShare,
  tailFactor,
}: VariationLaw): ((seed: number) => PhaseVariation) | null {
  if (cv === 0 && tailShare === 0) return null;
  const sigma = Math.sqrt(Math.log1p(cv ** 2));
  return (seed) => {
    const random = new Random(seed * 977 + 3);
    if (sigma === 0)
      return (nominalUs) => (random.nextUnit() < tailShare ? nominalUs * tailFactor : nominalUs);
    return (nominalUs) => {
      const long = random.nextUnit() < tailShare ? tailFactor : 1;
      return nominalUs * long * Math.exp(sigma * random.nextNormal() - sigma ** 2 / 2);
    };
  };
}

/** Response times at which distributions are compared, as multiples of the SLO's bound. */
export const comparedAt: readonly number[] = [0.5, 0.7, 1, 1.4, 2, 3, 5];

/** Shares of requests that took longer than each of `comparedAt`, with the number of requests. */
export interface Tail {
  readonly requests: number;
  readonly over: readonly number[];
}

/** Requests that chance adds or takes: shares below a few of them are not compared. */
const counted = 8;

/** How badly a model's tail fits the measured one: mean squared ln of their ratio. */
export function misfit(measured: Tail, modelled: Tail): number {
  const floor = counted / measured.requests;
  const squares = measured.over.map(
    (share, i) => Math.log((share + floor) / (modelled.over[i]! + floor)) ** 2,
  );
  return squares.reduce((sum, square) => sum + square, 0) / squares.length;
}
