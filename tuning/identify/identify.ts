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

/** Throughput at saturation this far below the phases' prediction is a ceiling before the node, if the node does not say otherwise. */
const ceilingMargin = 0.05;
/** Share of the response time outside the node, at saturation, from which on requests are held up before it. */
const outsideShare = 0.3;
/** GPU gauges are refreshed every 2 s: a shorter window's gauge is mostly about what was before. */
const gaugeTrustS = 4;

/** Null when the observations are too few to say anything: at least one with answers is needed. */
export function identify(observations: readonly Observation[]): FittedLaw | null {
  const phases = withServerMetrics(observations) ?? fromResponses(observations);
  if (phases === null) return null;
  const law = { ...phases.law, ingressRequestsPerS: Infinity };
  const { overheadMs, ceilingPerS } = pathOf(observations, law);
  return {
    law: { ...law, ingressRequestsPerS: ceilingPerS ?? Infinity },
    // Without server metrics it is contained in the time per batch: response times cannot tell them apart.
    overheadMs: phases.phases ? overheadMs : 0,
    identified: { phases: phases.phases, batchSplit: phases.batchSplit, ingress: ceilingPerS !== null },
    residual: phases.residual,
    notes: phases.notes,
  };
}

interface Phases {
  readonly law: Omit<ServiceLaw, "ingressRequestsPerS">;
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
    notes.push(
      "The server has no GPU metrics and executions overlapped: waiting for the GPU is counted as GPU time.",
    );
    for (const { requestBatch, inferMs, measureS } of observations) {
      if (requestBatch !== null && inferMs !== null)
        gpus.push({ batch: requestBatch, ms: inferMs, weight: measureS });
    }
  }
  const gpu = line(gpus);
  if (!gpu.split)
    notes.push(
      "All executions had about the same size: GPU time per batch and per image are not told apart.",
    );
  const errors = [
    ...hosts.map(({ batch, ms }) => relative(host * batch, ms)),
    ...gpus
      .filter(({ weight }) => weight >= 0.5)
      .map(({ batch, ms }) => relative(gpu.perBatch + gpu.perImage * batch, ms)),
  ];
  return {
    law: { hostMsPerImage: host, gpuMsPerBatch: gpu.perBatch, gpuMsPerImage: gpu.perImage },
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
    ladder.push({
      batch: concurrency,
      ms: responseMs - (fills ? 0 : variant.queueDelayUs / 1000),
      weight: measureS,
    });
  }
  const any = observations[0];
  if (any === undefined) return null;
  const notes = ["The server reports no execution times: the law is estimated from response times alone."];
  if (saturated !== null && saturated.variant.instanceCount === 1) {
    // One instance: at saturation every execution is full and follows the one before.
    const { maxBatchSize } = saturated.variant;
    ladder.push({
      batch: maxBatchSize,
      ms: (maxBatchSize * 1000) / saturated.throughputPerS,
      weight: saturated.measureS,
    });
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
  const gpuPerImage = Math.max(
    0,
    ((maxBatchSize * 1000) / saturated.throughputPerS - total.perBatch) / maxBatchSize,
  );
  if (gpuPerImage >= total.perImage) return result(0, total.perImage, []);
  return result(total.perImage - gpuPerImage, gpuPerImage, [
    "The split into host and GPU phase assumes that the GPU is what saturates.",
  ]);

  function result(host: number, perImage: number, more: readonly string[]): Phases {
    return {
      law: { hostMsPerImage: host, gpuMsPerBatch: total.perBatch, gpuMsPerImage: perImage },
      phases: false,
      batchSplit: total.split,
      residual: NaN,
      notes: [...notes, ...more],
    };
  }
}

/**
 * The path to the node: constant time outside it, and its ceiling where that was reached. Both follow from the response times of the
 * probes, by simulating them: the calmest one gives the time outside, the busiest one the ceiling.
 */
