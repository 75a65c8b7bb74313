/** The artefacts that conversions make of the default model, by name: which there are, and what a name says. */
import { knownNames } from "./nearest-name";
import type { ModelArtefact, Precision } from "./variant";

/** Default of dynamic_batching.max_queue_delay_microseconds: the documents' 20 ms. */
export const defaultQueueDelayUs = 20_000;
/** Largest batch of the documents' first four variants, and of an artefact that has no engines. */
export const defaultMaxBatchSize = 64;

/** A name that nothing has. The message lists the known ones and the nearest match. */
export class UnknownNameError extends Error {
  override readonly name = "UnknownNameError";
}

/** What all artefacts of ResNet-50 answer: 1000 probabilities. */
const classes = {
  output: { name: "probabilities", type: "FP32", dims: [1000], format: null },
  labelsFile: "imagenet1k_labels.txt",
} as const;

/** ResNet-50 as the documents export it: pixels 0..255 in, normalisation inside the graph. */
const savedModel = {
  ...classes,
  platform: "tensorflow_savedmodel",
  input: { name: "input", type: "FP32", dims: [224, 224, 3], format: "FORMAT_NHWC" },
} as const;

/** The same on the ONNX path, with pixels as bytes: 150,528 of them a request instead of 602,112. */
const plan = {
  ...classes,
  platform: "tensorrt_plan",
  input: { ...savedModel.input, type: "UINT8" },
} as const;

/** The SavedModel before conversion; serves any batch. */
export const originalArtefact: ModelArtefact = {
  ...savedModel,
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
  return { ...savedModel, name: `tftrt_${precision}_bs${builtMaxBatchSize}`, precision, builtMaxBatchSize };
}

/** A TensorRT plan built of the ONNX export, for batches from 1 to this size; takes UINT8 pixels. */
export function trtArtefact(precision: EnginePrecision, builtMaxBatchSize: number): ModelArtefact {
  return { ...plan, name: `trt_${precision}_bs${builtMaxBatchSize}`, precision, builtMaxBatchSize };
}

/** Names for messages, and to suggest one of. */
const examples = [
  ...[
    "original",
    "tftrt_fp32_bs64",
    "tftrt_fp16_bs64",
    "tftrt_int8_bs64",
    "tftrt_fp16_bs8",
    "tftrt_int8_bs8",
  ],
  ...["tftrt_int8_bs16", "trt_fp16_bs64", "trt_int8_bs64", "trt_int8_bs16"],
];

const makers = { tftrt: tftrtArtefact, trt: trtArtefact } as const;

/**
 * `original`, or `tftrt_<fp32|fp16|int8>_bs<n>` and `trt_<fp32|fp16|int8>_bs<n>` for any batch size from 1 to 256.
 * @throws UnknownNameError
 */
export function findArtefact(name: string): ModelArtefact {
  if (name === originalArtefact.name) return originalArtefact;
  const match = /^(tftrt|trt)_([a-z0-9]+)_bs([1-9]\d{0,3})$/.exec(name);
  const precision = enginePrecisions.find((known) => known === match?.[2]);
  const batchSize = Number(match?.[3]);
  if (match !== null && precision !== undefined && batchSize <= largestEngineBatch)
    return makers[match[1] as keyof typeof makers](precision, batchSize);
  throw new UnknownNameError(
    `unknown artefact "${name}"${knownNames(name, examples, "artefacts")}; any tftrt_<precision>_bs<n> or ` +
      `trt_<precision>_bs<n> with precision ${enginePrecisions.join(", ")} and batch size n from 1 to ${largestEngineBatch} ` +
      `can be converted`,
  );
}
