/** Finds the manifests that say how fast a running server's artefacts are alone: in a stack's bucket, or in files that are named. */
import { readFile } from "node:fs/promises";
import {
  ConversionManifestError,
  parseConversionManifest,
  type ArtefactSpeeds,
} from "../model-repo/conversion-manifest";
import type { Variant } from "../model-repo/variant";
import { knownSpeeds, speedsOf, type KnownSpeeds } from "../targets/known-speeds";
import { TargetError } from "../targets/target-error";
import { computeCapability } from "./conversion/compute-capability";

export interface BucketOfArtefacts {
  /** Name of the bucket, for messages. */
  readonly bucket: string;
  /** An object's text; null if it is not there. @throws TargetError */
  readonly read: (path: string) => Promise<string | null>;
  /** Accelerator type that serves: speeds of another kind of GPU say nothing about it. */
  readonly gpuType: string;
}

/** What the conversion VM left beside its artefacts. A sweep goes on without: what cannot be read is a note. */
export async function speedsInBucket(
  { bucket, read, gpuType }: BucketOfArtefacts,
  variants: readonly Variant[],
): Promise<KnownSpeeds> {
  const names = [...new Set(variants.map(({ artefact }) => artefact.name))];
  const serves = computeCapability[gpuType];
  const look = async (name: string): Promise<ArtefactSpeeds | Unknown> => {
    const path = `artefacts/${name}/manifest.json`;
    try {
      const text = await read(path);
      if (text === null) return { why: "absent", text: name };
      const speeds = parseConversionManifest(text, `gs://${bucket}/${path}`)[0]!;
      const { computeCapability: made, on } = speeds;
      if (made === null || serves === undefined || made === serves) return speeds;
      return { why: "unusable", text: `${name} was measured on ${on}, but ${gpuType} serves` };
    } catch (error) {
      if (error instanceof ConversionManifestError) return { why: "unusable", text: error.message };
      if (error instanceof TargetError) return { why: "unreadable", text: error.message };
      throw error;
    }
  };
  const found: ArtefactSpeeds[] = [];
  const unknown: Unknown[] = [];
  for (const one of await Promise.all(names.map(look)))
    if ("why" in one) unknown.push(one);
    else found.push(one);
  const because = (why: Unknown["why"]): string[] =>
    unknown.filter((one) => one.why === why).map(({ text }) => text);
  const absent = because("absent");
  const reasons = [
    // Without gcloud or permission all of them say the same.
    ...because("unreadable").slice(0, 1),
    ...because("unusable"),
    ...(absent.length > 0
      ? [`there is no manifest of ${absent.join(", ")} in gs://${bucket}/artefacts (npm run convert)`]
      : []),
  ];
  return knownSpeeds(
    found,
    reasons.map((reason) => `how fast models are alone is not known: ${reason}`),
  );
}

/** Why the speeds of an artefact are not known. */
interface Unknown {
  readonly why: "absent" | "unusable" | "unreadable";
  /** The reason; of an absent one its name. */
  readonly text: string;
}

/** Manifests that --conversion-manifest names. @throws TargetError for a file that is none, or that none of the variants is made of */
export async function speedsInFiles(
  files: readonly string[] | null,
  variants: readonly Variant[],
): Promise<KnownSpeeds> {
  const found: ArtefactSpeeds[] = [];
  for (const file of files ?? []) {
    const speeds = await speedsIn(file);
    if (!variants.some((variant) => speedsOf(variant, speeds) !== null))
      throw new TargetError(
        `--conversion-manifest ${file} is about ${speeds.map(({ artefact }) => artefact).join(", ") || "nothing"}, but the variants ` +
          `are made of ${[...new Set(variants.map(({ artefact }) => artefact.name))].join(", ")}: name their manifests`,
      );
    found.push(...speeds);
  }
  return knownSpeeds(found);
}

async function speedsIn(file: string): Promise<ArtefactSpeeds[]> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new TargetError(`--conversion-manifest ${file} cannot be read: ${reason}`);
  }
  try {
    return parseConversionManifest(text, file);
  } catch (error) {
    if (!(error instanceof ConversionManifestError)) throw error;
    throw new TargetError(`--conversion-manifest: ${error.message}`);
  }
}
