/**
 * The server of docs/evidence/h200 in virtual time, by the law of its recorded trials: what a GPU phase takes by the GPU's own gauge, and
 * what an instance does on the host by the time of full batches while all instances are busy. Instances share the host's cores, so that
 * time grows with their number; between the recorded numbers it is interpolated, and beyond the largest the host passes no more than there.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { type GridName, type GridVariant, gridVariants } from "../examples/gpu/grids";
import { originalArtefact } from "../model-repo/catalogue";
import type { Variant } from "../model-repo/variant";
import type { ServiceLaw } from "../serving-model/service-law";
import type { SimulatedServer } from "../serving-model/simulate";
import { line } from "../tuning/identify/least-squares";
import { observationOf, type Observation } from "../tuning/identify/observation";
import { variationFor } from "../tuning/identify/variation";
import { readPointLog } from "../tuning/results/point-log";

const root = join(__dirname, "..");
/** Model that the recorded trials of the tuned server served. */
const modelName = "fp16_in8";
/** From this share of the largest batch on, all instances were busy all the time. */
const fullShare = 0.93;
/** GPU gauges of shorter windows are not to be had: Triton's interval is half a second there. */
const leastS = 2;

export interface HostLaw {
  /** Instances of the recorded trials, and their host phase, milliseconds an image. */
  readonly recorded: readonly { readonly instances: number; readonly msPerImage: number }[];
}

/** What the recorded trials say. */
export interface RecordedLaw {
  readonly gpuMsPerBatch: number;
  readonly gpuMsPerImage: number;
  readonly host: HostLaw;
  readonly trials: number;
}

/** @throws ResultsError when the evidence cannot be read */
export function recordedLaw(folder = join(root, "docs/evidence/h200")): RecordedLaw {
  const seen = ["path", "explore"]
    .flatMap((part) => readPointLog(join(folder, part, "points.jsonl")).records)
    .filter(({ spec, result }) => result.load.valid && spec.variant.artefact.name === modelName)
    .flatMap(({ spec, result }) => observationOf(spec, result) ?? [])
    .filter(
      ({ measureS, meanBatch, gpuBusy }) => measureS >= leastS && meanBatch !== null && gpuBusy !== null,
    );
  // One at a time on the GPU: busy share x time = executions x GPU phase.
  const gpu = line(
    seen.map(({ meanBatch, gpuBusy, throughputPerS, measureS }) => ({
      batch: meanBatch!,
      ms: (1000 * gpuBusy! * meanBatch!) / throughputPerS,
      weight: measureS,
    })),
  );
  const full = seen.filter(({ meanBatch, variant }) => meanBatch! >= fullShare * variant.maxBatchSize);
  const counts = [...new Set(full.map(({ variant }) => variant.instanceCount))].sort((a, b) => a - b);
  const recorded = counts.map((instances) => {
    const same = full.filter(({ variant }) => variant.instanceCount === instances);
    return {
      instances,
      msPerImage: mean(same.map((one) => hostMsPerImage(one, gpu.perBatch, gpu.perImage))),
    };
  });
  return {
    gpuMsPerBatch: gpu.perBatch,
    gpuMsPerImage: gpu.perImage,
    host: { recorded },
    trials: seen.length,
  };
}

/** A busy instance's time for one batch, less the GPU's part, by image. */
function hostMsPerImage(
  { variant, meanBatch, throughputPerS }: Observation,
  gpuMsPerBatch: number,
  gpuMsPerImage: number,
): number {
  const cycleMs = (1000 * variant.instanceCount * meanBatch!) / throughputPerS;
  return (cycleMs - gpuMsPerBatch) / meanBatch! - gpuMsPerImage;
}

/** Host phase with so many instances, milliseconds an image. */
export function hostMsWith({ recorded }: HostLaw, instances: number): number {
  const next = recorded.findIndex((one) => one.instances >= instances);
  const last = recorded.at(-1)!;
  if (next === -1) return (last.msPerImage * instances) / last.instances;
  const above = recorded[next]!;
  const below = recorded[next - 1] ?? above;
  if (above.instances === instances || below === above) return above.msPerImage;
  const share = Math.log(instances / below.instances) / Math.log(above.instances / below.instances);
  return below.msPerImage * (above.msPerImage / below.msPerImage) ** share;
}

/** How much a phase varies from one batch to the next: the response times of the recorded trials spread no more than that. */
const variation = { cv: 0.1, tailShare: 0, tailFactor: 1 } as const;

/** The server that serves a variant, a fresh one for every trial. */
export function serverWith(law: RecordedLaw, variant: Variant, seed: number): SimulatedServer {
  const { gpuMsPerBatch, gpuMsPerImage, host } = law;
  const service: ServiceLaw = {
    hostMsPerImage: hostMsWith(host, variant.instanceCount),
    gpuMsPerBatch,
    gpuMsPerImage,
    ingressRequestsPerS: Infinity,
  };
  return {
    ...variant,
    dynamicBatching: true,
    scheduler: "payload",
    law: service,
    variation: variationFor(variation)!(seed),
  };
}

/** Variants of the example's file of that name, or its grid, as the GPU machine measures them. */
export function exampleVariants(name: "tuned" | GridName): Variant[] {
  const entries =
    name === "tuned"
      ? (parse(readFileSync(join(root, "examples/gpu/variants-tuned.yaml"), "utf8")) as GridVariant[])
      : gridVariants(name);
  const { input, ...artefact } = originalArtefact;
  return entries.map((entry) => ({
    ...entry,
    artefact: { ...artefact, name: entry.model, input: { ...input, type: "UINT8" as const } },
    published: null,
  }));
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
