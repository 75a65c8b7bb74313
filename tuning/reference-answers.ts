/**
 * What a served model answers to each image alone, before any load. Replies under load are compared with these: a batch that mixes
 * up its images, or a server that answers fast and wrong, must not pass.
 */
import { decodeClassifications, decodeInferResponse } from "../kserve/wire";
import type { KnownAnswer } from "../loadgen/load-spec";
import { PayloadSource } from "../loadgen/payloads";
import { GrpcStatusCode } from "../kserve/status";
import { GrpcJsTransport } from "../loadgen/transport-grpc-js";
import type { Variant } from "../model-repo/variant";

/** A first request may wait for engines to be built. */
const DEADLINE_MS = 600_000;

/**
 * One request at a time over the plain gRPC library, in the order of the sorted image files.
 * @throws Error that names the variant when the server does not answer with a class
 */
export async function askReferenceAnswers(
  variant: Variant,
  modelName: string,
  address: string,
  imageFolder: string,
  signal?: AbortSignal,
): Promise<KnownAnswer[]> {
  const { input, output } = variant.artefact;
  const payloads = await new PayloadSource().load({
    imageFolder,
    modelName,
    inputName: input.name,
    outputName: output.name,
    inputType: input.type,
    inputDims: input.dims,
  });
  const transport = new GrpcJsTransport({ address, payloads, connections: 1 });
  // What waits for an engine ends with the sweep.
  const onAbort = (): void => void transport.close();
  signal?.addEventListener("abort", onAbort);
  try {
    await transport.connect();
    const answers: KnownAnswer[] = [];
    for (const index of payloads.keys()) {
      const { status, message, reply } = await transport.infer(index, DEADLINE_MS);
      signal?.throwIfAborted();
      if (status !== GrpcStatusCode.OK || !reply) {
        throw new Error(
          `${address}: ${variant.name} does not answer image ${index + 1}: ${message || `gRPC status ${status}`}`,
        );
      }
      answers.push(topClass(reply, variant));
    }
    return answers;
  } finally {
    signal?.removeEventListener("abort", onAbort);
    await transport.close();
  }
}

function topClass(reply: Buffer, variant: Variant): KnownAnswer {
  const response = decodeInferResponse(reply);
  const position = response.outputs.findIndex(({ name }) => name === variant.artefact.output.name);
  const raw = response.raw[position];
  const top = raw && decodeClassifications(raw)[0];
  if (!top) {
    throw new Error(
      `${variant.name} answered without a class for output "${variant.artefact.output.name}": the output must be a vector of ` +
        `scores, and config.pbtxt should name its labels (label_filename).`,
    );
  }
  return { classIndex: top.classIndex, label: top.label ?? "", score: top.score };
}
