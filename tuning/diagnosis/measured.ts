/**
 * The cause where the fitted model contradicts the trials: from the trials alone, by the utilisation law. What is busy all the time at the
 * SLO rate is the limit, and what the others are busy bounds what its relief can give. Pure.
 */
import type { Variant } from "../../model-repo/variant";
import { gaugeTrustS, observationOf, type Observation } from "../identify/observation";
import type { Diagnosis, JudgedTrial, NextMove, SystemFacts } from "../outcome";
import { instancesThatFit } from "./special-causes";

export interface MeasuredInput {
  readonly variant: Variant;
  /** Highest rate that held, requests/s, and its trial. */
  readonly sloRate: number;
  readonly held: JudgedTrial;
  /** All trials of the variant. */
  readonly trials: readonly JudgedTrial[];
  readonly facts: SystemFacts;
}

/** A GPU this busy is the limit: executions of several instances wait for each other there. */
const busyGpu = 0.8;
/** Instances this busy are the limit: that share is the least it can be, and what hits them at random needs room. */
const busyInstances = 0.5;
/** Instances less busy than this hardly meet each other. */
const calmInstances = 0.3;
/** An image that takes this much longer where other instances work, too, is held up by them. */
const heldUp = 1.3;
/** Utilisation that can be reached in practice. */
const usable = 0.93;
const mostInstances = 8;

export function diagnoseMeasured({ variant, sloRate, held, trials, facts }: MeasuredInput): Diagnosis {
  const seen = trials.flatMap(({ spec, result }) => observationOf(spec, result) ?? []);
  const limit = observationOf(held.spec, held.result);
  const share = limit === null ? null : instancesBusy(limit);
  if (limit === null || share === null) {
    return nothing(
      "The service model does not fit this server, and it reports no execution times: no cause can be told.",
      {},
    );
  }
  const gpu = held.spec.measureS >= gaugeTrustS && facts.processor !== "cpu" ? limit.gpuBusy : null;
  const slowdown = slowdownOf(seen, limit);
  const evidence: Record<string, string> = { "instances busy, at least": percent(share) };
  if (gpu !== null) evidence["GPU busy"] = percent(gpu);
  if (limit.meanBatch !== null)
    evidence["mean batch"] = `${limit.meanBatch.toFixed(1)} of ${variant.maxBatchSize}`;
  if (slowdown !== null) evidence["time an image, over that with idle neighbours"] = slowdown.toFixed(2);
  if (gpu !== null && gpu >= busyGpu) {
    const summary = `The GPU is the limit: it works ${percent(gpu)} of the time at ${sloRate.toFixed(0)} requests/s.`;
    return { cause: "gpu-bound", summary, evidence, nextMove: null };
  }
  if (share < busyInstances) {
    return nothing(
      `At the limit neither the instances (${percent(share)} of the time) nor the GPU are busy: what limits lies outside the executions.`,
      evidence,
    );
  }
  if (facts.processor === "cpu") {
    const summary = `The CPU is the limit: the instances execute ${percent(share)} of the time.`;
    return { cause: "cpu-bound", summary, evidence, nextMove: null };
  }
  if (gpu === null) {
    return nothing(
      `The executions are the limit (${percent(share)} of the time), but the server reports no GPU use: copying or inferring cannot be told apart.`,
      evidence,
    );
  }
  const crowd = slowdown !== null && slowdown >= heldUp && variant.instanceCount > 1;
  const summary =
    `The host phase is the limit: the instances execute ${percent(share)} of the time, and the GPU works ${percent(gpu)} of it` +
    (crowd ? `; they hold each other up, so that an image takes ${slowdown.toFixed(1)} times as long.` : ".");
  const nextMove = crowd ? lessHostWork(sloRate, gpu) : moreInstances(variant, held, sloRate, gpu);
  return { cause: "host-bound", summary, evidence, nextMove };
}

function nothing(summary: string, evidence: Record<string, string>): Diagnosis {
  return { cause: "none", summary, evidence, nextMove: null };
}

/** Time of an execution for one of its images, milliseconds; null when the server does not say. */
function msPerImage({ inputMs, inferMs, outputMs, requestBatch }: Observation): number | null {
  if (inputMs === null || inferMs === null || requestBatch === null) return null;
  return (inputMs + inferMs + (outputMs ?? 0)) / requestBatch;
}

/**
 * Share of the time that an instance executes, at least, 0..1; null when the server does not say. Times are means over requests, and large
 * batches hold more of them: they are counted as if they took as much longer as they are larger.
 */
function instancesBusy(seen: Observation): number | null {
  const ms = msPerImage(seen);
  return ms === null ? null : Math.min(1, (seen.throughputPerS * ms) / 1000 / seen.variant.instanceCount);
}

/**
 * How much longer an image takes at the limit than in the calmest trial, where hardly two executions met. Null without a calm trial. Larger
 * batches cost less an image, never more, so above 1 it is the neighbours.
 */
function slowdownOf(seen: readonly Observation[], limit: Observation): number | null {
  const calm = seen.filter((one) => (instancesBusy(one) ?? 1) < calmInstances);
  const [atLimit, ...alone] = [limit, ...calm].map(msPerImage);
  const least = Math.min(...alone.flatMap((ms) => ms ?? []));
  return atLimit == null || !Number.isFinite(least) || least <= 0 ? null : atLimit / least;
}

/** Utilisation law: the GPU's work per request stays, so the rate can grow until it is busy. */
function lessHostWork(sloRate: number, gpu: number): NextMove {
  const most = Math.max(1, usable / gpu);
  return {
    change:
      "less host work an image in the backend (one CPU thread an instance, CUDA graphs, pinned buffers); at most, until the GPU is busy",
    predictedSloRate: sloRate * most,
    predictedGain: most - 1,
  };
}

function moreInstances(variant: Variant, held: JudgedTrial, sloRate: number, gpu: number): NextMove | null {
  const count = variant.instanceCount * 2;
  if (count > Math.min(mostInstances, instancesThatFit(variant, held.result.server))) return null;
  const most = Math.max(1, Math.min(2, usable / gpu));
  return {
    change: `${count} instances instead of ${variant.instanceCount}; at most`,
    predictedSloRate: sloRate * most,
    predictedGain: most - 1,
  };
}

function percent(value: number): string {
  return `${(100 * value).toFixed(0)} %`;
}
