/** The accuracy gate of a live sweep: held-out images, the target's answers, and what result and report say about it. */
import { listImages } from "../../loadgen/image-tensor";
import type { Variant } from "../../model-repo/variant";
import type { LiveRunner } from "../live-runner";
import { describeImages, hashOfImages } from "../results/images";
import type { Result } from "../results/result-schema";
import { ResultsError } from "../results/results-error";
import type { OpenTarget } from "../target";
import { askScores } from "./ask";
import { AccuracyGate } from "./gate";
import type { LimitsByPrecision } from "./limits";
import { openAccuracyStore } from "./store";

export interface AccuracySettings {
  /** Variant that all conversions are compared with; the target can serve it. */
  readonly reference: Variant;
  /** Folder of images that no conversion was calibrated with. */
  readonly imageFolder: string;
  readonly limits: LimitsByPrecision;
}

export interface ScreenedSystem {
  /** Results folder. */
  readonly folder: string;
  readonly variants: readonly Variant[];
  readonly target: OpenTarget;
  /** Has the target serve variants. */
  readonly runner: Partial<Pick<LiveRunner, "prepare">>;
}

export interface Screening {
  readonly gate: AccuracyGate;
  readonly facts: NonNullable<Result["accuracy"]>;
  /** Why a variant is not to be measured; null when it may be. See `SweepOptions.screen`. */
  readonly screen: (variant: Variant, signal?: AbortSignal) => Promise<string | null>;
}

/**
 * @throws ImageError for the folder; ResultsError for a store that cannot be read, or when INT8 was calibrated with one of the images:
 *   agreement on those says nothing about others
 */
export async function openScreening(settings: AccuracySettings, system: ScreenedSystem): Promise<Screening> {
  const { reference, imageFolder, limits } = settings;
  const { folder, variants, target, runner } = system;
  const files = await listImages(imageFolder);
  const images = describeImages(files);
  const used = images.filter(({ sha256 }) => target.calibrationImages?.has(sha256));
  if (used.length > 0)
    throw new ResultsError(
      "invalid",
      `${imageFolder}: the models were calibrated with ${used.map(({ file }) => file).join(", ")}, and agreement on those says ` +
        `nothing about other images: name a folder of others with --held-out`,
    );
  const imagesHash = hashOfImages(images);
  const gate = new AccuracyGate({
    reference,
    variants,
    limits,
    store: openAccuracyStore(folder, target.identity, imagesHash),
    scoresOf: async (variant, signal) => {
      if (runner.prepare === undefined)
        throw new Error("this runner serves no variants whose answers could be asked for");
      const { modelName, address } = await runner.prepare(variant, signal);
      return askScores(variant, modelName, address, files, signal);
    },
  });
  return {
    gate,
    facts: { reference: reference.name, images: files.length, imagesHash, limits: { ...limits } },
    screen: async (variant, signal) => {
      const verdict = await gate.check(variant, signal);
      if (verdict === null || verdict.passed) return null;
      return (
        `${variant.name} is excluded: on ${files.length} held-out images its answers differ from those of ${reference.name} ` +
        `(${verdict.reasons.join("; ")})`
      );
    },
  };
}
