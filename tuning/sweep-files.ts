/**
 * What the results folder says about a sweep, as far as it has come: manifest.json, result.json and report.html. They are written again
 * after every variant, so a sweep that is killed leaves what it knew.
 */
import type { Variant } from "../model-repo/variant";
import type { Screening } from "./accuracy/screening";
import type { Exploration } from "./explore/explore";
import type { VariantOutcome } from "./outcome";
import { renderReport } from "./report/render-report";
import { buildResult } from "./results/build-result";
import { hashOfImages, type ImageFact } from "./results/images";
import { describeHost, lawToJson, type Manifest } from "./results/manifest";
import { manifestDifferences } from "./results/manifest-differences";
import type { Result } from "./results/result-schema";
import type { ResultsFolder } from "./results/results-folder";
import type { Scaling } from "./scaling";
import type { OpenTarget } from "./target";
import type { TuneRunner, TuneSettings } from "./tune-settings";

export interface SweepOfFiles {
  readonly target: OpenTarget;
  readonly folder: ResultsFolder;
  readonly settings: TuneSettings;
  /** May grow: what is proposed meanwhile is added to it. */
  readonly variants: Variant[];
  readonly images: readonly ImageFact[];
  readonly runner: TuneRunner;
  readonly screening: Screening | null;
}

export class SweepFiles {
  readonly variants: Variant[];
  /** Sentences that a person should know. */
  readonly notes: string[];
  readonly scaling: Scaling[] = [];
  exploration: Exploration | null = null;
  readonly startedAt = new Date();
  readonly imagesHash: string;

  constructor(private readonly sweep: SweepOfFiles) {
    const { target, folder, settings, variants, images } = sweep;
    this.variants = variants;
    this.imagesHash = hashOfImages(images);
    this.notes = [...target.notes, ...folder.notes, ...(settings.notes ?? [])];
    const previous = folder.previousManifest;
    const changes = previous ? manifestDifferences(previous, this.manifest(null)) : [];
    this.notes.push(...changes.map((change) => `changed since the sweep that is continued: ${change}`));
  }

  /** Before the first trial: whoever finds the folder knows what was meant. */
  begin(): void {
    this.sweep.folder.writeManifest(this.manifest(null));
  }

  /**
   * @param endedEarly why variants are missing; null when none is
   * @param ended the sweep is over and complete
   */
  write(outcomes: readonly VariantOutcome[], endedEarly: string | null, ended: boolean): Result {
    const { folder } = this.sweep;
    const now = new Date();
    const manifest = this.manifest(ended ? now : null);
    const result = this.result(outcomes, endedEarly, now);
    folder.writeManifest(manifest);
    folder.writeResult(result);
    folder.writeReport(renderReport(result, manifest));
    return result;
  }

  private manifest(endedAt: Date | null): Manifest {
    const { target, folder, settings, images } = this.sweep;
    const startedAt = this.startedAt.toISOString();
    const previous = folder.previousManifest;
    return {
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
      imagesHash: this.imagesHash,
      facts: { ...target.facts },
      gpu: target.gpu,
      variants: this.variants.map((variant) => ({
        variant: { ...variant, preferredBatchSizes: [...variant.preferredBatchSizes] },
        modelHash: target.modelHash?.(variant) ?? target.artefactHash?.(variant) ?? null,
        law: target.lawOf ? lawToJson(target.lawOf(variant)) : null,
        timeDilation: target.plannedDilation(variant),
      })),
      startedAt: previous?.startedAt ?? startedAt,
      resumedAt: previous ? [...previous.resumedAt, startedAt] : [],
      endedAt: endedAt?.toISOString() ?? null,
    };
  }

  private result(outcomes: readonly VariantOutcome[], endedEarly: string | null, now: Date): Result {
    const { target, settings, runner, screening } = this.sweep;
    return buildResult(outcomes, {
      project: settings.project,
      target: target.kind,
      targetDescription: target.description,
      simulated: target.simulated,
      slo: settings.slo,
      load: settings.load,
      seed: settings.seed,
      startedAt: this.startedAt,
      elapsedS: (now.getTime() - this.startedAt.getTime()) / 1000,
      variants: this.variants,
      exploration: this.exploration,
      timeDilationOf: (variant) => target.timeDilation(variant),
      goalRatePerS: settings.goalRatePerS,
      price: settings.price,
      cost: settings.cost?.total() ?? null,
      scaling: this.scaling,
      scheduler: target.facts.scheduler,
      processor: target.facts.processor,
      accuracy: screening?.facts ?? null,
      accuracyOf: (variant) => screening?.gate.verdictOf(variant) ?? null,
      assumptionsOf: target.assumptionsOf,
      standAloneOf: target.standAloneOf,
      warmUpOf: runner.warmUpOf?.bind(runner),
      endedEarly,
      notes: this.notes,
    });
  }
}
