/**
 * `manifest.json`: everything that is needed to run the sweep again and to judge where its numbers come from. It holds no
 * secrets: no environment, no credentials in addresses (`withoutCredentials`), no host or user name.
 */
import { readFileSync } from "node:fs";
import { cpus, totalmem } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import type { ServiceLaw } from "../../serving-model/service-law";
import { writeFileAtomic } from "./durable";
import { gpuFactsSchema } from "./gpu-facts";
import { errorCode, fsError, oneLine, ResultsError } from "./results-error";
import { sloSchema, variantSchema } from "./trial-schema";

/** Name of the manifest in the results folder. */
export const manifestFileName = "manifest.json";

/** Service law as JSON: a ceiling that is no limit is null, since JSON has no infinity. */
export const lawSchema = z.object({
  hostMsPerBatch: z.number().optional().describe("Absent: 0."),
  hostMsPerImage: z.number(),
  gpuMsPerBatch: z.number(),
  gpuMsPerImage: z.number(),
  ingressRequestsPerS: z.number().nullable().describe("Null: no limit."),
});

/** A service law as it is written into JSON files. */
export type LawJson = z.infer<typeof lawSchema>;

export const manifestSchema = z.looseObject({
  schemaVersion: z.literal(1),
  project: z.object({ name: z.string(), version: z.string() }),
  node: z.string(),
  host: z.object({
    cpuModel: z.string(),
    cores: z.number().int().positive(),
    memoryBytes: z.number().positive(),
    platform: z.string(),
    architecture: z.string(),
  }),
  target: z.object({
    /** `local`, `stack` or `address`. */
    kind: z.string(),
    description: z.string(),
    simulated: z.boolean(),
    serverName: z.string(),
    serverVersion: z.string(),
    identity: z.string(),
    /** Dashboard that shows trials as they ran, without a time; null when there is none, absent in older manifests. */
    dashboardUrl: z.string().nullable().optional(),
  }),
  /** The command's options after parsing, defaults filled in. */
  options: z.record(z.string(), z.json()),
  seed: z.number().int(),
  slo: sloSchema,
  /** Kind of load: poisson, constant or users. */
  load: z.string(),
  workers: z.number().int().positive(),
  /** What the search knew of the system beforehand; absent: nothing was recorded. */
  facts: z
    .looseObject({
      wireCeilingPerS: z.number().nullable(),
      clientCeilingPerS: z.number().nullable(),
      scheduler: z.enum(["idle", "payload"]).optional(),
      processor: z.enum(["gpu", "cpu"]).optional(),
    })
    .optional(),
  /** The servers' GPUs; null: none, or a simulated one; absent in older manifests. */
  gpu: gpuFactsSchema.nullable().optional(),
  images: z.array(z.object({ file: z.string(), bytes: z.number().int(), sha256: z.string() })).min(1),
  imagesHash: z.string(),
  variants: z.array(
    z.looseObject({
      variant: variantSchema,
      /** Hash of the model's files, as the server or the conversion's manifest shows them; null when neither does. */
      modelHash: z.string().nullable(),
      /** Service law of the simulated GPU, or of the catalogue; null when none is known. */
      law: lawSchema.nullable(),
      /** Wall seconds per model second; null until the variant was probed. */
      timeDilation: z.number().min(1).nullable(),
    }),
  ),
  startedAt: z.iso.datetime(),
  /** Times at which an interrupted sweep was taken up again. */
  resumedAt: z.array(z.iso.datetime()),
  /** Null while the sweep runs, or when it was killed. */
  endedAt: z.iso.datetime().nullable(),
});

/** The manifest's content. */
export type Manifest = z.infer<typeof manifestSchema>;

/** Writes the manifest into a results folder, whole or not at all. @throws ResultsError; ZodError when it breaks its schema */
export function writeManifest(folder: string, manifest: Manifest): void {
  const checked = withoutCredentials(manifestSchema.parse(manifest));
  writeFileAtomic(join(folder, manifestFileName), JSON.stringify(checked, null, 2) + "\n");
}

/** Reads the manifest of a results folder; null when there is none. @throws ResultsError that names what is wrong with it */
export function readManifest(folder: string): Manifest | null {
  const path = join(folder, manifestFileName);
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    if (errorCode(error) === "ENOENT") return null;
    throw fsError(error, `read ${path}`);
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new ResultsError("invalid", `${path} is not JSON (${oneLine(error)}). Use another --out DIR.`, {
      cause: error,
    });
  }
  const manifest = manifestSchema.safeParse(value);
  if (!manifest.success)
    throw new ResultsError(
      "invalid",
      `${path} is not a manifest of this version:\n${z.prettifyError(manifest.error)}`,
    );
  return manifest.data;
}

/** This machine, as far as it may act on a measurement. */
export function describeHost(): Manifest["host"] {
  const processors = cpus();
  return {
    cpuModel: processors[0]?.model.trim() || "unknown",
    cores: Math.max(1, processors.length),
    memoryBytes: totalmem(),
    platform: process.platform,
    architecture: process.arch,
  };
}

/** The law with its infinity spelt as null. */
export function lawToJson(law: ServiceLaw): LawJson {
  return {
    ...(law.hostMsPerBatch ? { hostMsPerBatch: law.hostMsPerBatch } : {}),
    hostMsPerImage: law.hostMsPerImage,
    gpuMsPerBatch: law.gpuMsPerBatch,
    gpuMsPerImage: law.gpuMsPerImage,
    ingressRequestsPerS: Number.isFinite(law.ingressRequestsPerS) ? law.ingressRequestsPerS : null,
  };
}

/**
 * The same value with user names, passwords and query strings taken out of every URL in it: a metrics address may carry a token.
 */
export function withoutCredentials<T>(value: T): T {
  return strip(value) as T;
}

function strip(value: unknown): unknown {
  if (typeof value === "string") return stripUrls(value);
  if (Array.isArray(value)) return value.map(strip);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, strip(member)]));
}

function stripUrls(text: string): string {
  return text.replaceAll(/\b([a-z][a-z0-9+.-]*:\/\/)([^\s/?#@]*@)?([^\s?#]*)(\?[^\s#]*)?/gi, "$1$3");
}
