/**
 * The main job, whatever the target: sweep the variants, keep every trial, and leave result.json, manifest.json and report.html in the
 * results folder, up to date after every variant.
 */
import { listImages } from "../loadgen/image-tensor";
import type { LoadSpec } from "../loadgen/load-spec";
import type { Variant } from "../model-repo/variant";
import { winnerYaml } from "./decision/recommendation";
import { openScreening, type AccuracySettings } from "./accuracy/screening";
import { explore, type Exploration } from "./explore/explore";
import { LiveRunner, type LiveRunnerOptions } from "./live-runner";
import type { VariantOutcome } from "./outcome";
import { askReferenceAnswers } from "./reference-answers";
import { renderReport } from "./report/render-report";
import { findScaling, type Scaling } from "./scaling";
import { buildResult } from "./results/build-result";
import { describeImages, hashOfImages } from "./results/images";
import { describeHost, lawToJson, type Manifest } from "./results/manifest";
import { manifestDifferences } from "./results/manifest-differences";
import type { Result } from "./results/result-schema";
import type { ResultsFolder } from "./results/results-folder";
import { pointLogStore } from "./results/trial-store";
import { budgetFor, type BudgetPreset } from "./search/budget";
import type { LoadMode } from "./search/load-axis";
import { leaderOf } from "./search/race";
import { searchSloRate } from "./search/strategy";
import { runSweep, type SweepEvent, type SweepResult } from "./sweep";
import type { CostMeter } from "./sweep-cost";
import type { OpenTarget } from "./target";
import type { Slo } from "./trial";

export interface TuneSettings {
  readonly variants: readonly Variant[];
  readonly slo: Slo;
  /** Rate that is to be reached; null when only the limit is asked for. */
  readonly goalRatePerS: number | null;
  readonly load: LoadMode;
  readonly effort: BudgetPreset;
  readonly seed: number;
  readonly imageFolder: string;
  readonly transport: LoadSpec["transport"];
  readonly project: { readonly name: string; readonly version: string };
  /** The command's options, for the manifest. */
  readonly options: Manifest["options"];
  /** Price of one replica with its node; null when no prices are given. */
  readonly price: Result["price"];
  /** Numbers of replicas whose rate together is measured for the winner. Default: all that there are are tried once. */
  readonly replicas?: readonly number[] | null;
  /** Counts what the sweep costs and ends it at its limit. Default: nothing is paid for. */
  readonly cost?: CostMeter | null;
  /** Wall minutes after which the sweep ends with what it has. Default: no limit. */
  readonly maxMinutes?: number | null;
  /** Comparison of answers before speed counts. Default: none, and `notes` say why. */
  readonly accuracy?: AccuracySettings | null;
  /** A variant that is clearly worse than the best one so far is given up early. Default: false. */
  readonly race?: boolean;
  /** Configurations that nobody wrote down to measure at most, after the variants. Default: 0. */
  readonly explore?: number;
  /** More that a person should know, in sentences. */
  readonly notes?: readonly string[];
}

export interface TuneHooks {
  readonly onEvent: (event: SweepEvent) => void;
  readonly signal: AbortSignal;
  /** Runs the trials. Default: live, on the target. */
  readonly runner?: TuneRunner;
}

/** What runs a sweep's trials; the live runner, or one in virtual time. */
export type TuneRunner = Pick<LiveRunner, "run" | "runOn" | "reset"> &
  Partial<Pick<LiveRunner, "prepare" | "warmUpOf">>;

