/**
 * The variants that the tuning documents measured, as data, and the artefacts behind them.
 * Documents: "JA" is the Japanese article of 2019 that builds and tunes the whole system; "FR" is part 3 of Google's tutorial on
 * serving with TensorRT Inference Server, in French (measuring and tuning). Figures are requests a second that held p95 <= 100 ms.
 */
import { didYouMean, knownNames } from "./nearest-name";
import type { ModelArtefact, Precision, PublishedFigure, Variant } from "./variant";

/** Default of dynamic_batching.max_queue_delay_microseconds: the documents' 20 ms. */
export const defaultQueueDelayUs = 20_000;
/** Largest batch of the documents' first four variants, and of an artefact that has no engines. */
export const defaultMaxBatchSize = 64;

/** ResNet-50 as the documents export it: pixels 0..255 in, normalisation inside the graph, 1000 probabilities out. */
const resnet50 = {
  platform: "tensorflow_savedmodel",
  input: { name: "input", type: "FP32", dims: [224, 224, 3], format: "FORMAT_NHWC" },
  output: { name: "probabilities", type: "FP32", dims: [1000], format: null },
  labelsFile: "imagenet1k_labels.txt",
} as const;

/** The SavedModel before conversion; serves any batch. */
export const originalArtefact: ModelArtefact = {
  ...resnet50,
  name: "original",
  precision: "original",
  builtMaxBatchSize: null,
};

export type EnginePrecision = Exclude<Precision, "original">;
export const enginePrecisions: readonly EnginePrecision[] = ["fp32", "fp16", "int8"];
/** Engines larger than this do not fit the 16 GB of a T4 together with the framework. */
export const largestEngineBatch = 256;

/**
 * A TF-TRT conversion. Its name, and so its path, holds precision and batch size: conversions for other batch sizes never
 * overwrite each other.
 */
export function tftrtArtefact(precision: EnginePrecision, builtMaxBatchSize: number): ModelArtefact {
  return { ...resnet50, name: `tftrt_${precision}_bs${builtMaxBatchSize}`, precision, builtMaxBatchSize };
}

function variant(
  name: string,
  artefact: ModelArtefact,
  batchSize: number,
  instanceCount: number,
  published: PublishedFigure,
): Variant {
  const settings = { maxBatchSize: batchSize, instanceCount, queueDelayUs: defaultQueueDelayUs };
  return { name, artefact, ...settings, preferredBatchSizes: [batchSize], published };
}

function limit(rps: number, gpuBusy: number | null, source: string): PublishedFigure {
  return { rps, kind: "limit", gpuBusy, source };
}

/** The documents' seven variants, in the order in which they measure them. */
export const catalogue: readonly Variant[] = [
  variant("original", originalArtefact, 64, 1, limit(253.1, null, "FR: 253.1; JA: about 260 at 275 users")),
  variant(
    "tftrt_fp32",
    tftrtArtefact("fp32", 64),
    64,
    1,
    limit(381, null, "FR: 381; JA: about 375 at 400 users"),
  ),
  variant(
    "tftrt_fp16",
    tftrtArtefact("fp16", 64),
    64,
    1,
    limit(1072.5, 0.45, "FR: 1072.5; JA: fine at 1000 users, collapses at 1100, GPU about 45 %"),
  ),
  variant("tftrt_int8", tftrtArtefact("int8", 64), 64, 1, limit(1085.4, 0.4, "FR: 1085.4, GPU under 40 %")),
  variant(
    "tftrt_fp16_bs8_count4",
    tftrtArtefact("fp16", 8),
    8,
    4,
    limit(1260, 0.9, "JA: about 1260 at 1300 users with p95 65 ms; 1400 users above 100 ms, GPU over 90 %"),
  ),
  variant("tftrt_int8_bs8_count4", tftrtArtefact("int8", 8), 8, 4, {
    rps: 1500,
    kind: "reached",
    gpuBusy: 0.6,
    source: "JA: the goal of 1500 reached at GPU about 60 %; the limit was not sought",
  }),
  variant(
    "tftrt_int8_bs16_count4",
    tftrtArtefact("int8", 16),
    16,
    4,
    limit(2236.6, 0.75, "JA: 2236.6 with 20 load pods, GPU about 75 %"),
  ),
];

/** Artefacts of the catalogue, each once: what a conversion has to make for the documents' variants. */
export const catalogueArtefacts: readonly ModelArtefact[] = [
  ...new Map(catalogue.map(({ artefact }) => [artefact.name, artefact])).values(),
];

/** A name that the catalogue does not have. The message lists the known ones and the nearest match. */
export class UnknownNameError extends Error {
  override readonly name = "UnknownNameError";
}

/** @throws UnknownNameError */
export function findVariant(name: string): Variant {
  const names = catalogue.map((known) => known.name);
  const found = catalogue.find((known) => known.name === name);
  if (found !== undefined) return found;
  throw new UnknownNameError(`unknown variant "${name}"${knownNames(name, names, "variants")}`);
}

/**
 * Variants by name, in the given order.
 * @throws UnknownNameError that names every unknown and every repeated name at once
 */
export function findVariants(names: readonly string[]): Variant[] {
  const known = new Map(catalogue.map((entry) => [entry.name, entry]));
  const problems = names.flatMap((name, index) => {
    if (!known.has(name)) return [`unknown variant "${name}"${didYouMean(name, known.keys())}`];
    return names.indexOf(name) < index ? [`variant "${name}" is named twice`] : [];
  });
  if (problems.length > 0)
    throw new UnknownNameError(`${problems.join("; ")}. Known variants: ${[...known.keys()].join(", ")}`);
  return names.map((name) => known.get(name) as Variant);
}

/**
 * `original`, or `tftrt_<fp32|fp16|int8>_bs<n>` for any batch size from 1 to 256.
 * @throws UnknownNameError
 */
export function findArtefact(name: string): ModelArtefact {
  if (name === originalArtefact.name) return originalArtefact;
  const match = /^tftrt_([a-z0-9]+)_bs([1-9]\d{0,3})$/.exec(name);
  const precision = enginePrecisions.find((known) => known === match?.[1]);
  const batchSize = Number(match?.[2]);
  if (precision !== undefined && batchSize <= largestEngineBatch) return tftrtArtefact(precision, batchSize);
  const example = catalogueArtefacts.map((artefact) => artefact.name);
  throw new UnknownNameError(
    `unknown artefact "${name}"${knownNames(name, example, "artefacts of the documents")}; any tftrt_<precision>_bs<n> with ` +
      `precision ${enginePrecisions.join(", ")} and batch size n from 1 to ${largestEngineBatch} can be converted`,
  );
}
