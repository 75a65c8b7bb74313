/** What another objective would change: the SLO rate for other bounds and quantiles, from the model fitted to the same trials. Pure. */
import type { Variant } from "../../model-repo/variant";
import { comparingEffort } from "../diagnosis/relief";
import { variationFor } from "../identify/variation";
import type { VariantOutcome } from "../outcome";
import type { LoadMode } from "../search/load-axis";
import { kneeOf, type ModelledSystem } from "../search/model-knee";
import type { Slo } from "../trial";

export interface OtherObjective {
  readonly quantile: number;
  readonly boundMs: number;
  /** Requests/s; null: this objective holds at no rate. */
  readonly sloRate: number | null;
}

/** Bounds as multiples of the SLO's, and quantiles beside its own. */
const bounds = [0.5, 0.75, 1.5, 2];
const quantiles = [0.9, 0.95, 0.99];

const cache = new WeakMap<VariantOutcome, readonly OtherObjective[]>();

/**
 * Null without a fitted model or an SLO rate. The model's ratio between two objectives is applied to the measured rate, so what the model
 * gets wrong throughout cancels. Remembered by outcome, since a sweep rebuilds its result after every variant.
 * @param scheduler how the server makes its batches
 */
export function sensitivityOf(
  outcome: VariantOutcome,
  variant: Variant,
  load: LoadMode,
  slo: Slo,
  scheduler?: ModelledSystem["server"]["scheduler"],
): readonly OtherObjective[] | null {
  const { fittedLaw: law, sloRate, fittedOverheadMs: overheadMs = 0, fittedVariation } = outcome;
  if (!law || !sloRate) return null;
  const known = cache.get(outcome);
  if (known) return known;
  const server = {
    ...variant,
    dynamicBatching: true,
    law,
    scheduler,
    variationFor: fittedVariation ? (variationFor(fittedVariation) ?? undefined) : undefined,
  };
  const system: ModelledSystem = { server, overheadMs };
  const base = kneeOf(system, load, slo, comparingEffort, load === "users" ? undefined : sloRate.estimate);
  if (base === null) return null;
  const others: Slo[] = [
    ...bounds.map((factor) => ({ quantile: slo.quantile, boundMs: slo.boundMs * factor })),
    ...quantiles
      .filter((quantile) => quantile !== slo.quantile)
      .map((quantile) => ({ quantile, boundMs: slo.boundMs })),
  ];
  const list = others.map((other): OtherObjective => {
    const knee = kneeOf(system, load, other, comparingEffort, base.value);
    return { ...other, sloRate: knee === null ? null : (knee.ratePerS / base.ratePerS) * sloRate.estimate };
  });
  cache.set(outcome, list);
  return list;
}
