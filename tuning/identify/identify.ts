/**
 * Estimates the service law from trials: host phase, GPU phase, ingress ceiling, and the constant time outside the node.
 *
 * With server metrics: computeInput = host x b gives the host phase; computeInfer = perBatch + perImage x b where no other execution
 * can hold the GPU (one instance, or one batch in flight); GPU busy time over executions gives the same for any load. b is the batch
 * a request is in. Without server metrics the response times of a ladder of concurrencies give the sum of the phases, and the
 * throughput at saturation its split.
 */
import { simulate } from "../../serving-model/simulate";
import type { ServiceLaw } from "../../serving-model/service-law";
import type { Observation } from "./observation";

export interface FittedLaw {
  readonly law: ServiceLaw;
  /** Response time outside link, queue and execution, milliseconds. */
  readonly overheadMs: number;
  /** What could be told from these trials, and what is an assumption. */
  readonly identified: {
    /** Host and GPU phase apart from each other. */
    readonly phases: boolean;
    /** Time per batch and per image apart from each other. */
    readonly batchSplit: boolean;
    /** A ceiling of the path into the node was reached; if not, `ingressRequestsPerS` is Infinity and may still lie higher. */
    readonly ingress: boolean;
  };
  /** Root mean square of (predicted / observed - 1) over the observed phase times. */
  readonly residual: number;
  /** Sentences for the report: what is assumed. */
  readonly notes: readonly string[];
}

/** Throughput at saturation this far below the phases' prediction is a ceiling before the node. */
const ceilingMargin = 0.03;
/** GPU gauges are refreshed every 2 s: a shorter window's gauge is mostly about what was before. */
const gaugeTrustS = 4;

/** Null when the observations are too few to say anything: at least one with answers is needed. */
export function identify(observations: readonly Observation[]): FittedLaw | null {
  const phases = withServerMetrics(observations) ?? fromResponses(observations);
  if (phases === null) return null;
  const law = { ...phases.law, ingressRequestsPerS: Infinity };
  const restMs = phases.overheadMs ?? overheadOf(observations);
  const ceiling = ingressOf(observations, law, restMs);
  const ingressRequestsPerS = ceiling ?? Infinity;
  return {
    law: { ...law, ingressRequestsPerS },
    // The link's own time is part of the rest and comes back with the ceiling.
    overheadMs: Math.max(0, restMs - 1000 / ingressRequestsPerS),
    identified: { phases: phases.phases, batchSplit: phases.batchSplit, ingress: ceiling !== null },
    residual: phases.residual,
    notes: phases.notes,
  };
}

interface Phases {
  readonly law: Omit<ServiceLaw, "ingressRequestsPerS">;
  /** Null: to be found from the response times. */
  readonly overheadMs: number | null;
  readonly phases: boolean;
  readonly batchSplit: boolean;
  readonly residual: number;
  readonly notes: readonly string[];
}

/** One equation perBatch + perImage x batch = ms. */
interface Equation {
  readonly batch: number;
  readonly ms: number;
  readonly weight: number;
}

function withServerMetrics(observations: readonly Observation[]): Phases | null {
  const hosts: Equation[] = [];
  const gpus: Equation[] = [];
  for (const seen of observations) {
    const { requestBatch, meanBatch, inputMs, inferMs, gpuBusy, throughputPerS, measureS } = seen;
    if (requestBatch === null || meanBatch === null || inputMs === null || inferMs === null) continue;
    hosts.push({ batch: requestBatch, ms: inputMs, weight: measureS });
    if (runsAlone(seen)) gpus.push({ batch: requestBatch, ms: inferMs, weight: measureS });
    if (gpuBusy !== null && gpuBusy > 0.02 && throughputPerS > 0) {
      const weight = measureS * (measureS >= gaugeTrustS ? 0.5 : 0.02);
      gpus.push({ batch: meanBatch, ms: (gpuBusy * 1000 * meanBatch) / throughputPerS, weight });
    }
  }
  if (hosts.length === 0) return null;
  const host = Math.max(0, slopeThroughOrigin(hosts));
  const notes: string[] = [];
  if (gpus.length === 0) {
    notes.push("The server has no GPU metrics and executions overlapped: waiting for the GPU is counted as GPU time.");
    for (const { requestBatch, inferMs, measureS } of observations) {
      if (requestBatch !== null && inferMs !== null) gpus.push({ batch: requestBatch, ms: inferMs, weight: measureS });
    }
  }
  const gpu = line(gpus);
  if (!gpu.split) notes.push("All executions had about the same size: GPU time per batch and per image are not told apart.");
  const errors = [
    ...hosts.map(({ batch, ms }) => relative(host * batch, ms)),
    ...gpus.filter(({ weight }) => weight >= 0.5).map(({ batch, ms }) => relative(gpu.perBatch + gpu.perImage * batch, ms)),
  ];
  return {
    law: { hostMsPerImage: host, gpuMsPerBatch: gpu.perBatch, gpuMsPerImage: gpu.perImage },
    overheadMs: null,
    phases: true,
    batchSplit: gpu.split,
    residual: Math.sqrt(errors.reduce((sum, error) => sum + error ** 2, 0) / Math.max(1, errors.length)),
    notes,
  };
}

