/** Files of a Triton model repository, without touching a disk: what a bucket upload and a local folder have in common. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { toConfigPbtxt } from "./config-pbtxt";
import type { ModelConfigOptions } from "./model-config";
import { assertValidVariants } from "./validate-variant";
import type { Variant } from "./variant";

/** Version folder of every model: conversions of other settings are other artefacts, not other versions. */
export const modelVersion = "1";

/** Folder of the labels files that artefacts name. */
export const labelsFolder = join(__dirname, "labels");
/** Folder of the sample images. */
export const imagesFolder = join(__dirname, "images");
/** Folder of images on which answers are compared; no conversion is calibrated with them. */
export const heldOutFolder = join(__dirname, "held-out");

/** Class names, one a line; line n from 0 is class index n. */
export function readLabels(file: string): string[] {
  return parseLabels(readFileSync(join(labelsFolder, file), "utf8"));
}

/** Lines of a labels file; the empty one behind the last line end is none. */
export function parseLabels(text: string): string[] {
  const lines = text.split(/\r?\n/);
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

/**
 * Path -> content of every text file of a repository that serves the variants; paths use `/` and are relative to its root.
 * Model files are not among them: they come from a conversion (`<variant>/1/model/`).
 * @param readLabelsFile content of a labels file by name; default: from model-repo/labels
 * @throws InvalidVariantError
 */
export function repositoryFiles(
  variants: readonly Variant[],
  options?: ModelConfigOptions,
  readLabelsFile: (file: string) => string = (file) => readFileSync(join(labelsFolder, file), "utf8"),
): Map<string, string> {
  assertValidVariants(variants);
  const files = new Map<string, string>();
  for (const variant of variants) {
    files.set(`${variant.name}/config.pbtxt`, toConfigPbtxt(variant, options));
    const { labelsFile } = variant.artefact;
    if (labelsFile !== null) files.set(`${variant.name}/${labelsFile}`, readLabelsFile(labelsFile));
  }
  return files;
}
