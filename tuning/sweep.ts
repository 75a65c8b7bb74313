/**
 * The sweep: feeds every variant's search strategy with trials until it has an outcome. Finished trials come from the point log,
 * so an interrupted sweep goes on where it stopped; a trial that its own generator calls invalid is repeated within a limit.
 */
import type { Variant } from "../model-repo/variant";
import { excludedOutcome, SearchStopped, type SearchStrategy, type VariantOutcome } from "./outcome";
import { TargetGone, type RecoveryWatch, type TrialFailure } from "./target";
import type { WarmUpProgress } from "./warm-up";
import type { TrialProgress, TrialResult, TrialRunner, TrialSpec } from "./trial";

/** Keeps finished trials; see results/point-log.ts. */
export interface TrialStore {
  /** The stored result of exactly this trial, if there is one. */
  find(spec: TrialSpec): TrialResult | null;
  append(spec: TrialSpec, result: TrialResult): Promise<void>;
}

export type SweepEvent =
  | {
      readonly kind: "variant-started";
      readonly variant: Variant;
      readonly index: number;
      readonly of: number;
    }
  /** The server is not warm yet: its variant's first trial waits for that. */
  | { readonly kind: "warming-up"; readonly variant: Variant; readonly progress: WarmUpProgress }
  | { readonly kind: "trial-started"; readonly spec: TrialSpec; readonly attempt: number }
  | { readonly kind: "trial-progress"; readonly spec: TrialSpec; readonly progress: TrialProgress }
  | {
      readonly kind: "trial-finished";
      readonly spec: TrialSpec;
      readonly result: TrialResult;
      readonly fromLog: boolean;
    }
  | {
      readonly kind: "trial-failed";
      readonly spec: TrialSpec;
      readonly reason: string;
      readonly willRetry: boolean;
    }
  /** The target is being waited for, after a trial that could not be run. */
  | { readonly kind: "waiting"; readonly variant: Variant; readonly text: string }
  | { readonly kind: "variant-finished"; readonly outcome: VariantOutcome };

export interface SweepOptions {
  readonly variants: readonly Variant[];
  readonly strategyFor: (variant: Variant) => SearchStrategy;
  /**
   * Looks at a variant before its first trial. A reason means that it is not to be measured and takes no part in the ranking. What it
   * throws is taken for a server that does not answer. Default: every variant is measured.
   */
  readonly screen?: (variant: Variant, signal?: AbortSignal) => Promise<string | null>;
  readonly runner: TrialRunner;
  readonly store: TrialStore;
  /** Called after a trial that was invalid or could not be run, before it is tried again. TargetGone ends the sweep with what it has. */
  readonly recover: (variant: Variant, failure: TrialFailure, watch: RecoveryWatch) => Promise<void>;
  readonly onEvent?: (event: SweepEvent) => void;
  readonly signal?: AbortSignal;
  /** Asked before every trial: why the sweep has to end with what it has, e.g. that it costs too much; null while it may go on. */
  readonly reasonToStop?: () => string | null;
}

export interface SweepResult {
  readonly outcomes: readonly VariantOutcome[];
  /** Why the sweep ended before all variants had an outcome; null when it is complete. */
  readonly endedEarly: string | null;
}

/** A trial is run at most this often before its strategy is told that it cannot be had. */
const ATTEMPTS = 3;
/** Trials in a row that could not be run at all: then the target is gone and the sweep ends with what it has. */
const LOST_TRIALS_LIMIT = 2;
/** Variants in a row of which no trial could be run although the target came back every time: then it is hardly the variants' fault. */
const LOST_VARIANTS_LIMIT = 2;
/** How often a sweep that waits for its target looks whether it may still go on, milliseconds. */
const MAY_GO_ON_POLL_MS = 500;

/** The sweep cannot go on, in the middle of a variant; the message says why. */
class SweepOver extends Error {}

