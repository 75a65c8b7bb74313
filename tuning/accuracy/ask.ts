/** A served model's scores for all classes of each held-out image, through the serving API: what is checked is what is served. */
import { setMaxListeners } from "node:events";
import { KserveClient, KserveError } from "../../kserve/client";
import { imageShapeOf, imageToTensor } from "../../loadgen/image-tensor";
import type { Variant } from "../../model-repo/variant";

/** Enough for batches to form; a request may wait for engines to be built. */
const IN_FLIGHT = 16;
const DEADLINE_MS = 120_000;

/**
 * Scores in the order of the image files.
 * @throws ImageError for an image that cannot be decoded; Error naming server, variant and image when it does not answer
 */
export async function askScores(
  variant: Variant,
  modelName: string,
  address: string,
  imageFiles: readonly string[],
  signal?: AbortSignal,
): Promise<Float32Array[]> {
  const client = new KserveClient(address);
  // A signal of our own: each request in flight listens to it.
  const aborted = signal && AbortSignal.any([signal]);
  if (aborted) setMaxListeners(2 * IN_FLIGHT, aborted);
  const scores: Float32Array[] = [];
  let next = 0;
  const askNext = async (): Promise<void> => {
    while (next < imageFiles.length) {
      const index = next++;
      scores[index] = await ask(client, variant, modelName, imageFiles[index]!, aborted);
    }
  };
  try {
    await Promise.all(Array.from({ length: Math.min(IN_FLIGHT, imageFiles.length) }, askNext));
    return scores;
  } finally {
    client.close();
  }
}

async function ask(
  client: KserveClient,
  { name, artefact }: Variant,
  modelName: string,
  imageFile: string,
  signal: AbortSignal | undefined,
): Promise<Float32Array> {
  const { input, output } = artefact;
  const raw = await imageToTensor(imageFile, { ...imageShapeOf(input.dims), type: input.type });
  const request = {
    modelName,
    inputName: input.name,
    datatype: input.type,
    shape: [1, ...input.dims],
    raw,
    outputName: output.name,
  };
  try {
    const reply = await client.infer(request, { deadlineMs: DEADLINE_MS, signal });
    const position = reply.outputs.findIndex((tensor) => tensor.name === output.name);
    const bytes = reply.raw[position];
    if (bytes === undefined || reply.outputs[position]?.datatype !== "FP32")
      throw new Error(`${client.address}: ${name} answered without FP32 scores in output "${output.name}"`);
    // A copy: the reply's bytes lie anywhere in its message, floats must be aligned.
    return new Float32Array(new Uint8Array(bytes).buffer);
  } catch (error) {
    if (!(error instanceof KserveError)) throw error;
    throw new Error(`${client.address}: ${name} does not answer ${imageFile}: ${error.details}`);
  }
}
