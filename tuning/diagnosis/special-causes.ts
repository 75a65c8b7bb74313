/** Causes that relief of a resource does not show: a conversion without effect, a GPU that slows down, memory that is full. Pure. */
import type { Precision, Variant } from "../../model-repo/variant";
import type { ServiceLaw } from "../../serving-model/service-law";
import type { Cause, ServerWindow } from "../trial";

export interface SpecialCause {
  readonly cause: Cause;
  readonly summary: string;
  readonly evidence: Readonly<Record<string, string>>;
}

/** What a converted artefact is compared with, and the share of its GPU time from which on the conversion did nothing. */
const reference: Readonly<Partial<Record<Precision, { precision: Precision; share: number }>>> = {
  fp32: { precision: "original", share: 0.95 },
  fp16: { precision: "fp32", share: 0.9 },
  int8: { precision: "fp32", share: 0.9 },
};

/**
 * A converted artefact whose GPU time is still that of what it was converted from. Published for ResNet-50 on a T4: FP32 engines take
 * 0.70 of the unconverted model's time, FP16 ones 0.44 and INT8 ones 0.29 of FP32's.
 * @param lawOf laws of the same model at other precisions, where they are known
 */
export function conversionWithoutEffect(
  variant: Variant,
  law: ServiceLaw,
  batch: number,
  lawOf: (variant: Variant) => ServiceLaw | null,
): SpecialCause | null {
  const { artefact } = variant;
  const against = reference[artefact.precision];
  if (against === undefined) return null;
  const other = lawOf({ ...variant, artefact: { ...artefact, precision: against.precision } });
  if (other === null) return null;
  const share = gpuMs(law, batch) / gpuMs(other, batch);
  if (!(share >= against.share)) return null;
  const [own, from] = [nameOf(artefact.precision), nameOf(against.precision)];
  return {
    cause: "conversion-noop",
    summary:
      `The conversion to ${own} had no effect: a batch of ${batch.toFixed(0)} takes ${(100 * share).toFixed(0)} % of the GPU time of ${from}. ` +
      "Count the TRTEngineOp nodes of the converted graph, and look in the server's log for engines that are built at run time.",
    evidence: { [`GPU time over that of ${from}`]: `${(100 * share).toFixed(0)} %` },
  };
}

function gpuMs({ gpuMsPerBatch, gpuMsPerImage }: ServiceLaw, batch: number): number {
  return gpuMsPerBatch + gpuMsPerImage * batch;
}

function nameOf(precision: Precision): string {
  return precision === "original" ? "the unconverted model" : precision.toUpperCase();
}

/** From this share of its power limit on, a GPU is at the limit: it holds its power there by lowering its clock. */
const atPowerLimit = 0.95;

/** The server got slower during the search while its GPU was at its power limit. */
export function throttled(logRatio: number | null, server: ServerWindow | null): SpecialCause | null {
  if (logRatio === null || server === null) return null;
  const { gpuPowerW, gpuPowerLimitW } = server;
  if (gpuPowerW == null || gpuPowerLimitW == null || gpuPowerW < atPowerLimit * gpuPowerLimitW) return null;
  const slower = `${(100 * (1 - Math.exp(logRatio))).toFixed(0)} %`;
  return {
    cause: "throttled",
    summary:
      `The server became ${slower} slower during the measurement, with the GPU at its power limit: it lowers its clock. The SLO rate is ` +
      "what holds after that. Look at the SM clock and the temperature (nvidia-smi -q -d CLOCK,PERFORMANCE) under load.",
    evidence: {
      "slower than at first": slower,
      "GPU power": `${gpuPowerW.toFixed(0)} of ${gpuPowerLimitW.toFixed(0)} W`,
    },
  };
}

/**
 * Instances that the GPU's memory holds, from what the present ones take; Infinity when unknown. TensorFlow takes all memory whatever it
 * needs, so there it says nothing.
 */
export function instancesThatFit(variant: Variant, server: ServerWindow | null): number {
  const { gpuMemoryUsedBytes: used, gpuMemoryTotalBytes: total } = server ?? {};
  if (used == null || total == null || !(used > 0)) return Infinity;
  if (variant.artefact.platform === "tensorflow_savedmodel") return Infinity;
  return Math.max(variant.instanceCount, Math.floor((total / used) * variant.instanceCount));
}

/** More instances would help most, but they do not fit. */
export function memoryLimit(instances: number, server: ServerWindow | null): SpecialCause | null {
  const { gpuMemoryUsedBytes: used, gpuMemoryTotalBytes: total } = server ?? {};
  if (used == null || total == null) return null;
  const gib = (bytes: number): string => `${(bytes / 2 ** 30).toFixed(1)} GiB`;
  return {
    cause: "memory-limit",
    summary:
      `More instances would raise the SLO rate most, but the GPU's memory holds ${instances}: ${gib(used)} of ${gib(total)} are taken. ` +
      "A smaller engine workspace or a smaller maximum batch makes room.",
    evidence: { "GPU memory": `${gib(used)} of ${gib(total)}` },
  };
}
