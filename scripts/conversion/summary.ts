/** What a conversion made, from the manifests and failures in the bucket. */
import { z } from "zod";
import { speedsSchema } from "../../model-repo/stand-alone-speed";
import { TargetError } from "../../targets/target-error";
import { computeCapability } from "./compute-capability";
import type { Cloud } from "./gcloud";

/** `artefacts/NAME/manifest.json` as `model-repo/convert/run.py` writes it; the parts that are shown. */
const manifestSchema = z.looseObject({
  artefact: z.string(),
  precision: z.string(),
  gpu: z.looseObject({ name: z.string(), computeCapability: z.string() }).nullable(),
  accuracy: z.looseObject({ top1Agreement: z.number() }).nullable(),
  standAloneSpeed: speedsSchema,
});
const failureSchema = z.looseObject({ message: z.string(), fix: z.string() });

export type ArtefactManifest = z.infer<typeof manifestSchema>;

/** @throws TargetError when a manifest is missing, of another version, or of a GPU that does not serve */
export async function readManifests(
  cloud: Cloud,
  artefacts: readonly string[],
  servingGpu: string,
): Promise<ArtefactManifest[]> {
  const manifests: ArtefactManifest[] = [];
  for (const name of artefacts) {
    const text = await cloud.read(`artefacts/${name}/manifest.json`);
    if (text === null)
      throw new TargetError(`artefact ${name} has no manifest in the bucket: run the conversion again`);
    const parsed = manifestSchema.safeParse(JSON.parse(text));
    if (!parsed.success)
      throw new TargetError(
        `the manifest of artefact ${name} is of another version: run the conversion again`,
      );
    const { gpu } = parsed.data;
    const wanted = computeCapability[servingGpu];
    if (gpu !== null && wanted !== undefined && gpu.computeCapability !== wanted)
      throw new TargetError(
        `artefact ${name} was made on ${gpu.name} (compute capability ${gpu.computeCapability}), ` +
          `but ${servingGpu} (${wanted}) serves: give both the same gpuType and convert again`,
      );
    manifests.push(parsed.data);
  }
  return manifests;
}

/** A table with the stand-alone speed at the largest batch. */
export function renderManifests(manifests: readonly ArtefactManifest[]): string {
  const rows = manifests.map(({ artefact, precision, gpu, accuracy, standAloneSpeed }) => {
    const fastest = standAloneSpeed.at(-1);
    return [
      artefact,
      precision,
      gpu?.name ?? "no GPU",
      fastest ? `${Math.round(fastest.imagesPerS)}/s in batches of ${fastest.batchSize}` : "not measured",
      fastest ? `${fastest.latencyP95Ms.toFixed(1)} ms` : "",
      accuracy === null ? "not measured" : `${(accuracy.top1Agreement * 100).toFixed(1)} %`,
    ];
  });
  const table = [["artefact", "precision", "GPU", "alone, images", "p95", "same top-1 as original"], ...rows];
  const widths =
    table[0]?.map((_, column) => Math.max(...table.map((row) => row[column]?.length ?? 0))) ?? [];
  return table
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

/** Why artefacts failed, one a line. */
export async function readFailures(cloud: Cloud, artefacts: readonly string[]): Promise<string[]> {
  return Promise.all(
    artefacts.map(async (name) => {
      const text = await cloud.read(`conversion/failures/${name}.json`);
      const parsed = text === null ? undefined : failureSchema.safeParse(JSON.parse(text));
      return parsed?.success
        ? `${name}: ${parsed.data.message}. ${parsed.data.fix}`
        : `${name}: failed without an explanation; see the log`;
    }),
  );
}
