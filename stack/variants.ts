import { readFileSync } from "node:fs";
import { join } from "node:path";
import { catalogue, findVariant, UnknownNameError } from "../model-repo/catalogue";
import { toConfigPbtxt } from "../model-repo/config-pbtxt";
import { InvalidVariantError } from "../model-repo/validate-variant";
import { variantFromObject } from "../model-repo/variant-from-object";
import type { Variant } from "../model-repo/variant";
import type { ConfigValues } from "./config-keys";
import { modelInPlan, ownLabels } from "./served-model";
import type { SourceModel } from "./source-model";

/** The variants of a stack. */
export interface StackVariants {
  /** What Triton loads when it starts. */
  readonly served: Variant;
  /** Everything in the model repository: the served variant first, each name once. */
  readonly repository: readonly Variant[];
}

type Reject = (key: string, message: string) => void;

/** Reads the keys `variant` and `repositoryVariants`; a broken one is reported and replaced by a valid stand-in. */
export function readVariants(
  values: Pick<ConfigValues, "variant" | "repositoryVariants">,
  reject: Reject,
): StackVariants {
  const standIn = catalogue[0] as Variant;
  const served = readVariant(values.variant, "variant", reject) ?? standIn;
  const others = values.repositoryVariants
    .map((entry, index) =>
      readVariant(entry, `repositoryVariants[${index}]`, (_, message) =>
        reject("repositoryVariants", message),
      ),
    )
    .filter((variant) => variant !== undefined);
  const repository: Variant[] = [served];
  for (const variant of others) {
    const twin = repository.find((known) => known.name === variant.name);
    if (twin === undefined) repository.push(variant);
    else if (JSON.stringify(twin) !== JSON.stringify(variant)) {
      reject(
        "repositoryVariants",
        `two different variants are called "${variant.name}"; give one of them another name`,
      );
    }
  }
  return { served, repository };
}

function readVariant(entry: unknown, path: string, reject: Reject): Variant | undefined {
  try {
    return typeof entry === "string" ? findVariant(entry) : variantFromObject(entry, path);
  } catch (error) {
    if (error instanceof InvalidVariantError) {
      for (const problem of error.problems) reject(path, `${problem.path}: ${problem.message}`);
    } else if (error instanceof UnknownNameError) {
      reject(path, error.message);
    } else {
      throw error;
    }
    return undefined;
  }
}

/** Text files of a variant's folder in the model repository: its configuration and, if it has labels, those. */
export function variantFiles(variant: Variant, model: SourceModel): Readonly<Record<string, string>> {
  const { labelsFile } = variant.artefact;
  const files = { "config.pbtxt": toConfigPbtxt(variant) };
  if (labelsFile === null) return files;
  return {
    ...files,
    [labelsFile]: ownLabels(model) ?? readFileSync(join(labelsFolder, labelsFile), "utf8"),
  };
}

const labelsFolder = join(__dirname, "..", "model-repo", "labels");

/** What a conversion works with beside the variants; field names are the plan's. */
export interface ConversionSettings {
  readonly image: string;
  readonly gpuType: string;
  readonly model: SourceModel;
  /** Images that INT8 is calibrated with, and images that accuracy is measured on. */
  readonly calibration: ImageSet;
  readonly heldOut: ImageSet;
}

interface ImageSet {
  readonly source: string;
  readonly count: number;
}

/** The conversion plan as JSON: which artefacts to make, and which variants each is for. */
export function conversionPlan(variants: readonly Variant[], conversion: ConversionSettings): string {
  const artefacts = artefactsOf(variants).map((artefact) => ({
    ...artefact,
    // Engines are built ahead for the batch sizes that will be served.
    batchSizes: [
      ...new Set(variants.filter((v) => v.artefact.name === artefact.name).map((v) => v.maxBatchSize)),
    ].sort((a, b) => a - b),
  }));
  const publish = variants.map((variant) => ({ name: variant.name, artefact: variant.artefact.name }));
  const model = modelInPlan(conversion.model);
  const plan = { schemaVersion: 1, ...conversion, model, artefacts, variants: publish };
  return `${JSON.stringify(plan, null, 2)}\n`;
}

/** Artefacts of the variants, each once, in order of first use. */
export function artefactsOf(variants: readonly Variant[]): Variant["artefact"][] {
  return [...new Map(variants.map(({ artefact }) => [artefact.name, artefact])).values()];
}
