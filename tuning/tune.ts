/**
 * The main job, whatever the target: a variant is looked at (accuracy/), loaded and measured trial by trial (sweep.ts, live-runner.ts) as
 * its search asks (search/strategy.ts), concluded and diagnosed there, and written down (sweep-files.ts, point log) before the next one.
 */
import { listImages } from "../loadgen/image-tensor";
import type { Variant } from "../model-repo/variant";
import { openScreening } from "./accuracy/screening";
import { winnerYaml } from "./decision/recommendation";
import { explore } from "./explore/explore";
import { liveRunner } from "./live-trials";
import type { VariantOutcome } from "./outcome";
import { describeImages } from "./results/images";
import type { Result } from "./results/result-schema";
import type { ResultsFolder } from "./results/results-folder";
import { pointLogStore } from "./results/trial-store";
import { findScaling } from "./scaling";
import { budgetFor } from "./search/budget";
import { leaderOf } from "./search/race";
import { searchSloRate } from "./search/strategy";
import { runSweep, type SweepResult } from "./sweep";
import { SweepFiles } from "./sweep-files";
import type { OpenTarget } from "./target";
import type { TuneHooks, TuneRunner, TuneSettings } from "./tune-settings";

/** @throws ImageError, ResultsError; an interrupted or broken sweep is not an error but `endedEarly` of the result */
export async function tune(
  target: OpenTarget,
  folder: ResultsFolder,
  settings: TuneSettings,
  hooks: TuneHooks,
): Promise<Result> {
  const images = describeImages(await listImages(settings.imageFolder));
  const runner = hooks.runner ?? runnerOn(target, settings, hooks);
  const { accuracy } = settings;
  // Those asked for, then those that the exploration proposes.
  const variants = [...settings.variants];
  const screening = accuracy
    ? await openScreening(accuracy, { folder: folder.path, variants, target, runner })
    : null;
  const files = new SweepFiles({ target, folder, settings, variants, images, runner, screening });
  files.begin();
  const parts: SweepParts = { target, folder, settings, hooks, runner, screening, files };
  const measure = sweepWith(parts);
  const sweep = await restoring(target, files.notes, async () => {
    let swept = await measure(settings.variants);
    if (swept.endedEarly === null && settings.explore)
      swept = await exploring(parts, measure, swept, settings.explore);
    if (swept.endedEarly === null) await checkReplicas(parts, swept.outcomes);
    return swept;
  });
  const result = files.write(sweep.outcomes, sweep.endedEarly, sweep.endedEarly === null);
  const winner = winnerYaml(result);
  if (winner !== null) folder.writeRecommendation(winner);
  return result;
}

function runnerOn(target: OpenTarget, settings: TuneSettings, { onEvent }: TuneHooks): TuneRunner {
  return liveRunner(target, settings, (variant, progress) =>
    onEvent({ kind: "warming-up", variant, progress }),
  );
}

/** Measures variants, one after the other. */
type Measure = (variants: readonly Variant[]) => Promise<SweepResult>;

interface SweepParts {
  readonly target: OpenTarget;
  readonly folder: ResultsFolder;
  readonly settings: TuneSettings;
  readonly hooks: TuneHooks;
  readonly runner: TuneRunner;
  readonly screening: Awaited<ReturnType<typeof openScreening>> | null;
  readonly files: SweepFiles;
}

/** Sweeps share the point log, the files, and what is known of the variants so far. */
function sweepWith({ target, folder, settings, hooks, runner, screening, files }: SweepParts): Measure {
  const outcomes: VariantOutcome[] = [];
  const store = pointLogStore(
    folder.log,
    (variant) => ({
      serverIdentity: target.identity,
      replicas: Math.max(1, target.endpoints().grpc.length),
      modelHash: target.modelHash?.(variant) ?? null,
      imagesHash: files.imagesHash,
      loadGenerator: { transport: settings.transport },
    }),
    (variant) => target.timeDilation(variant),
  );
  return (variants) => {
    const before = outcomes.length;
    return runSweep({
      variants,
      strategyFor: (variant) =>
        searchSloRate({
          variant,
          slo: settings.slo,
          mode: settings.load,
          seed: settings.seed,
          budget: budgetFor(settings.effort, target.plannedDilation(variant)),
          facts: target.facts,
          goalRatePerS: settings.goalRatePerS,
          leader: settings.race ? leaderOf(outcomes) : null,
          lawOf: target.lawOf,
        }),
      screen: screening ? (variant, signal) => screening.screen(variant, signal) : undefined,
      runner,
      store,
      recover: async (variant, failure, watch) => {
        runner.reset();
        await target.recover(variant, failure, watch);
      },
      onEvent: (event) => {
        const of = files.variants.length;
        hooks.onEvent(
          event.kind === "variant-started" ? { ...event, index: before + event.index, of } : event,
        );
        if (event.kind !== "variant-finished") return;
        outcomes.push(event.outcome);
        if (outcomes.length < of) files.write(outcomes, "the sweep is still running", false);
      },
      signal: hooks.signal,
      reasonToStop: () =>
        settings.cost?.reasonToStop() ?? timeIsOver(files.startedAt, settings.maxMinutes ?? null),
    });
  };
}

/** Configurations that nobody wrote down, after those that were asked for. */
async function exploring(
  { target, settings, files }: SweepParts,
  measure: Measure,
  swept: SweepResult,
  most: number,
): Promise<SweepResult> {
  const explored = await explore({
    most,
    variants: files.variants,
    outcomes: swept.outcomes,
    slo: settings.slo,
    mode: settings.load,
    facts: target.facts,
    measure: ({ variant }) => {
      files.variants.push(variant);
      return measure([variant]);
    },
  });
  files.exploration = explored.exploration;
  return { outcomes: [...swept.outcomes, ...explored.outcomes], endedEarly: explored.endedEarly };
}

/** Where more replicas serve than are measured: whether their rates add up, tried with the recommended variant. */
async function checkReplicas(
  { target, settings, files, runner, hooks }: SweepParts,
  outcomes: readonly VariantOutcome[],
): Promise<void> {
  const replicas = target.replicas?.();
  if (replicas === undefined) return;
  const { recommendation, variants } = files.write(outcomes, "the scaling is being checked", false);
  const variant = files.variants.find(({ name }) => name === recommendation.variant);
  const { operatingRate, sloRate } = variants.find(({ name }) => name === variant?.name) ?? {};
  if (!variant || !operatingRate || !sloRate) return;
  const { slo, seed } = settings;
  const check = { replicas, runner, variant, slo, seed, signal: hooks.signal };
  const found = await findScaling(check, operatingRate, sloRate.estimate, settings.replicas ?? null);
  files.scaling.push(...found.measured);
  files.notes.push(...found.notes);
}

function timeIsOver(startedAt: Date, maxMinutes: number | null): string | null {
  if (maxMinutes === null || Date.now() - startedAt.getTime() < maxMinutes * 60_000) return null;
  return `the ${maxMinutes} minutes of --max-minutes are over`;
}

/**
 * What was served before is served again, however the sweep ends. A server that is gone must not take the result with it: then a
 * note says what is left to do.
 */
async function restoring<T>(target: OpenTarget, notes: string[], sweep: () => Promise<T>): Promise<T> {
  try {
    return await sweep();
  } finally {
    try {
      await target.control.restore();
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      notes.push(`what was served before the sweep could not be loaded again (${reason}): load it by hand`);
    }
  }
}