export async function runSweep(options: SweepOptions): Promise<SweepResult> {
  const outcomes: VariantOutcome[] = [];
  let lostInARow = 0;
  let lostVariants = 0;
  for (const [index, variant] of options.variants.entries()) {
    const reason = options.reasonToStop?.() ?? null;
    if (reason !== null) return { outcomes, endedEarly: reason };
    options.onEvent?.({ kind: "variant-started", variant, index, of: options.variants.length });
    const screening = await screened(variant, options).catch(asSweepOver);
    if (screening instanceof SweepOver) return { outcomes, endedEarly: screening.message };
    if (options.signal?.aborted) return { outcomes, endedEarly: "interrupted" };
    if (screening.excluded !== null) {
      const outcome = excludedOutcome(variant.name, screening.excluded);
      outcomes.push(outcome);
      options.onEvent?.({ kind: "variant-finished", outcome });
      lostInARow = screening.ran ? 0 : lostInARow + 1;
      if (lostInARow < LOST_TRIALS_LIMIT) continue;
      return { outcomes, endedEarly: screening.excluded };
    }
    const strategy = options.strategyFor(variant);
    const cutShortBy = (endedEarly: string): SweepResult => {
      const outcome = cutShort(strategy, endedEarly);
      if (outcome !== null) {
        outcomes.push(outcome);
        options.onEvent?.({ kind: "variant-finished", outcome });
      }
      return { outcomes, endedEarly };
    };
    let step = strategy.next(null);
    let hasRun = false;
    let givenUp: VariantOutcome | null = null;
    while (!step.done && givenUp === null) {
      if (options.signal?.aborted) return { outcomes, endedEarly: "interrupted" };
      const endedEarly = options.reasonToStop?.() ?? null;
      if (endedEarly !== null) return cutShortBy(endedEarly);
      const attempt = await runTrial(step.value, options).catch(asSweepOver);
      if (attempt instanceof SweepOver) return cutShortBy(attempt.message);
      if (options.signal?.aborted) return { outcomes, endedEarly: "interrupted" };
      lostInARow = attempt.ran ? 0 : lostInARow + 1;
      hasRun ||= attempt.ran;
      if (hasRun) lostVariants = 0;
      else if (attempt.targetIsBack && ++lostVariants < LOST_VARIANTS_LIMIT) {
        givenUp = excludedOutcome(variant.name, `No trial of it could be run: ${attempt.reason}`);
        lostInARow = 0;
        continue;
      }
      step = strategy.next(attempt.result);
      if (lostInARow >= LOST_TRIALS_LIMIT && !step.done) {
        return {
          outcomes,
          endedEarly: `${variant.name}: no trial could be run any more (${attempt.reason})`,
        };
      }
    }
    const outcome = step.done ? step.value : givenUp!;
    outcomes.push(outcome);
    options.onEvent?.({ kind: "variant-finished", outcome });
  }
  return { outcomes, endedEarly: null };
}

/** What a search knows that gets no more trials; null when that is no rate. */
function cutShort(strategy: SearchStrategy, reason: string): VariantOutcome | null {
  try {
    const { done, value } = strategy.throw(new SearchStopped());
    if (!done || value.sloRate === null) return null;
    return { ...value, note: [value.note, `Its search was cut short: ${reason}.`].filter(Boolean).join(" ") };
  } catch (error) {
    if (error instanceof SearchStopped) return null;
    throw error;
  }
}

/** Why the variant is not measured, or null; `ran` is false when the server did not answer at all. */
async function screened(
  variant: Variant,
  options: SweepOptions,
): Promise<{ excluded: string | null; ran: boolean }> {
  if (options.screen === undefined) return { excluded: null, ran: true };
  let reason = "";
  for (let attempt = 1; attempt <= ATTEMPTS && !options.signal?.aborted; attempt++) {
    try {
      return { excluded: await options.screen(variant, options.signal), ran: true };
    } catch (error) {
      if (options.signal?.aborted) break;
      reason = await recovered(variant, { measured: false, reason: messageOf(error) }, options);
    }
  }
  return { excluded: `${variant.name} could not be checked: ${reason}`, ran: false };
}

