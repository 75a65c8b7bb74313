/** The curve over the request rate that a variant's fitted service model predicts: what the few trials are joined by. Pure. */
import type { Variant } from "../../model-repo/variant";
import { percentileMs } from "../../serving-model/latency-bins";
import { simulate } from "../../serving-model/simulate";
import { variationFor } from "../identify/variation";
import type { VariantOutcome } from "../outcome";
import { shapeAt, withOverhead, type LoadMode } from "../search/load-axis";
import type { Slo } from "../trial";

/** A place on the curve; rates in requests per second, times undilated. */
export interface ModelPoint {
  readonly ratePerS: number;
  /** Response time at the SLO's quantile. */
  readonly quantileMs: number;
  readonly meanBatch: number;
  readonly gpuBusy: number;
}

/** Places as shares of the SLO rate: dense where the curve bends, and a little beyond it. */
const shares = [0.1, 0.3, 0.5, 0.65, 0.75, 0.83, 0.89, 0.93, 0.96, 0.98, 1, 1.02, 1.05];
/** Enough for a drawn line; an estimate would need far more near the limit. */
const requestsAPlace = 12_000;
const leastS = 5;
const settleS = 3;

const cache = new WeakMap<VariantOutcome, readonly ModelPoint[]>();

/**
 * Null when the outcome has no fitted law or no SLO rate. Deterministic; the same random numbers at every rate keep the curve smooth.
 * Remembered by outcome, since a sweep rebuilds its result after every variant.
 */
export function modelCurve(
  outcome: VariantOutcome,
  variant: Variant,
  load: LoadMode,
  slo: Slo,
): readonly ModelPoint[] | null {
  const { fittedLaw, sloRate } = outcome;
  if (!fittedLaw || !sloRate) return null;
  const known = cache.get(outcome);
  if (known) return known;
  const overheadMs = outcome.fittedOverheadMs ?? 0;
  const variation = outcome.fittedVariation ? variationFor(outcome.fittedVariation) : null;
  const server = { ...variant, dynamicBatching: true, law: fittedLaw, variationFor: variation ?? undefined };
  const curve = shares
    .map((share) => share * sloRate.estimate)
    .map((ratePerS): ModelPoint => {
      const shape = shapeAt(load, load === "users" ? usersFor(ratePerS, slo) : ratePerS);
      const run = simulate(server, {
        shape: withOverhead(shape, overheadMs),
        seed: 1,
        warmupS: settleS,
        measureS: Math.max(leastS, requestsAPlace / ratePerS),
        sloBoundMs: slo.boundMs,
      });
      return {
        ratePerS: load === "users" ? run.throughputPerS : ratePerS,
        quantileMs: percentileMs(run.responseCounts, slo.quantile) + overheadMs,
        meanBatch: run.meanBatch,
        gpuBusy: run.gpuBusy,
      };
    })
    .filter((point) => Number.isFinite(point.quantileMs));
  cache.set(outcome, curve);
  return curve;
}

/** Users that ask for about this rate: one request each in a second of thinking and half a bound of waiting. */
function usersFor(ratePerS: number, slo: Slo): number {
  return ratePerS * (1 + slo.boundMs / 2000);
}
