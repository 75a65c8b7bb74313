/** From SLO rates to a plan: how many replicas of which variant a load needs, what they cost, when to scale. Pure. */
import { costOfLoad, replicasForLoad } from "../../pricing/cost";
import type { Result, ResultVariant } from "../results/result-schema";
import { kneeRate } from "./knee";

export interface Demand {
  /** Load to be served, requests per second over all replicas, > 0. */
  readonly loadPerS: number;
  /** Replicas that may be lost while the rest still hold the SLO. 1 is "N+1". */
  readonly spareReplicas: number;
  /** Share of the operating rate that is kept free for peaks and drift, 0 .. < 1. */
  readonly margin: number;
  /** Price of one replica with its node, US dollars an hour; null when no prices are given. */
  readonly usdPerReplicaHour: number | null;
}

/** What one variant takes to serve the demand. Rates are requests per second. */
export interface Plan {
  readonly variant: ResultVariant;
  /** Load that one replica may get: operating rate less margin. */
  readonly ratePerReplicaPerS: number;
  /** Spare ones included. */
  readonly replicas: number;
  /** Load of one replica with all of them up, and with the spare ones lost. */
  readonly loadPerReplicaPerS: { readonly all: number; readonly withoutSpare: number };
  readonly cost: {
    readonly usdPerH: number;
    readonly usdPerYear: number;
    readonly usdPerMillion: number;
  } | null;
  /** Served rate per replica at which an autoscaler should add one, with the reason for the figure. */
  readonly autoscale: { readonly ratePerS: number; readonly reason: string };
}

/**
 * Share of the SLO rate that an autoscaler may fill: a new replica takes minutes (node, image, model), during which the load of the
 * others still grows.
 */
const autoscaleShare = 0.8;

/**
 * Plans for every variant that has an operating rate, fewest replicas first, then in the order of the ranking. Replicas are taken to
 * scale linearly, as in the published measurements.
 * @throws RangeError that names a figure out of range
 */
export function planFor(result: Result, demand: Demand): readonly Plan[] {
  if (!(demand.margin >= 0 && demand.margin < 1))
    throw new RangeError(`the margin is ${demand.margin}; it must be at least 0 and below 1`);
  if (!(demand.loadPerS > 0) || !Number.isFinite(demand.loadPerS))
    throw new RangeError(`the load is ${demand.loadPerS} requests/s; it must be above 0`);
  const recommendedFirst = (plan: Plan) => (plan.variant.name === result.recommendation.variant ? 0 : 1);
  const rankOf = (plan: Plan) => plan.variant.rank ?? Infinity;
  return result.variants
    .flatMap((variant) => planOf(variant, demand) ?? [])
    .sort(
      (a, b) => a.replicas - b.replicas || recommendedFirst(a) - recommendedFirst(b) || rankOf(a) - rankOf(b),
    );
}

function planOf(variant: ResultVariant, demand: Demand): Plan | null {
  const { loadPerS, spareReplicas, margin, usdPerReplicaHour } = demand;
  if (!variant.operatingRate || !variant.sloRate) return null;
  const ratePerReplicaPerS = variant.operatingRate * (1 - margin);
  const replicas = replicasForLoad(loadPerS, ratePerReplicaPerS, spareReplicas);
  const cost =
    usdPerReplicaHour === null
      ? null
      : costOfLoad(usdPerReplicaHour, loadPerS, ratePerReplicaPerS, spareReplicas);
  return {
    variant,
    ratePerReplicaPerS,
    replicas,
    loadPerReplicaPerS: { all: loadPerS / replicas, withoutSpare: loadPerS / (replicas - spareReplicas) },
    cost: cost && {
      usdPerH: cost.usdPerH,
      usdPerYear: cost.usdPerYear,
      usdPerMillion: cost.usdPerMillionInferences,
    },
    autoscale: autoscaleTarget(variant)!,
  };
}

/** When an autoscaler should add a replica, whatever the load; null for a variant without rates. */
export function autoscaleTarget(variant: ResultVariant): Plan["autoscale"] | null {
  if (!variant.sloRate || !variant.operatingRate) return null;
  const candidates: [number, string][] = [
    [
      variant.sloRate.estimate * autoscaleShare,
      `${autoscaleShare * 100} % of the SLO rate, since a new replica takes minutes`,
    ],
    [variant.operatingRate, "the operating rate"],
  ];
  const knee = kneeRate(variant);
  if (knee !== null) candidates.push([knee, "the knee: above it response times rise steeply"]);
  const [ratePerS, reason] = candidates.reduce((least, candidate) =>
    candidate[0] < least[0] ? candidate : least,
  );
  return { ratePerS: Math.max(1, Math.floor(ratePerS)), reason };
}
