/**
 * The server of docs/evidence/h200 in virtual time, by the law of its recorded trials: a GPU phase by the GPU's own gauge, and a host phase
 * that takes longer the more instances are in theirs (tuning/explore/crowding.ts), by the time of full batches while all instances are busy.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { type GridName, type GridVariant, gridVariants } from "../examples/gpu/grids";
import { asObservation, asVariant, readObservations } from "../examples/gpu/observations";
import type { Variant } from "../model-repo/variant";
import type { ServiceLaw } from "../serving-model/service-law";
import type { SimulatedServer } from "../serving-model/simulate";
import { activeOf, balanceOf, slowdown } from "../tuning/explore/crowding";
import { finiteSourceWaitMs, usualVariability } from "../tuning/identify/finite-source";
import { line } from "../tuning/identify/least-squares";
import type { Observation } from "../tuning/identify/observation";
import { variationFor } from "../tuning/identify/variation";

const root = join(__dirname, "..");
/** From this share of the largest batch on, all instances were busy all the time. */
const fullShare = 0.93;
/** GPU gauges of shorter windows are not to be had: Triton's interval is half a second there. */
const leastS = 2;

/** What the recorded trials say. */
export interface RecordedLaw {
  readonly seen: readonly FullyPhased[];
  /** Host phase of an instance that is alone in it, by full batches of each recorded size; sizes rise. */
  readonly hostAlone: readonly { readonly batch: number; readonly msPerImage: number }[];
  /** Share by which every other instance in its host phase lengthens it. */
  readonly crowding: number;
  /** Root mean square of (law / recorded host phase - 1) over the full trials. */
  readonly residual: number;
}

type FullyPhased = Observation & { readonly meanBatch: number; readonly gpuBusy: number };

/** @throws Error when the evidence cannot be read */
export function recordedLaw(folder = join(root, "docs/evidence/h200/grids")): RecordedLaw {
  const seen = readObservations(folder).map(asObservation).filter(isPhased);
  const full = seen.flatMap((one) => fullHost(seen, one));
  const sizes = [...new Set(full.map(({ batch }) => batch))].sort((a, b) => a - b);
  const laws = Array.from({ length: 101 }, (_, percent): RecordedLaw => {
    const crowding = percent / 100;
    const alone = ({ msPerImage, active }: FullHost): number => msPerImage / slowdown(crowding, active);
    const hostAlone = sizes.map((batch) => ({
      batch,
      msPerImage: mean(full.filter((one) => one.batch === batch).map(alone)),
    }));
    const misses = full.map(
      (one) => hostAlone.find(({ batch }) => batch === one.batch)!.msPerImage / alone(one) - 1,
    );
    return { seen, hostAlone, crowding, residual: Math.sqrt(mean(misses.map((miss) => miss ** 2))) };
  });
  return laws.reduce((best, one) => (one.residual < best.residual ? one : best));
}

function isPhased(one: Observation): one is FullyPhased {
  return one.measureS >= leastS && one.meanBatch !== null && one.gpuBusy !== null;
}

/**
 * GPU phase by the gauge: one at a time on the GPU, so busy share x time = executions x phase. A graph of the next size does a batch between
 * two sizes, so the line is that of the batches up to the largest.
 */
function gpuPhase(seen: readonly FullyPhased[], largest: number): { perBatch: number; perImage: number } {
  return line(
    seen
      .filter(({ meanBatch }) => meanBatch <= largest)
      .map(({ meanBatch, gpuBusy, throughputPerS, measureS }) => ({
        batch: meanBatch,
        ms: (1000 * gpuBusy * meanBatch) / throughputPerS,
        weight: measureS,
      })),
  );
}

interface FullHost {
  /** Largest batch of the configuration: what its executions hold. */
  readonly batch: number;
  readonly msPerImage: number;
  readonly active: number;
}

/** Host phase of full batches with all instances at work; none where the GPU hides it. */
function fullHost(
  seen: readonly FullyPhased[],
  { variant, meanBatch, throughputPerS }: FullyPhased,
): FullHost[] {
  const { maxBatchSize, instanceCount } = variant;
  if (meanBatch < fullShare * maxBatchSize) return [];
  const gpu = gpuPhase(seen, maxBatchSize);
  const gpuMs = gpu.perBatch + gpu.perImage * meanBatch;
  const perMs = throughputPerS / meanBatch / 1000;
  const waitMs = usualVariability * finiteSourceWaitMs(instanceCount, gpuMs, perMs * gpuMs);
  const hostMs = instanceCount / perMs - gpuMs - waitMs;
  const { active, seen: isSeen } = activeOf({ instanceCount, batch: meanBatch, hostMs, gpuMs });
  return isSeen ? [{ batch: maxBatchSize, msPerImage: hostMs / meanBatch, active }] : [];
}

/** Host phase alone, milliseconds an image: between recorded sizes by their logarithm, beyond them as at the last. */
export function hostAloneMs({ hostAlone }: RecordedLaw, size: number): number {
  const above = hostAlone.find(({ batch }) => batch >= size) ?? hostAlone.at(-1)!;
  const below = hostAlone.findLast(({ batch }) => batch <= size) ?? hostAlone[0]!;
  if (above === below) return above.msPerImage;
  const share = Math.log(size / below.batch) / Math.log(above.batch / below.batch);
  return below.msPerImage * (above.msPerImage / below.msPerImage) ** share;
}

/** Law of a variant's server with all instances at work. */
export function lawOf(law: RecordedLaw, { maxBatchSize, instanceCount }: Variant): ServiceLaw {
  const gpu = gpuPhase(law.seen, maxBatchSize);
  const balance = balanceOf({
    instanceCount,
    hostAloneMs: hostAloneMs(law, maxBatchSize) * maxBatchSize,
    gpuMs: gpu.perBatch + gpu.perImage * maxBatchSize,
    crowding: law.crowding,
  });
  return {
    hostMsPerImage: balance.hostMs / maxBatchSize,
    gpuMsPerBatch: gpu.perBatch,
    gpuMsPerImage: gpu.perImage,
    ingressRequestsPerS: Infinity,
  };
}

/** How much a phase varies from one batch to the next: the response times of the recorded trials spread no more than that. */
const variation = { cv: 0.1, tailShare: 0, tailFactor: 1 } as const;

/** The server that serves a variant, a fresh one for every trial. */
export function serverWith(law: RecordedLaw, variant: Variant, seed: number): SimulatedServer {
  return {
    ...variant,
    dynamicBatching: true,
    scheduler: "payload",
    law: lawOf(law, variant),
    variation: variationFor(variation)!(seed),
  };
}

/** Variants of the example's file of that name, or its grid, as the GPU machine measures them. */
export function exampleVariants(name: "tuned" | GridName): Variant[] {
  const entries =
    name === "tuned"
      ? (parse(readFileSync(join(root, "examples/gpu/variants-tuned.yaml"), "utf8")) as GridVariant[])
      : gridVariants(name);
  return entries.map(asVariant);
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
