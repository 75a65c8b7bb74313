import type { Platform, Precision, TensorSpec, Variant } from "../model-repo/variant";
import data from "./data/t4-service-model.json";
import type { ServiceLaw } from "./service-law";

/** Request size for which the data's host phase and ingress ceiling hold, bytes. */
export const t4PayloadBytes: number = data.payloadBytes.value;

const bytesPerElement = { FP32: 4, UINT8: 1 } as const;

/** Bytes of one image in a request for this input. */
export function payloadBytesOf(input: TensorSpec): number {
  return input.dims.reduce((product, dim) => product * dim, bytesPerElement[input.type]);
}

interface GpuTimes {
  readonly msPerBatch: number;
  readonly msPerImage: number;
}

/** Platforms that figures were published for, and where they stand in the data. */
const gpuTimes: Readonly<Partial<Record<Platform, Partial<Record<Precision, GpuTimes>>>>> = {
  tensorflow_savedmodel: data.gpu,
  tensorrt_plan: data.tensorrt.gpu,
};

/**
 * The simulated T4's law for a variant: GPU phase by the artefact's platform and precision; host phase and ingress ceiling in
 * proportion to the bytes of an image, because both are copies of the payload. See `lawAssumptions` for what of it nobody published.
 * @throws Error for an artefact that the published figures say nothing about.
 */
export function serviceLawFor(variant: Pick<Variant, "name" | "artefact">): ServiceLaw {
  const { platform, precision, input } = variant.artefact;
  const gpu = gpuTimes[platform]?.[precision];
  if (gpu === undefined) {
    throw new Error(
      `The simulated T4 has no service times for ${precision} on platform ${platform} (variant ${variant.name}): figures were ` +
        `published for ${Object.keys(gpuTimes).join(" and ")}. Measure this variant on a real server instead.`,
    );
  }
  const sizeRatio = payloadBytesOf(input) / t4PayloadBytes;
  return {
    hostMsPerImage: data.hostMsPerImage.value * sizeRatio,
    gpuMsPerBatch: gpu.msPerBatch,
    gpuMsPerImage: gpu.msPerImage,
    ingressRequestsPerS: data.ingressRequestsPerS.value / sizeRatio,
  };
}

/** What of a variant's law is assumed beyond the documents' own figures, in sentences with their sources; empty for the documents' variants. */
export function lawAssumptions({ artefact }: Pick<Variant, "artefact">): readonly string[] {
  const { platform, precision, input } = artefact;
  const { assumption, gpu } = data.tensorrt;
  const times = platform === "tensorrt_plan" && precision !== "original" ? gpu[precision] : null;
  return [
    ...(times === null ? [] : [`Assumed: ${assumption} (${withTitles(times.source)}).`]),
    ...(payloadBytesOf(input) === t4PayloadBytes ? [] : [`Assumed: ${data.payloadAssumption}.`]),
  ];
}

/** References of the data with the documents' titles. */
function withTitles(source: string): string {
  const titles: Readonly<Record<string, string>> = data.documents;
  return source.replaceAll(/\[\d\]/g, (reference) => titles[reference] ?? reference);
}