/** @throws ImageError, ResultsError; an interrupted or broken sweep is not an error but `endedEarly` of the result */
export async function tune(
  target: OpenTarget,
  folder: ResultsFolder,
  settings: TuneSettings,
  hooks: TuneHooks,
): Promise<Result> {
  const startedAt = new Date();
  const images = describeImages(await listImages(settings.imageFolder));
  const imagesHash = hashOfImages(images);
  const runner =
    hooks.runner ??
    liveRunner(target, settings, (variant, progress) =>
      hooks.onEvent({ kind: "warming-up", variant, progress }),
    );
  const store = pointLogStore(
    folder.log,
    (variant) => ({
      serverIdentity: target.identity,
      replicas: Math.max(1, target.endpoints().grpc.length),
      modelHash: target.modelHash?.(variant) ?? null,
      imagesHash,
      loadGenerator: { transport: settings.transport },
    }),
    (variant) => target.timeDilation(variant),
  );

  const { accuracy } = settings;
  /** Those asked for, then those that the exploration proposes. */
  const variants = [...settings.variants];
  const screening = accuracy
    ? await openScreening(accuracy, { folder: folder.path, variants, target, runner })
    : null;

  const manifest = (endedAt: Date | null): Manifest => ({
    schemaVersion: 1,
    project: settings.project,
    node: process.version,
    host: describeHost(),
    target: {
      kind: target.kind,
      description: target.description,
      simulated: target.simulated,
      serverName: target.serverName,
      serverVersion: target.serverVersion,
      identity: target.identity,
      dashboardUrl: target.dashboardUrl ?? null,
    },
    options: settings.options,
    seed: settings.seed,
    slo: settings.slo,
    load: settings.load,
    workers: target.workers,
    images: [...images],
    imagesHash,
    facts: { ...target.facts },
    gpu: target.gpu,
    variants: variants.map((variant) => ({
      variant: {
        ...variant,
        preferredBatchSizes: [...variant.preferredBatchSizes],
      },
      modelHash: target.modelHash?.(variant) ?? target.artefactHash?.(variant) ?? null,
      law: target.lawOf ? lawToJson(target.lawOf(variant)) : null,
      timeDilation: target.plannedDilation(variant),
    })),
    startedAt: folder.previousManifest?.startedAt ?? startedAt.toISOString(),
    resumedAt: folder.previousManifest ? [...folder.previousManifest.resumedAt, startedAt.toISOString()] : [],
    endedAt: endedAt?.toISOString() ?? null,
  });
  const previous = folder.previousManifest;
  const changes = previous ? manifestDifferences(previous, manifest(null)) : [];
  const notes = [
    ...target.notes,
    ...folder.notes,
    ...(settings.notes ?? []),
    ...changes.map((change) => `changed since the sweep that is continued: ${change}`),
  ];
  const scaling: Scaling[] = [];
  let exploration: Exploration | null = null;
  const write = (outcomes: readonly VariantOutcome[], endedEarly: string | null, ended: boolean): Result => {
    const now = new Date();
    const current = manifest(ended ? now : null);
    const result = buildResult(outcomes, {
      project: settings.project,
      target: target.kind,
      targetDescription: target.description,
      simulated: target.simulated,
      slo: settings.slo,
      load: settings.load,
      seed: settings.seed,
      startedAt,
      elapsedS: (now.getTime() - startedAt.getTime()) / 1000,
      variants,
      exploration,
      timeDilationOf: (variant) => target.timeDilation(variant),
      goalRatePerS: settings.goalRatePerS,
      price: settings.price,
      cost: settings.cost?.total() ?? null,
      scaling,
      scheduler: target.facts.scheduler,
      processor: target.facts.processor,
      accuracy: screening?.facts ?? null,
      accuracyOf: (variant) => screening?.gate.verdictOf(variant) ?? null,
      assumptionsOf: target.assumptionsOf,
      standAloneOf: target.standAloneOf,
      warmUpOf: runner.warmUpOf?.bind(runner),
      endedEarly,
      notes,
    });
    folder.writeManifest(current);
    folder.writeResult(result);
    folder.writeReport(renderReport(result, current));
    return result;
  };

  folder.writeManifest(manifest(null));
  const outcomes: VariantOutcome[] = [];
  const sweepOf = (some: readonly Variant[], done: number): Promise<SweepResult> =>
    runSweep({
      variants: some,
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
      recover: async (variant, failure) => {
        runner.reset();
        await target.recover(variant, failure, hooks.signal);
      },
      onEvent: (event) => {
        hooks.onEvent(
          event.kind === "variant-started"
            ? { ...event, index: done + event.index, of: variants.length }
            : event,
        );
        if (event.kind === "variant-finished") {
          outcomes.push(event.outcome);
          if (outcomes.length < variants.length) write(outcomes, "the sweep is still running", false);
        }
      },
      signal: hooks.signal,
      reasonToStop: () => settings.cost?.reasonToStop() ?? timeIsOver(startedAt, settings.maxMinutes ?? null),
    });
  const sweep = await restoring(target, notes, async () => {
    let swept = await sweepOf(settings.variants, 0);
    if (swept.endedEarly === null && settings.explore) {
      const explored = await explore({
        most: settings.explore,
        variants,
        outcomes: swept.outcomes,
        slo: settings.slo,
        mode: settings.load,
        facts: target.facts,
        measure: ({ variant }) => {
          variants.push(variant);
          return sweepOf([variant], variants.length - 1);
        },
      });
      exploration = explored.exploration;
      swept = { outcomes: [...swept.outcomes, ...explored.outcomes], endedEarly: explored.endedEarly };
    }
    const replicas = target.replicas?.();
    if (swept.endedEarly === null && replicas) {
      const { recommendation, variants: measured } = write(
        swept.outcomes,
        "the scaling is being checked",
        false,
      );
      const variant = variants.find(({ name }) => name === recommendation.variant);
      const { operatingRate, sloRate } = measured.find(({ name }) => name === variant?.name) ?? {};
      if (variant && operatingRate && sloRate) {
        const { slo, seed } = settings;
        const check = { replicas, runner, variant, slo, seed, signal: hooks.signal };
        const found = await findScaling(check, operatingRate, sloRate.estimate, settings.replicas ?? null);
        scaling.push(...found.measured);
        notes.push(...found.notes);
      }
    }
    return swept;
  });
  const result = write(sweep.outcomes, sweep.endedEarly, sweep.endedEarly === null);
  const winner = winnerYaml(result);
  if (winner !== null) folder.writeRecommendation(winner);
  return result;
}

function timeIsOver(startedAt: Date, maxMinutes: number | null): string | null {
  if (maxMinutes === null || Date.now() - startedAt.getTime() < maxMinutes * 60_000) return null;
  return `the ${maxMinutes} minutes of --max-minutes are over`;
}

/** Runs trials on the target, with the images of a folder. */
export function liveRunner(
  target: OpenTarget,
  { imageFolder, transport }: Pick<TuneSettings, "imageFolder" | "transport">,
  onWarmUp?: LiveRunnerOptions["onWarmUp"],
): LiveRunner {
  return new LiveRunner({
    target,
    imageFolder,
    transport,
    onWarmUp,
    referenceAnswers: (variant, modelName, address, signal) =>
      askReferenceAnswers(variant, modelName, address, imageFolder, signal),
  });
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
