/** From a search's knowledge to the variant's outcome. */
import { diagnose } from "../diagnosis/diagnose";
import { diagnoseMeasured } from "../diagnosis/measured";
import type { Diagnosis, Interval, VariantOutcome } from "../outcome";
import { bracketOf, contradicts, endingWithin, offerableLimit, type TrialBracket } from "./bracket";
import { halfWidth } from "./estimate";
import { endsOf, farthest, inProportion, movesOf } from "./interval-ends";
import type { KneeTrial } from "./knee-trials";
import { holdsFrom, type Knee, kneeOf, roughEffort, spedUp } from "./model-knee";
import { earlyError, racedOutNote } from "./race";
import { quantileMsOf } from "./quantile-excess";
import type { SearchState } from "./search-state";
import { seenKnee, type SeenKnee } from "./seen-knee";

/** Level of the two-sided interval of the SLO rate. */
export const intervalLevel = 0.95;
/** Level of the one-sided bound that is the operating rate. */
export const operatingLevel = 0.99;
/** Chance error of a simulated knee, relative, at least: a few seeds may agree by chance. */
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
  state.settle();
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
  const bracket = bracketOf(state);
  const isWrong = state.overruled || contradicts(state.kneeValue, bracket, state.tolerance);
  if (isWrong && !limitedByClient(state)) return bracketed(state, bracket, base, otherRate);
  if (estimate === null || system === null) return nothing(noRate(state));
  const logSpeed = estimate.logSpeed;
  const at = (speed: number, guess: number): Knee | null =>
    kneeOf(spedUp(system, Math.exp(speed)), mode, slo, budget.kneeEffort, guess, estimate.spread);
  const knee = state.kneeValue === null ? null : at(logSpeed, state.kneeValue);
  if (knee === null) {
    return nothing(noRate(state));
  }
  const chance = Math.max(simulationError, knee.chance, state.racedOut === null ? 0 : earlyError);
  // Where a server varies, its knee may move by more than its speed: it is simulated at both ends.
  const rough = (speed: number): Knee | null =>
    kneeOf(spedUp(system, Math.exp(logSpeed + speed)), mode, slo, roughEffort, knee.value, estimate.spread);
  const moves = state.varies ? movesOf(rough) : inProportion;
  const ends = endsOf(estimate, intervalLevel, chance, moves);
  const limit = clientLimitOf(state, knee);
  if (limit !== null) return capped(state, knee.ratePerS * Math.exp(ends.above), limit, base);
  // A limit that the model leaves open by more is better told by the trials alone.
  if (Math.max(ends.below, ends.above) > farthest && bracket.held > 0)
    return bracketed(state, bracket, base, anyRate);
  const byModel: Interval = {
    estimate: knee.ratePerS,
    low: knee.ratePerS * Math.exp(-ends.below),
    high: knee.ratePerS * Math.exp(ends.above),
    level: intervalLevel,
  };
  const seen = seenKnee(state.compared, knee.value);
  const perLoad = knee.ratePerS / knee.value;
  const within = (one: Interval): Interval => endingWithin(one, bracket, state.tolerance, perLoad);
  const sloRate = within(seen === null ? byModel : lowered(byModel, seen, perLoad));
  const operating = knee.ratePerS * Math.exp(-endsOf(estimate, 2 * operatingLevel - 1, chance, moves).below);
  return {
    ...base,
    sloRate,
    operatingRate: Math.min(within({ ...byModel, low: operating }).low, sloRate.low),
    fittedLaw: spedUp(system, Math.exp(logSpeed)).server.law,
    fittedVariation: state.variationLaw ?? undefined,
    fittedOverheadMs: system.overheadMs,
    diagnosis: diagnose({
      variant,
      slo,
      mode,
      system: spedUp(system, Math.exp(logSpeed)),
      fitted: state.fitted!,
      sloRate: sloRate.estimate,
      kneeValue: knee.value,
      nearest: nearest && {
        server: nearest.judged.result.server,
        meanResponseMs: nearest.judged.result.load.response.meanMs,
      },
      slowerBy: state.slowerBy,
      facts: state.options.facts,
      lawOf: state.options.lawOf ?? (() => null),
    }),
    racedOut: state.racedOut ?? undefined,
    note: notesOf(state, holdsFrom(spedUp(system, Math.exp(logSpeed)), mode, slo, knee.value)),
  };
}

/** The model's interval down to what the trials show instead. @param perLoad requests/s of a unit of load */
function lowered({ low, level }: Interval, seen: SeenKnee, perLoad: number): Interval {
  return {
    estimate: seen.estimate * perLoad,
    low: Math.min(low, seen.low * perLoad),
    high: seen.high * perLoad,
    level,
  };
}

