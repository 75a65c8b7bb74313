/**
 * The search for one variant's SLO rate: probe, predict, locate, confirm. A generator: it yields the next trial and is fed its
 * result, so it knows no clock and no socket.
 */
import type { LoadShape } from "../../loadgen/load-spec";
import type { Variant } from "../../model-repo/variant";
import type { ServiceLaw } from "../../serving-model/service-law";
import { SearchStopped, type SearchStrategy, type SystemFacts } from "../outcome";
import type { Slo, TrialResult, TrialSpec } from "../trial";
import { bracketOf, contradicts, liesBelowAllTrials, offerableLimit } from "./bracket";
import type { SearchBudget } from "./budget";
import { concludeSearch, intervalOf, type KneeInterval } from "./conclude";
import { type LoadMode, shapeAt } from "./load-axis";
import { nextProbe } from "./probe";
import { type Leader, racedOut } from "./race";
import { SearchState } from "./search-state";

export interface SearchOptions {
  readonly variant: Variant;
  readonly slo: Slo;
  readonly mode: LoadMode;
  /** Trials of all variants use the same seeds, so that variants are compared on the same arrivals. */
  readonly seed: number;
  readonly budget: SearchBudget;
  readonly facts: SystemFacts;
  /** A rate that one wants to reach, requests/s: it is tried itself when it lies near the SLO rate. Default: none. */
  readonly goalRatePerS?: number | null;
  /** What has to be beaten: a variant that clearly does not is given up early. Default: nothing; every variant is searched to the end. */
  readonly leader?: Leader | null;
  /** Laws of other variants, where they are known; for predicting a change of artefact. Default: none. */
  readonly lawOf?: (variant: Variant) => ServiceLaw | null;
}

type Trials<Value = void> = Generator<TrialSpec, Value, TrialResult | null>;

/** Loads of the trials near the knee, against the estimate: at it, a little above, a little below. */
const offsets = [0, 0.012, -0.012] as const;
/** Of a server that varies more than this the trials are spread wider, so that they show how misses grow with the load. */
const steadySpread = 0.004;
const widestOffsets = 5;
/** Where a server varies, one trial is made at this share of its knee. */
const farTrial = 0.86;
/** A goal within this factor of the estimate is tried itself. */
const goalNear = 1.15;
/** Longest step beyond what was tried, as a factor. */
const longestStep = 1.25;
/** After trials that missed by far: so much less load, relative, for every one of them. */
const thoroughStep = 0.03;
/** A trial may by chance look clear this far on the wrong side of the knee, relative. */
const clearMargin = 0.05;
/** Bisection ends at a bracket this narrow, or after so many trials (beyond the budget: a wrong model must not end as an answer). */
const bracketWidth = 1.05;
const mostBisections = 10;
/** After an invalid trial: so much less load, and twice as far back (in logarithms) after three in a row. */
const retreat = 0.6;
/** Invalid trials in a row after which the search ends. */
const mostLost = 4;
/** The load generator's limit is known when what it could and could not offer differ by less than this factor. */
const closeLimit = 1.15;

export function* searchSloRate(options: SearchOptions): SearchStrategy {
  const state = new SearchState(options);
  try {
    yield* probe(state);
    if (state.system === null) yield* climb(state);
    yield* approach(state);
    // Whether the trials contradict the model is asked of the last estimate.
    state.settle();
    if (state.racedOut === null) {
      yield* bisect(state);
      yield* tryGoal(state);
    }
  } catch (error) {
    if (!(error instanceof SearchStopped)) throw error;
  }
  return concludeSearch(state);
}

/** Runs one trial and takes its result in. False when it stayed invalid. */
function* trial(
  state: SearchState,
  shape: LoadShape,
  purpose: TrialSpec["purpose"],
  warmupS: number,
  measureS: number,
): Trials<boolean> {
  const { variant, slo } = state.options;
  const spec: TrialSpec = { variant, shape, slo, seed: state.takeSeed(), warmupS, measureS, purpose };
  const result = yield spec;
  state.add(spec, result);
  return result !== null;
}

/** Short trials with a fixed number in flight: they identify the service law. */
function* probe(state: SearchState): Trials {
  const { variant, slo, budget } = state.options;
  for (let done = 0; state.lostInARow < 2; done++) {
    const step = nextProbe(variant, slo, state.observations, done);
    if (step === null) break;
    const shape: LoadShape = {
      kind: "users",
      users: step.concurrency,
      // All at once: they then go through the server as one batch.
      spawnPerS: step.concurrency * 1000,
      thinkMinS: 0,
      thinkMaxS: 0,
    };
    yield* trial(state, shape, "probe", step.warmupS * budget.probeScale, step.measureS * budget.probeScale);
  }
  state.update();
}

/** Without a law: doubles the load until the SLO is missed, in short trials. */
function* climb(state: SearchState): Trials {
  state.lostInARow = 0;
  for (let value = 8; state.lostInARow === 0; value *= 2) {
    if (!(yield* trial(state, shapeAt(state.options.mode, value), "locate", 0.5, 1.5))) break;
    if ((state.kneeTrials.at(-1)?.excess ?? 1) > 0) break;
  }
  state.update();
}

