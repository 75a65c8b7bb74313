/**
 * What a conversion's manifest says about the speed of its artefacts. There are two kinds: `artefacts/NAME/manifest.json` of the
 * conversion VM (`model-repo/convert/run.py`) is about one artefact, that of a local preparation (`convert/local/prepare.py`) about all.
 */
import { createHash } from "node:crypto";
import { z } from "zod";
import { speedsSchema, type MeasuredSpeed } from "./stand-alone-speed";

/** A file that is no manifest of a conversion; the message names it. */
export class ConversionManifestError extends Error {
  override readonly name = "ConversionManifestError";
}

/** The speeds of one artefact by batch size. */
export interface ArtefactSpeeds {
  readonly artefact: string;
  /** What they were measured on, e.g. "Tesla T4"; null when the manifest does not say. */
  readonly on: string | null;
  /** Of the GPU, e.g. "7.5"; null when none converted. */
  readonly computeCapability: string | null;
  readonly speeds: readonly MeasuredSpeed[];
  /** Hash of its files; null when the manifest does not list them. */
  readonly filesHash: string | null;
}

/** Where the speeds of a local preparation were measured. */
export const machineSchema = z.looseObject({
  /** As Linux names the processor; null where it names none. */
  cpu: z.string().nullable(),
  cores: z.number().int().positive(),
  /** Threads of inference: those that the local server uses. */
  threads: z.number().int().positive(),
});

const ofOneSchema = z.looseObject({
  artefact: z.string(),
  gpu: z.looseObject({ name: z.string(), computeCapability: z.string() }).nullable(),
  standAloneSpeed: speedsSchema,
  files: z.array(z.looseObject({ path: z.string(), sha256: z.string() })).optional(),
});

const ofAllSchema = z.looseObject({
  artefacts: z.array(
    z.looseObject({ name: z.string(), standAloneSpeed: speedsSchema, sha256: z.string().optional() }),
  ),
  machine: machineSchema,
});

/** A machine in words, e.g. "Intel Xeon, 1 thread". */
export function machineInWords({ cpu, threads }: z.infer<typeof machineSchema>): string {
  return `${cpu ?? "a CPU"}, ${threads === 1 ? "1 thread" : `${threads} threads`}`;
}

/**
 * @param where names the file in messages
 * @throws ConversionManifestError
 */
export function parseConversionManifest(text: string, where: string): ArtefactSpeeds[] {
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch (error) {
    throw new ConversionManifestError(`${where} is not JSON (${String(error)})`);
  }
  if (typeof content === "object" && content !== null && "artefacts" in content) {
    const { artefacts, machine } = checked(ofAllSchema, content, where);
    const on = machineInWords(machine);
    return artefacts.map(({ name, standAloneSpeed, sha256 }) => ({
      artefact: name,
      on,
      computeCapability: null,
      speeds: standAloneSpeed,
      filesHash: sha256 ?? null,
    }));
  }
  const { artefact, gpu, standAloneSpeed, files } = checked(ofOneSchema, content, where);
  const [on, computeCapability] = gpu === null ? [null, null] : [gpu.name, gpu.computeCapability];
  const filesHash = files ? hashOfFiles(files) : null;
  return [{ artefact, on, computeCapability, speeds: standAloneSpeed, filesHash }];
}

/** One hash for all files, whatever their order. */
function hashOfFiles(files: readonly { readonly path: string; readonly sha256: string }[]): string {
  const lines = files.map(({ path, sha256 }) => `${path} ${sha256}\n`).sort();
  return createHash("sha256").update(lines.join("")).digest("hex");
}

function checked<Content>(schema: z.ZodType<Content>, content: unknown, where: string): Content {
  const parsed = schema.safeParse(content);
  if (parsed.success) return parsed.data;
  throw new ConversionManifestError(
    `${where} is no manifest of a conversion with speeds:\n${z.prettifyError(parsed.error)}`,
  );
}