function notesOf(state: SearchState, heldFrom: number | null): string | null {
  const raced = state.racedOut === null ? [] : [racedOutNote(state.racedOut)];
  const low = lowLoadNote(heldFrom, state);
  const all = low === null ? raced : [...raced, low];
  return all.length === 0 ? null : all.join(" ");
}

/** That the SLO is missed at low loads, too; null when it is not. */
function lowLoadNote(from: number | null, { options: { variant, mode, slo } }: SearchState): string | null {
  if (from === null) return null;
  const unit = mode === "users" ? "users" : "requests/s";
  return (
    `By the fitted model the SLO is missed below about ${from.toFixed(0)} ${unit}, too: there a request waits for a batch that does not ` +
    `fill, until its queue delay of ${variant.queueDelayUs / 1000} ms is over, which leaves too little of the ${slo.boundMs} ms.`
  );
}

/** Trials this far below the knee do not show it. */
const farBelow = 0.93;

/** Whether the knee lies above what could be offered. */
function limitedByClient(state: SearchState): boolean {
  return (
    state.kneeValue !== null &&
    bracketOf(state).missed === Infinity &&
    offerableLimit(state) < state.kneeValue
  );
}

/** What the load generator can offer at most, if that kept the search away from the knee; else null. */
function clientLimitOf(state: SearchState, knee: Knee): number | null {
  const limit = offerableLimit(state);
  const highest = Math.max(...state.kneeTrials.map(({ value }) => value));
  return limit < Infinity && highest < knee.value * farBelow ? limit : null;
}

/** What every outcome of a search says, whatever was found. */
type Base = Omit<VariantOutcome, "sloRate" | "operatingRate" | "fittedLaw" | "diagnosis" | "note">;

/** The load generator was the limit: the highest rate that held, and no more than a prediction above it. */
function capped(state: SearchState, predictedHigh: number, limit: number, base: Base): VariantOutcome {
  const unit = state.options.mode === "users" ? "users" : "requests/s";
  // A trial far within the SLO is sure enough even where its requests are too few for a verdict.
  const passed = state.kneeTrials
    .filter(({ judged, value }) => judged.verdict === "pass" || value <= state.clear.low)
    .map(({ judged }) => judged.ratePerS);
  const best = passed.length > 0 ? Math.max(...passed) : null;
  const more = `${base.variantName} may hold more.`;
  const summary =
    limit < state.lostAt
      ? `No more than ${limit.toFixed(0)} ${unit} may be offered; ${more} ` +
        "Raise the limit to find out: --max-rate, or peakRatePerS of the stack, which its load workers follow."
      : `The load generator could not offer ${limit.toFixed(0)} ${unit}; ${more} ` +
        "Add load workers, or run them on faster machines, to find out.";
  return {
    ...base,
    sloRate:
      best === null
        ? null
        : { estimate: best, low: best, high: Math.max(best, predictedHigh), level: intervalLevel },
    operatingRate: best,
    fittedLaw: state.fitted?.law ?? null,
    diagnosis: { cause: "client-bound", summary, evidence: {}, nextMove: null },
    note: `The SLO rate lies above what could be offered: the figure is the highest rate that held, not the limit.`,
  };
}

const otherRate =
  "The service model that was fitted to this server predicts another rate than its trials show";
const anyRate =
  "The service model that was fitted to this server leaves its limit open by more than a factor of two";

/** The model did not fit: the answer is what trials showed, with their bracket as the interval, and the cause is what they alone show. */
function bracketed(
  state: SearchState,
  { held, missed }: TrialBracket,
  base: Base,
  why: string,
): VariantOutcome {
  const fittedLaw = null;
  if (held === 0) {
    const note = noRate(state);
    return { ...base, sloRate: null, operatingRate: null, fittedLaw, diagnosis: unknown(note), note };
  }
  const heldTrial = state.kneeTrials.find(({ value }) => value === held)!.judged;
  const scale = heldTrial.ratePerS / held;
  const sloRate: Interval = {
    estimate: held * scale,
    low: held * scale,
    high: (missed === Infinity ? held : missed) * scale,
    level: intervalLevel,
  };
  const note = `${why}, so the figure is the highest rate that held in a trial, and the cause is what the trials alone show.`;
  return {
    ...base,
    sloRate,
    operatingRate: heldTrial.ratePerS,
    p95Ms: quantileMsOf(heldTrial.result.load, state.options.slo),
    meanBatch: heldTrial.result.server.meanBatch,
    gpuBusy: heldTrial.result.server.gpuBusy,
    fittedLaw,
    diagnosis: diagnoseMeasured({
      variant: state.options.variant,
      sloRate: heldTrial.ratePerS,
      held: heldTrial,
      trials: state.judged,
      facts: state.options.facts,
    }),
    note,
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
