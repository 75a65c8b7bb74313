/** From a search's knowledge to the variant's outcome. */
import { diagnose } from "../diagnosis/diagnose";
import type { Diagnosis, Interval, VariantOutcome } from "../outcome";
import { halfWidth } from "./estimate";
import { type Knee, kneeOf, spedUp } from "./model-knee";
import { quantileMsOf } from "./quantile-excess";
import type { KneeTrial, SearchState } from "./search-state";

/** Level of the two-sided interval of the SLO rate. */
export const intervalLevel = 0.95;
/** Level of the one-sided bound that is the operating rate. */
export const operatingLevel = 0.99;
/** Chance error of a simulated knee, relative, at rough and fine effort. */
const simulationError = 0.003;

/** The knee with its uncertainty, in the search's own unit (requests/s or users). */
export interface KneeInterval {
  readonly value: number;
  readonly relativeHalfWidth: number;
}

/** Null when there is no estimate yet. */
export function intervalOf(state: SearchState): KneeInterval | null {
  if (state.estimate === null || state.kneeValue === null) return null;
  return {
    value: state.kneeValue,
    relativeHalfWidth: halfWidth(state.estimate, intervalLevel, simulationError),
  };
}

export function concludeSearch(state: SearchState): VariantOutcome {
  const { variant, slo, mode, budget } = state.options;
  const { estimate, system } = state;
  const nearest = nearestTrial(state);
  const base = {
    variantName: variant.name,
    predictedSloRate: state.predicted?.ratePerS ?? null,
    p95Ms: nearest === null ? null : quantileMsOf(nearest.judged.result.load, slo),
    meanBatch: nearest?.judged.result.server.meanBatch ?? null,
    gpuBusy: nearest?.judged.result.server.gpuBusy ?? null,
    trials: state.judged,
  };
  const nothing = (note: string): VariantOutcome => ({
    ...base,
    sloRate: null,
    operatingRate: null,
    fittedLaw: state.fitted?.law ?? null,
    diagnosis: unknown(note),
    note,
  });
  if (state.judged.length === 0) {
    return nothing(
      `No trial of ${variant.name} was valid (${state.lost} were tried): nothing is known about it.`,
    );
  }
  if (state.kneeTrials.length === 0) {
    return nothing(`No trial of ${variant.name} near its limit was valid: there is only a prediction.`);
  }
  if (estimate === null || system === null) return nothing(noRate(state));
  const logSpeed = estimate.logSpeed;
  const at = (speed: number, guess: number): Knee | null =>
    kneeOf(spedUp(system, Math.exp(speed)), mode, slo, budget.kneeEffort, guess, estimate.spread);
  const knee = state.kneeValue === null ? null : at(logSpeed, state.kneeValue);
  if (knee === null) {
    return nothing(noRate(state));
  }
  const spread = halfWidth(estimate, intervalLevel, simulationError);
  const oneSided = halfWidth(estimate, 2 * operatingLevel - 1, simulationError);
  const sloRate: Interval = {
    estimate: knee.ratePerS,
    low: knee.ratePerS * Math.exp(-spread),
    high: knee.ratePerS * Math.exp(spread),
    level: intervalLevel,
  };
  return {
    ...base,
    sloRate,
    operatingRate: knee.ratePerS * Math.exp(-oneSided),
    fittedLaw: spedUp(system, Math.exp(logSpeed)).server.law,
    diagnosis: diagnose({
      variant,
      slo,
      mode,
      system: spedUp(system, Math.exp(logSpeed)),
      fitted: state.fitted!,
      sloRate: knee.ratePerS,
      kneeValue: knee.value,
      nearest:
        nearest === null
          ? null
          : {
              server: nearest.judged.result.server,
              meanResponseMs: nearest.judged.result.load.response.meanMs,
            },
      clientLimitPerS: mode === "users" || !Number.isFinite(state.lostAt) ? null : state.lostAt,
      facts: state.options.facts,
      lawOf: state.options.lawOf ?? (() => null),
    }),
    note: null,
  };
}

function nearestTrial(state: SearchState): KneeTrial | null {
  const target = state.kneeValue;
  let best: KneeTrial | null = null;
  for (const seen of state.kneeTrials) {
    if (
      best === null ||
      target === null ||
      Math.abs(Math.log(seen.value / target)) < Math.abs(Math.log(best.value / target))
    )
      best = seen;
  }
  return best;
}

function noRate(state: SearchState): string {
  const { variant, slo } = state.options;
  const lowest = state.kneeTrials.reduce((low, seen) => (seen.value < low.value ? seen : low));
  const ms = quantileMsOf(lowest.judged.result.load, slo);
  return (
    `${variant.name} held the SLO at no rate that was tried: even at ${lowest.judged.ratePerS.toFixed(1)} requests/s ` +
    `the ${100 * slo.quantile}th percentile was ${ms === null ? "not answered" : `${ms.toFixed(0)} ms`}, over ${slo.boundMs} ms.`
  );
}

function unknown(summary: string): Diagnosis {
  return { cause: "none", summary, evidence: {}, nextMove: null };
}