/** Trials at and around the estimated knee until the interval is narrow enough or the budget is spent. */
function* approach(state: SearchState): Trials {
  const { budget, mode } = state.options;
  const { warmupS, measureS } = budget;
  for (let tried = 0; tried < budget.mostTrials; tried++) {
    if (state.judged.length === 0 || state.lostInARow >= mostLost || clientLimited(state)) return;
    if (tried > 0 && !state.affords(warmupS + measureS)) return;
    const value = nextValue(state, tried);
    const located =
      state.kneeTrials.length > 0 && Math.abs(Math.log(value / state.kneeTrials.at(-1)!.value)) < 0.05;
    yield* trial(state, shapeAt(mode, value), located ? "confirm" : "locate", warmupS, measureS);
    state.update();
    const interval = intervalOf(state);
    if (interval !== null && isNarrow(state, interval)) return;
    // What would get no more trials anyway is no search that was ended early.
    const goesOn = tried + 1 < budget.mostTrials && state.affords(warmupS + measureS);
    state.racedOut = goesOn ? racedOut(state, state.options.leader ?? null) : null;
    if (state.racedOut !== null) return;
  }
}

/** Whether enough trials near the knee agree on an interval that is narrow enough. */
function isNarrow(state: SearchState, { value, relativeHalfWidth }: KneeInterval): boolean {
  const { budget } = state.options;
  const near = state.kneeTrials.filter((seen) => Math.abs(Math.log(seen.value / value)) < 0.05).length;
  return near >= budget.leastTrials && !state.unsettled && relativeHalfWidth <= budget.targetHalfWidth;
}

/** Where the model contradicts the trials (or there is no model): bisection in log load, judged by the trials alone. */
function* bisect(state: SearchState): Trials {
  const { budget, mode } = state.options;
  if (state.kneeTrials.length === 0 || clientLimited(state)) return;
  for (let tried = 0; tried < mostBisections; tried++) {
    const bracket = bracketOf(state);
    const { held, missed, highest } = bracket;
    if (state.kneeValue !== null && liesBelowAllTrials(state.kneeValue, bracket)) state.overruled = true;
    const isWrong = state.overruled || contradicts(state.kneeValue, bracket, state.tolerance);
    if (!isWrong || missed / held < bracketWidth) return;
    const value =
      missed === Infinity
        ? Math.max(highest * 2, probedRate(state) / 2)
        : held > 0
          ? Math.sqrt(held * missed)
          : Math.min(missed / 2, Math.max(missed / 8, probedRate(state) / 2));
    if (value < leastLoad(state) || value >= offerableLimit(state)) return;
    // The model is not fitted again: where the trials contradict it, more of them do not mend it.
    yield* trial(state, shapeAt(mode, value), "locate", budget.warmupS, budget.measureS);
  }
}

/** Highest throughput of the probes, requests/s; 0 without one. Every server holds less than that within its SLO. */
function probedRate(state: SearchState): number {
  const probes = state.judged.filter(({ spec }) => spec.purpose === "probe");
  return state.options.mode === "users" ? 0 : Math.max(0, ...probes.map(({ ratePerS }) => ratePerS));
}

function nextValue(state: SearchState, tried: number): number {
  const { facts, mode } = state.options;
  const ceiling = Math.min(
    mode === "users" ? Infinity : (facts.clientCeilingPerS ?? Infinity),
    offerable(state),
  );
  const { low, high } = state.clear;
  const estimate = state.kneeValue ?? (state.kneeTrials.length === 0 ? leastLoad(state) : NaN);
  // No step further than this from all that was tried: far away the model may be wrong.
  const tries = state.kneeTrials.map((seen) => seen.value);
  const reach = (value: number): number =>
    tries.length === 0
      ? value
      : Math.max(Math.min(...tries) / longestStep, Math.min(Math.max(...tries) * longestStep, value));
  const wide = Math.max(1, Math.min(widestOffsets, state.trialSpread / steadySpread));
  let value = reach(estimate * (1 + wide * offsets[tried % offsets.length]!));
  if (state.wantsFarTrial) value = reach(estimate * farTrial);
  // The model has no knee, or one far on the wrong side of what trials have shown: bisect between what is known.
  if (!(estimate > low * (1 - clearMargin) && estimate < high * (1 + clearMargin))) {
    if (low > 0 && high < Infinity) value = Math.sqrt(low * high);
    else value = low > 0 ? low * 1.5 : high < Infinity ? high / 1.5 : leastLoad(state);
  }
  // Only "no faster than this" is known: the knee may lie well below.
  const last = tries.at(-1);
  const misses = state.thoroughMisses;
  if (misses > 0 && last !== undefined) value = Math.min(value, last * (1 - thoroughStep * misses));
  return Math.max(mode === "users" ? 1 : 0.1, Math.min(value, ceiling));
}

/** After invalid trials: between what could be offered and what could not; ever lower while nothing could. */
function offerable(state: SearchState): number {
  if (state.lostAt === Infinity) return Infinity;
  const offered = state.highestOffered;
  return offered > 0
    ? Math.sqrt(offered * state.lostAt)
    : state.lostAt * retreat ** Math.max(1, state.lostInARow - 1);
}

/** Whether the load generator's limit is known closely, and the knee lies above it. */
function clientLimited(state: SearchState): boolean {
  const offered = state.highestOffered;
  return offered > 0 && state.lostAt / offered < closeLimit && (state.kneeValue ?? 0) > offered;
}

/** A load low enough to show whether the SLO holds at all, high enough for a verdict within the window. */
function leastLoad({ options: { budget } }: SearchState): number {
  return 80 / budget.measureS;
}

/** The goal's own trial, if the goal lies so near that the estimate alone does not answer it. */
function* tryGoal(state: SearchState): Trials {
  const { goalRatePerS, mode, budget } = state.options;
  const interval = intervalOf(state);
  if (goalRatePerS == null || interval === null || mode === "users") return;
  if (Math.abs(Math.log(goalRatePerS / interval.value)) > Math.log(goalNear)) return;
  if (!state.affords(budget.warmupS + budget.measureS)) return;
  yield* trial(state, shapeAt(mode, goalRatePerS), "verify", budget.warmupS, budget.measureS);
  state.update();
}
