import type { TensorSpec, Variant } from "../model-repo/variant";
import data from "./data/t4-service-model.json";
import type { ServiceLaw } from "./service-law";

/** Request size for which the data's host phase and ingress ceiling hold, bytes. */
export const t4PayloadBytes: number = data.payloadBytes.value;

const bytesPerElement = { FP32: 4, UINT8: 1 } as const;

/** Bytes of one image in a request for this input. */
export function payloadBytesOf(input: TensorSpec): number {
  return input.dims.reduce((product, dim) => product * dim, bytesPerElement[input.type]);
}

/**
 * The simulated T4's law for a variant: GPU phase by the artefact's precision; host phase and ingress ceiling in proportion to
 * the bytes of an image, because both are copies of the payload (an assumption for every payload but the documents' FP32 one).
 * @throws Error for a platform that the published figures say nothing about.
 */
export function serviceLawFor(variant: Pick<Variant, "name" | "artefact">): ServiceLaw {
  const { artefact } = variant;
  if (artefact.platform !== "tensorflow_savedmodel") {
    throw new Error(
      `The simulated T4 has no service times for platform ${artefact.platform} (variant ${variant.name}): its figures were ` +
        "published for tensorflow_savedmodel. Measure this variant on a real server instead.",
    );
  }
  const gpu = data.gpu[artefact.precision];
  const sizeRatio = payloadBytesOf(artefact.input) / t4PayloadBytes;
  return {
    hostMsPerImage: data.hostMsPerImage.value * sizeRatio,
    gpuMsPerBatch: gpu.msPerBatch,
    gpuMsPerImage: gpu.msPerImage,
    ingressRequestsPerS: data.ingressRequestsPerS.value / sizeRatio,
  };
}
