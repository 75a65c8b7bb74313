/** Changes of a variant's configuration, as systems to simulate. */
import type { ModelArtefact, Precision, Variant } from "../../model-repo/variant";
import type { ServiceLaw } from "../../serving-model/service-law";
import type { ModelledSystem } from "../search/model-knee";
import { withLaw } from "./relief";
import { conversionWithoutEffect } from "./special-causes";

/** A change is worth naming from this predicted gain on. */
export const worthwhileGain = 0.03;
const mostInstances = 8;
const largestBatch = 128;

/** What the changes depend on. */
export interface ChangeContext {
  readonly variant: Variant;
  readonly system: ModelledSystem;
  /** Laws of other variants, where they are known. */
  readonly lawOf: (variant: Variant) => ServiceLaw | null;
  /** Instances that the GPU's memory holds; Infinity when unknown. */
  readonly instancesAllowed: number;
  /**
   * False: executions of one size only were seen, so what a batch and what an image takes are not told apart, and another largest batch
   * would be a guess. Default true.
   */
  readonly batchesKnown?: boolean;
}

/** A change of the configuration. */
export interface Candidate {
  readonly change: string;
  readonly system: ModelledSystem;
  /** Simplest first: decides between equal gains. */
  readonly effort: number;
}

/** Every change that is looked at. */
export function candidatesOf({
  variant,
  system,
  lawOf,
  instancesAllowed,
  batchesKnown = true,
}: ChangeContext): Candidate[] {
  const { server } = system;
  const list: Candidate[] = [];
  const add = (change: string, changed: ModelledSystem, effort: number): void => {
    list.push({ change, system: changed, effort });
  };
  for (const instanceCount of new Set([
    server.instanceCount + 1,
    server.instanceCount * 2,
    server.instanceCount - 1,
  ])) {
    if (instanceCount < 1 || instanceCount > Math.min(mostInstances, instancesAllowed)) continue;
    const change = `${instanceCount} ${plural(instanceCount, "instance")} instead of ${server.instanceCount}`;
    add(change, { ...system, server: { ...server, instanceCount } }, 1 + instanceCount / 100);
  }
  for (const factor of [0.25, 0.5, 2, 4]) {
    const maxBatchSize = server.maxBatchSize * factor;
    if (!batchesKnown) break;
    if (!Number.isInteger(maxBatchSize) || maxBatchSize > largestBatch) continue;
    const built = variant.artefact.builtMaxBatchSize;
    const convert = built !== null && maxBatchSize > built ? " (engines built for it)" : "";
    const changed = {
      ...server,
      maxBatchSize,
      preferredBatchSizes: server.preferredBatchSizes.length > 0 ? [maxBatchSize] : [],
    };
    add(
      `max batch ${maxBatchSize} instead of ${server.maxBatchSize}${convert}`,
      { ...system, server: changed },
      convert === "" ? 2 : 4,
    );
  }
  for (const factor of [0, 0.25, 0.5, 2]) {
    if (server.queueDelayUs === 0) break;
    const queueDelayUs = server.queueDelayUs * factor;
    const change = `queue delay ${queueDelayUs / 1000} ms instead of ${server.queueDelayUs / 1000} ms`;
    add(change, { ...system, server: { ...server, queueDelayUs } }, 1 + factor / 100);
  }
  addConversion(variant, system, lawOf, add);
  addPrecisions(variant, system, lawOf, add);
  addPayload(variant, system, lawOf, add);
  return list;
}

/** Takes one more candidate. */
type Add = (change: string, changed: ModelledSystem, effort: number) => void;

/** What a precision is usually followed by. */
const nextPrecision: Readonly<Partial<Record<Precision, Precision>>> = {
  original: "fp32",
  fp32: "fp16",
  fp16: "int8",
};

/** A conversion that had no effect is worth more than the next precision: what it was expected to give. */
function addConversion(
  variant: Variant,
  system: ModelledSystem,
  lawOf: ChangeContext["lawOf"],
  add: Add,
): void {
  const expected = lawOf(variant);
  const batch = system.server.maxBatchSize;
  if (expected === null || !conversionWithoutEffect(variant, system.server.law, batch, lawOf)) return;
  const { gpuMsPerBatch, gpuMsPerImage } = expected;
  add(
    `a conversion that takes effect: ${variant.artefact.precision.toUpperCase()} as fast as expected`,
    withLaw(system, { gpuMsPerBatch, gpuMsPerImage }),
    5,
  );
}

function addPrecisions(
  variant: Variant,
  system: ModelledSystem,
  lawOf: ChangeContext["lawOf"],
  add: Add,
): void {
  const own = lawOf(variant);
  if (own === null) return;
  // Of a conversion that had no effect nothing is known about the next one.
  if (conversionWithoutEffect(variant, system.server.law, system.server.maxBatchSize, lawOf)) return;
  for (let next = nextPrecision[variant.artefact.precision]; next !== undefined; next = nextPrecision[next]) {
    const artefact: ModelArtefact = { ...variant.artefact, name: next, precision: next };
    const other = lawOf({ ...variant, artefact });
    if (other === null) continue;
    // Only the ratio is taken over: the measured server may be faster or slower than its published law throughout.
    const ratio = (measured: number, a: number, b: number): number => (a > 0 ? (measured * b) / a : b);
    const { law } = system.server;
    const changed = withLaw(system, {
      gpuMsPerBatch: ratio(law.gpuMsPerBatch, own.gpuMsPerBatch, other.gpuMsPerBatch),
      gpuMsPerImage: ratio(law.gpuMsPerImage, own.gpuMsPerImage, other.gpuMsPerImage),
    });
    add(
      `precision ${next.toUpperCase()} instead of ${precisionName(variant.artefact.precision)}`,
      changed,
      5,
    );
  }
}

/** UINT8 pixels are a quarter of the bytes: link and copies are four times as fast, if the host phase is copying. */
function addPayload(variant: Variant, system: ModelledSystem, lawOf: ChangeContext["lawOf"], add: Add): void {
  if (variant.artefact.input.type !== "FP32") return;
  const input = { ...variant.artefact.input, type: "UINT8" as const };
  const [own, other] = [lawOf(variant), lawOf({ ...variant, artefact: { ...variant.artefact, input } })];
  const hostRatio =
    own !== null && other !== null && own.hostMsPerImage > 0
      ? other.hostMsPerImage / own.hostMsPerImage
      : 0.25;
  const { law } = system.server;
  const changed = withLaw(system, {
    hostMsPerImage: law.hostMsPerImage * hostRatio,
    ingressRequestsPerS: law.ingressRequestsPerS * 4,
  });
  add("UINT8 input instead of FP32 (a quarter of the bytes)", changed, 6);
}

function precisionName(precision: Precision): string {
  return precision === "original" ? "the unconverted model" : precision.toUpperCase();
}

function plural(count: number, word: string): string {
  return count === 1 ? word : `${word}s`;
}