interface Attempt {
  /** Null when no attempt gave a valid result. */
  readonly result: TrialResult | null;
  /** False when the trial could not be run at all, as opposed to an invalid measurement. */
  readonly ran: boolean;
  /** It could not be run, and the target came back after every attempt: it may be the variant that the server does not stand. */
  readonly targetIsBack: boolean;
  readonly reason: string;
}

async function runTrial(spec: TrialSpec, options: SweepOptions): Promise<Attempt> {
  const stored = options.store.find(spec);
  if (stored) {
    options.onEvent?.({ kind: "trial-finished", spec, result: stored, fromLog: true });
    return { result: stored, ran: true, targetIsBack: false, reason: "" };
  }
  let reason = "";
  let ran = false;
  let targetIsBack = true;
  for (let attempt = 1; attempt <= ATTEMPTS && !options.signal?.aborted; attempt++) {
    options.onEvent?.({ kind: "trial-started", spec, attempt });
    const outcome = await attemptTrial(spec, options);
    if (options.signal?.aborted) break;
    if (outcome.result) {
      ran = true;
      // Outside the retry: a results folder that cannot be written must end the sweep, not repeat the measurement.
      await options.store.append(spec, outcome.result);
      if (outcome.result.load.valid) {
        options.onEvent?.({ kind: "trial-finished", spec, result: outcome.result, fromLog: false });
        return { result: outcome.result, ran, targetIsBack: false, reason: "" };
      }
    }
    reason = outcome.reason;
    options.onEvent?.({ kind: "trial-failed", spec, reason, willRetry: attempt < ATTEMPTS });
    if (attempt < ATTEMPTS) {
      const after = await recovered(spec.variant, { measured: outcome.result !== null, reason }, options);
      targetIsBack &&= after === reason;
      reason = after;
    }
  }
  return { result: null, ran, targetIsBack: targetIsBack && !ran, reason };
}

/** One run of the trial: its result, or the reason why there is none or why it must not be used. */
async function attemptTrial(
  spec: TrialSpec,
  options: SweepOptions,
): Promise<{ result: TrialResult | null; reason: string }> {
  try {
    const result = await options.runner.run(
      spec,
      (progress) => options.onEvent?.({ kind: "trial-progress", spec, progress }),
      options.signal,
    );
    return { result, reason: result.load.invalidReasons.join("; ") };
  } catch (error) {
    return { result: null, reason: messageOf(error) };
  }
}

/** Why the trial failed, once the target is back or the wait for it was in vain. @throws SweepOver when nothing more can be run */
async function recovered(variant: Variant, failure: TrialFailure, options: SweepOptions): Promise<string> {
  const waiting = new AbortController();
  let timeIsUp: string | null = null;
  const look = setInterval(() => {
    timeIsUp ??= options.reasonToStop?.() ?? null;
    if (timeIsUp !== null) waiting.abort(new Error(timeIsUp));
  }, MAY_GO_ON_POLL_MS);
  try {
    await options.recover(variant, failure, {
      signal: options.signal ? AbortSignal.any([options.signal, waiting.signal]) : waiting.signal,
      onWaiting: (text) => options.onEvent?.({ kind: "waiting", variant, text }),
    });
    return failure.reason;
  } catch (error) {
    if (timeIsUp !== null) throw new SweepOver(timeIsUp);
    if (error instanceof TargetGone) throw new SweepOver(`${variant.name}: ${error.message}`);
    return `${failure.reason}; recovery failed: ${messageOf(error)}`;
  } finally {
    clearInterval(look);
  }
}

function asSweepOver(error: unknown): SweepOver {
  if (error instanceof SweepOver) return error;
  throw error;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