/** No other execution can hold the GPU: one instance, or all that is in flight goes into one batch. */
function runsAlone({ variant, concurrency, requestBatch }: Observation): boolean {
  if (variant.instanceCount === 1) return true;
  return concurrency !== null && requestBatch !== null && requestBatch >= 0.9 * concurrency;
}

/** Sum of the phases from response times at known concurrencies, the split from saturation. */
function fromResponses(observations: readonly Observation[]): Phases | null {
  const ladder: Equation[] = [];
  let saturated: Observation | null = null;
  for (const seen of observations) {
    const { variant, concurrency, responseMs, measureS } = seen;
    if (concurrency === null) continue;
    if (concurrency > variant.maxBatchSize) {
      saturated = seen;
      continue;
    }
    const fills = concurrency === variant.maxBatchSize || variant.preferredBatchSizes.includes(concurrency);
    ladder.push({ batch: concurrency, ms: responseMs - (fills ? 0 : variant.queueDelayUs / 1000), weight: measureS });
  }
  const any = observations[0];
  if (any === undefined) return null;
  const notes = ["The server reports no execution times: the law is estimated from response times alone."];
  if (saturated !== null && saturated.variant.instanceCount === 1) {
    // One instance: at saturation every execution is full and follows the one before.
    const { maxBatchSize } = saturated.variant;
    ladder.push({ batch: maxBatchSize, ms: (maxBatchSize * 1000) / saturated.throughputPerS, weight: saturated.measureS });
  }
  if (ladder.length === 0) {
    const delayMs = any.variant.queueDelayUs / 1000;
    ladder.push({ batch: 1, ms: Math.max(0.1, any.responseMs - delayMs), weight: 1 });
  }
  const total = line(ladder);
  const { instanceCount, maxBatchSize } = any.variant;
  if (instanceCount === 1 || saturated === null) {
    return result(0, total.perImage, ["Host and GPU phase are not told apart: all is counted as GPU time."]);
  }
  const gpuPerImage = Math.max(0, ((maxBatchSize * 1000) / saturated.throughputPerS - total.perBatch) / maxBatchSize);
  if (gpuPerImage >= total.perImage) return result(0, total.perImage, []);
  return result(total.perImage - gpuPerImage, gpuPerImage, [
    "The split into host and GPU phase assumes that the GPU is what saturates.",
  ]);

  function result(host: number, perImage: number, more: readonly string[]): Phases {
    return {
      law: { hostMsPerImage: host, gpuMsPerBatch: total.perBatch, gpuMsPerImage: perImage },
      // Contained in the time per batch: response times cannot tell them apart.
      overheadMs: 0,
      phases: false,
      batchSplit: total.split,
      residual: NaN,
      notes: [...notes, ...more],
    };
  }
}

/**
 * Ceiling of the path into the node: what explains the throughput at saturation, if the phases would allow more; found by
 * simulating the same trial. Null when it was not reached.
 */
function ingressOf(observations: readonly Observation[], law: ServiceLaw, overheadMs: number): number | null {
  const saturated = observations
    .filter(({ variant, concurrency }) => concurrency !== null && concurrency > variant.maxBatchSize)
    .sort((a, b) => b.throughputPerS - a.throughputPerS)[0];
  if (saturated === undefined) return null;
  const { throughputPerS } = saturated;
  const throughputAt = (ingressRequestsPerS: number): number =>
    closedThroughput(saturated, { ...law, ingressRequestsPerS }, overheadMs);
  if (throughputPerS >= throughputAt(Infinity) * (1 - ceilingMargin)) return null;
  let low = throughputPerS;
  let high = throughputPerS * 1.5;
  for (let i = 0; i < 12; i++) {
    const middle = (low + high) / 2;
    if (throughputAt(middle) < throughputPerS) low = middle;
    else high = middle;
  }
  return (low + high) / 2;
}

