/** The ONNX models that `npm run convert -- --local` prepares: what there is, as artefacts and as variants to measure on a CPU. */
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { z } from "zod";
import { machineInWords, machineSchema } from "./conversion-manifest";
import { measuredSpeedAt, speedsSchema, type StandAloneSpeed } from "./stand-alone-speed";
import type { ModelArtefact, Variant } from "./variant";

/** Folder that the conversion writes by default, below the working directory. */
export const defaultOnnxFolder = "onnx-models";

const manifestSchema = z.looseObject({
  schemaVersion: z.literal(1),
  artefacts: z
    .array(
      z.looseObject({
        name: z.string().regex(/^[a-z0-9_]+$/),
        /** Relative to the folder. */
        file: z.string().min(1),
        sha256: z.string().regex(/^[0-9a-f]{64}$/),
        precision: z
          .string()
          .transform((text) => text.toLowerCase())
          .pipe(z.enum(["fp32", "fp16", "int8"])),
        /** Without the batch; NHWC. */
        input: z.looseObject({
          name: z.string(),
          dataType: z.enum(["FP32", "UINT8"]),
          shape: z.tuple([z.number().int().positive(), z.number().int().positive(), z.literal(3)]),
        }),
        output: z.looseObject({ name: z.string(), classes: z.number().int().positive() }),
        labelsFile: z.string().min(1).nullable(),
        /** Comparison with the model that it was made of; null: it was made of none. */
        accuracy: z.unknown(),
        /** Absent in models that were prepared before speeds were measured. */
        standAloneSpeed: speedsSchema.default([]),
      }),
    )
    .min(1),
  /** Where the speeds were measured. */
  machine: machineSchema.nullable().default(null),
});

/** The prepared models cannot be used; the message says what to do. */
export class OnnxModelsError extends Error {
  override readonly name = "OnnxModelsError";
}

/** Prepared models that were looked at. */
export interface OnnxModels {
  readonly folder: string;
  readonly artefacts: readonly ModelArtefact[];
  /** Changes when any model does. */
  readonly hash: string;
  /** SHA-256 of an artefact's model file. */
  readonly fileHashOf: (artefactName: string) => string;
  /** Absolute path of an artefact's model file. */
  readonly modelFileOf: (artefactName: string) => string;
  readonly labelsOf: (labelsFile: string) => string;
  /** How fast a variant's model was alone when it was prepared; null when that was not measured. */
  readonly standAloneOf: (variant: Pick<Variant, "artefact" | "maxBatchSize">) => StandAloneSpeed | null;
  /** Machine that they were prepared on; null when the manifest does not say. */
  readonly machine: z.infer<typeof machineSchema> | null;
  /** Images that the conversion kept apart; null when it left none. */
  readonly heldOutFolder: string | null;
  /** SHA-256 of the images that INT8 was calibrated with, as far as they are there. */
  readonly calibrationImages: ReadonlySet<string>;
}

/** @throws OnnxModelsError when there are none, or when a file is not the one that was prepared */
export function readOnnxModels(folder: string): OnnxModels {
  const manifest = readManifest(folder);
  const byName = new Map(manifest.artefacts.map((entry) => [entry.name, entry]));
  for (const { name, file, sha256 } of manifest.artefacts) {
    if (hashOf(join(folder, file), folder) !== sha256)
      throw new OnnxModelsError(
        `${join(folder, file)} (${name}) is not the file that was prepared: ${prepare(folder)}`,
      );
  }
  const heldOut = join(folder, "images", "held-out");
  return {
    folder,
    artefacts: manifest.artefacts.map((entry) => ({
      name: entry.name,
      platform: "onnxruntime_onnx",
      precision: entry.precision === "fp32" && entry.accuracy === null ? "original" : entry.precision,
      builtMaxBatchSize: null,
      input: {
        name: entry.input.name,
        type: entry.input.dataType,
        dims: entry.input.shape,
        format: "FORMAT_NHWC",
      },
      output: { name: entry.output.name, type: "FP32", dims: [entry.output.classes], format: null },
      labelsFile: entry.labelsFile,
    })),
    hash: sha256Of(JSON.stringify(manifest.artefacts.map(({ name, sha256 }) => [name, sha256]))),
    fileHashOf: (name) => byName.get(name)!.sha256,
    modelFileOf: (name) => resolve(folder, byName.get(name)!.file),
    labelsOf: (file) => readFileSync(join(folder, file), "utf8"),
    standAloneOf: ({ artefact, maxBatchSize }) =>
      measuredSpeedAt(
        byName.get(artefact.name)?.standAloneSpeed ?? [],
        maxBatchSize,
        manifest.machine && machineInWords(manifest.machine),
      ),
    machine: manifest.machine,
    heldOutFolder: existsSync(heldOut) ? heldOut : null,
    calibrationImages: hashesIn(join(folder, "images", "calibration")),
  };
}

/**
 * What is measured of the prepared models unless somebody asks for else: each alone, and in batches of up to 4. Nothing waits for
 * company: on a CPU a batch is hardly faster than its images one by one.
 */
export function onnxVariants({ artefacts }: OnnxModels): Variant[] {
  const settings = { instanceCount: 1, queueDelayUs: 0, preferredBatchSizes: [], published: null };
  return artefacts.flatMap((artefact) => [
    { ...settings, name: artefact.name, artefact, maxBatchSize: 1 },
    { ...settings, name: `${artefact.name}_bs4`, artefact, maxBatchSize: 4 },
  ]);
}

function readManifest(folder: string): z.infer<typeof manifestSchema> {
  const path = join(folder, "manifest.json");
  if (!existsSync(path))
    throw new OnnxModelsError(`there are no prepared ONNX models in ${folder}: ${prepare(folder)}`);
  let content: unknown;
  try {
    content = JSON.parse(readFileSync(path, "utf8"));
  } catch (error) {
    throw new OnnxModelsError(`${path} cannot be read (${String(error)}): ${prepare(folder)}`);
  }
  const manifest = manifestSchema.safeParse(content);
  if (manifest.success) return manifest.data;
  throw new OnnxModelsError(
    `${path} is no manifest of this version: ${prepare(folder)}\n${z.prettifyError(manifest.error)}`,
  );
}

function prepare(folder: string): string {
  return folder === defaultOnnxFolder
    ? "npm run convert -- --local"
    : `npm run convert -- --local --out ${folder}, or name another folder with --models`;
}

function hashOf(file: string, folder: string): string {
  try {
    return sha256Of(readFileSync(file));
  } catch (error) {
    throw new OnnxModelsError(`${file} cannot be read (${String(error)}): ${prepare(folder)}`);
  }
}

function hashesIn(folder: string): ReadonlySet<string> {
  if (!existsSync(folder)) return new Set();
  return new Set(readdirSync(folder).map((name) => sha256Of(readFileSync(join(folder, name)))));
}

function sha256Of(data: string | Uint8Array): string {
  return createHash("sha256").update(data).digest("hex");
}
