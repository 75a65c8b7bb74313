/**
 * The variants that the tuning documents measured, as data, and those beyond them on the ONNX/TensorRT path.
 * Documents: "JA" is the Japanese article of 2019 that builds and tunes the whole system; "FR" is part 3 of Google's tutorial on
 * serving with TensorRT Inference Server, in French (measuring and tuning). Figures are requests a second that held p95 <= 100 ms.
 */
import {
  defaultQueueDelayUs,
  originalArtefact,
  tftrtArtefact,
  trtArtefact,
  UnknownNameError,
} from "./artefacts";
import { didYouMean, knownNames } from "./nearest-name";
import type { ModelArtefact, PublishedFigure, Variant } from "./variant";

export { findArtefact, originalArtefact, tftrtArtefact, UnknownNameError } from "./artefacts";

function variant(
  name: string,
  artefact: ModelArtefact,
  batchSize: number,
  instanceCount: number,
  published: PublishedFigure | null,
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

/** Artefacts of the documents' variants, each once: what a conversion has to make for them. */
export const catalogueArtefacts: readonly ModelArtefact[] = [
  ...new Map(catalogue.map(({ artefact }) => [artefact.name, artefact])).values(),
];

function reached(rps: number, source: string): PublishedFigure {
  return { rps, kind: "reached", gpuBusy: null, source };
}

/**
 * Beyond the documents: TensorRT plans of the ONNX export, UINT8 pixels (a quarter of the bytes through link and copies), one instance
 * and several. The published figures are other people's systems on one T4, near to a variant but not that variant.
 */
export const tensorrtVariants: readonly Variant[] = [
  variant(
    "trt_fp16",
    trtArtefact("fp16", 64),
    64,
    1,
    reached(
      2145.3,
      "NVIDIA DeepLearningExamples, ResNet-50 v1.5 on Triton (2021): ONNX Runtime with TensorRT FP16, one instance, batches up to 128, " +
        "96 requests in flight, p95 47.8 ms",
    ),
  ),
  variant("trt_fp16_bs64_count2", trtArtefact("fp16", 64), 64, 2, null),
  variant("trt_int8", trtArtefact("int8", 64), 64, 1, null),
  variant(
    "trt_int8_bs64_count2",
    trtArtefact("int8", 64),
    64,
    2,
    reached(
      5193,
      "MLPerf Inference v0.5 (2019), Server scenario, NVIDIA's own harness and not Triton: within 15 ms at p99",
    ),
  ),
  variant("trt_int8_bs16_count4", trtArtefact("int8", 16), 16, 4, null),
];

/** Every variant that has a name. */
export const namedVariants: readonly Variant[] = [...catalogue, ...tensorrtVariants];

/** Words that stand for several variants. */
export const variantGroups: ReadonlyMap<string, readonly Variant[]> = new Map([
  ["documents", catalogue],
  ["tensorrt", tensorrtVariants],
  ["all", namedVariants],
]);

/** What a list of variants may be written with: their names, and words for groups of them. */
export const variantWords: readonly string[] = [
  ...namedVariants.map(({ name }) => name),
  ...variantGroups.keys(),
];

/** @throws UnknownNameError */
export function findVariant(name: string): Variant {
  const names = namedVariants.map((known) => known.name);
  const found = namedVariants.find((known) => known.name === name);
  if (found !== undefined) return found;
  throw new UnknownNameError(`unknown variant "${name}"${knownNames(name, names, "variants")}`);
}

/**
 * Variants by name or group, in the given order.
 * @throws UnknownNameError that names every unknown and every repeated name at once
 */
export function findVariants(words: readonly string[]): Variant[] {
  const known = new Map(namedVariants.map((entry) => [entry.name, entry]));
  const problems: string[] = [];
  const found = new Set<Variant>();
  for (const word of words) {
    const meant = variantGroups.get(word) ?? [known.get(word)].filter((entry) => entry !== undefined);
    if (meant.length === 0)
      problems.push(
        `unknown variant "${word}"${didYouMean(word, [...known.keys(), ...variantGroups.keys()])}`,
      );
    for (const entry of meant) {
      if (found.has(entry)) problems.push(`variant "${entry.name}" is named twice`);
      found.add(entry);
    }
  }
  if (problems.length > 0)
    throw new UnknownNameError(`${problems.join("; ")}. Known variants: ${[...known.keys()].join(", ")}`);
  return [...found];
}