/** Throughput of a fixed number in flight, by simulation; what is outside the node is like a think time. */
function closedThroughput({ variant, concurrency }: Observation, law: ServiceLaw, overheadMs: number): number {
  const users = concurrency!;
  const thinkS = overheadMs / 1000;
  const run = simulate(
    { ...variant, dynamicBatching: true, law },
    {
      shape: { kind: "users", users, spawnPerS: 1e5, thinkMinS: thinkS, thinkMaxS: thinkS },
      seed: 1,
      warmupS: 1,
      measureS: 4,
      sloBoundMs: 100,
    },
  );
  return (users * 1000) / (run.meanResponseMs + overheadMs);
}

/**
 * What remains of the response time outside queue and execution, for one request alone. Requests that are sent together (those of
 * one batch, with a fixed number in flight) pass the way in one after the other, so the rest grows with the batch: its intercept
 * is wanted.
 */
function overheadOf(observations: readonly Observation[]): number {
  const rests: { together: number; ms: number; weight: number }[] = [];
  for (const { concurrency, requestBatch, responseMs, queueMs, inputMs, inferMs, outputMs, throughputPerS } of observations) {
    if (queueMs === null || inputMs === null || inferMs === null || concurrency === null) continue;
    const together = Math.min(concurrency, requestBatch ?? concurrency);
    const ms = responseMs - queueMs - inputMs - inferMs - (outputMs ?? 0);
    rests.push({ together, ms, weight: 1 / throughputPerS ** 2 });
  }
  if (rests.length === 0) return 0;
  const calm = rests.reduce((best, rest) => (rest.weight > best.weight ? rest : best));
  const others = rests.filter(({ together }) => together > calm.together * 1.5);
  const perRequestMs = others.map(({ together, ms }) => (2 * (ms - calm.ms)) / (together - calm.together));
  // The calmest pair: at saturation the rest also holds the wait before the ceiling.
  const step = Math.max(0, Math.min(...perRequestMs, Infinity));
  const alone = Number.isFinite(step) ? calm.ms - (step * (calm.together - 1)) / 2 : calm.ms;
  return Math.max(0, Math.min(calm.ms, alone));
}

function slopeThroughOrigin(equations: readonly Equation[]): number {
  // Relative errors count alike: weighted mean of ms / batch.
  const weights = equations.reduce((sum, { weight }) => sum + weight, 0);
  return equations.reduce((sum, { batch, ms, weight }) => sum + (weight * ms) / batch, 0) / weights;
}

/** Weighted least squares of relative errors, both terms >= 0. `split` is false when the batches hardly differ. */
function line(equations: readonly Equation[]): { perBatch: number; perImage: number; split: boolean } {
  const usable = equations.filter(({ ms, batch }) => ms > 0 && batch > 0);
  const heavy = usable.filter(({ weight }) => weight >= 0.5);
  const batches = (heavy.length > 0 ? heavy : usable).map(({ batch }) => batch);
  const split = Math.max(...batches) > 1.2 * Math.min(...batches);
  let [s11, s12, s22, t1, t2] = [0, 0, 0, 0, 0];
  for (const { batch, ms, weight } of usable) {
    const w = weight / ms ** 2;
    s11 += w;
    s12 += w * batch;
    s22 += w * batch ** 2;
    t1 += w * ms;
    t2 += w * ms * batch;
  }
  const determinant = s11 * s22 - s12 ** 2;
  if (split && determinant > 0) {
    const perBatch = (t1 * s22 - t2 * s12) / determinant;
    const perImage = (t2 * s11 - t1 * s12) / determinant;
    if (perBatch >= 0 && perImage >= 0) return { perBatch, perImage, split };
    if (perImage < 0) return { perBatch: t1 / s11, perImage: 0, split };
  }
  return { perBatch: 0, perImage: t2 / s22, split };
}

function relative(predicted: number, observed: number): number {
  return observed > 0 ? predicted / observed - 1 : 0;
}