function pathOf(
  observations: readonly Observation[],
  law: ServiceLaw,
): { overheadMs: number; ceilingPerS: number | null } {
  const probes = observations
    .filter(({ concurrency }) => concurrency !== null)
    .sort((a, b) => a.throughputPerS - b.throughputPerS);
  const calm = probes[0];
  const busy = probes.filter(({ variant, concurrency }) => concurrency! > variant.maxBatchSize).at(-1);
  const outside = (ingressRequestsPerS: number): number =>
    calm === undefined ? 0 : restOf(calm, { ...law, ingressRequestsPerS });
  // The open loop's rest, where there is no ceiling, is what counts at the knee.
  const open = observations.filter(({ concurrency }) => concurrency === null);
  const free = (): number => meanRest(open) ?? outside(Infinity);
  if (busy === undefined) return { overheadMs: free(), ceilingPerS: null };
  const throughputAt = (ingressRequestsPerS: number): number => {
    const path = { ...law, ingressRequestsPerS };
    const overheadMs = outside(ingressRequestsPerS);
    return (busy.concurrency! * 1000) / (closedResponseMs(busy, path, overheadMs) + overheadMs);
  };
  const { throughputPerS } = busy;
  const restMs = meanRest([busy]);
  const heldUp =
    restMs === null
      ? throughputPerS < throughputAt(Infinity) * (1 - ceilingMargin)
      : restMs > outsideShare * busy.responseMs;
  if (!heldUp) return { overheadMs: free(), ceilingPerS: null };
  let low = throughputPerS * 0.98;
  let high = throughputPerS * 1.5;
  for (let i = 0; i < 12; i++) {
    const middle = (low + high) / 2;
    if (throughputAt(middle) < throughputPerS) low = middle;
    else high = middle;
  }
  const ceilingPerS = (low + high) / 2;
  return { overheadMs: outside(ceilingPerS), ceilingPerS };
}

/** Mean response time inside the node with a fixed number in flight; what passes outside is like a think time. */
function closedResponseMs(
  { variant, concurrency }: Observation,
  law: ServiceLaw,
  overheadMs: number,
): number {
  const thinkS = overheadMs / 1000;
  const shape = {
    kind: "users",
    users: concurrency!,
    spawnPerS: 1e6,
    thinkMinS: thinkS,
    thinkMaxS: thinkS,
  } as const;
  return simulate(
    { ...variant, dynamicBatching: true, law },
    { shape, seed: 1, warmupS: 1, measureS: 3, sloBoundMs: 100 },
  ).meanResponseMs;
}

/** What the node does not explain of a probe's response time, milliseconds. */
function restOf(probe: Observation, law: ServiceLaw): number {
  let overheadMs = 0;
  for (let round = 0; round < 4; round++) {
    overheadMs = Math.max(0, probe.responseMs - closedResponseMs(probe, law, overheadMs));
  }
  return overheadMs;
}

/**
 * What the server's own times do not explain, weighted by the windows; null without such observations. Only of calm windows: in a
 * queue that grows, the requests that were sent and those that were executed in the window are not the same ones.
 */
function meanRest(observations: readonly Observation[]): number | null {
  const calmestMs = Math.min(...observations.map(({ responseMs }) => responseMs));
  let weights = 0;
  let sum = 0;
  for (const { responseMs, queueMs, inputMs, inferMs, outputMs, measureS } of observations) {
    if (queueMs === null || inputMs === null || inferMs === null || responseMs > 2 * calmestMs) continue;
    sum += measureS * Math.max(0, responseMs - queueMs - inputMs - inferMs - (outputMs ?? 0));
    weights += measureS;
  }
  return weights > 0 ? sum / weights : null;
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
  if (split) return { perBatch: 0, perImage: t2 / s22, split };
  // One batch size only: half of the time each. Where larger batches never came up, how they would do hardly matters.
  const ms = (t1 / s11 + (t2 / s22) * (s12 / s11)) / 2;
  return { perBatch: ms / 2, perImage: (ms / 2) * (s11 / s12), split };
}

function relative(predicted: number, observed: number): number {
  return observed > 0 ? predicted / observed - 1 : 0;
}
