/**
 * Host and GPU phase from the server's own times: computeInput and computeOutput are host phase; computeInfer = perBatch + perImage x b is
 * GPU phase where no other execution can hold the GPU (one instance, or one batch in flight); GPU busy time over executions gives the
 * same for any load. b is the batch a request is in. A backend that works between input and output itself (Python) shows in GPU gauges
 * that stay far below computeInfer: the GPU phase then follows from the gauges, and the rest of computeInfer, less the wait for the GPU, is
 * host phase.
 */
import { hostMsOf, type ServiceLaw } from "../../serving-model/service-law";
import { type Equation, type Line, line, relative, slopeThroughOrigin } from "./least-squares";
import { gaugeTrustS, type Observation } from "./observation";
import { finiteSourceWaitMs, usualVariability } from "./finite-source";

export interface Phases {
  readonly law: Omit<ServiceLaw, "ingressRequestsPerS">;
  readonly phases: boolean;
  readonly batchSplit: boolean;
  readonly residual: number;
  readonly notes: readonly string[];
}

/** Gauges come in whole per cent; less says nothing. */
const leastGauge = 0.01;
/** Below this an execution hardly waits for the GPU. */
const idleGauge = 0.6;
/** From here on waiting for the GPU explains nearly any time of an execution. */
const halfIdleGauge = 0.85;
/** GPU time over wall time, from which on the estimate contradicts itself: its inverse. */
const possible = 0.93;
/** Share of computeInfer beyond the gauges' GPU time from which on it is more than their error. */
const hiddenShare = 0.35;

export function withServerMetrics(observations: readonly Observation[]): Phases | null {
  const seen = observations.filter(hasPhases);
  if (seen.length === 0) return null;
  const { gpu, equations, worksAlongside, note } = gpuPhaseOf(seen);
  const hosts = seen.map((one) => ({
    batch: one.requestBatch,
    ms: one.inputMs + (one.outputMs ?? 0) + (worksAlongside ? restOf(one, gpu) : 0),
    weight: one.measureS,
  }));
  const host = hostLine(hosts);
  const law = {
    hostMsPerBatch: host.perBatch,
    hostMsPerImage: host.perImage,
    gpuMsPerBatch: gpu.perBatch,
    gpuMsPerImage: gpu.perImage,
  };
  const errors = [
    ...hosts.map(({ batch, ms }) => relative(hostMsOf(law, batch), ms)),
    ...equations.filter(({ weight }) => weight >= 0.5).map(({ batch, ms }) => relative(at(gpu, batch), ms)),
  ];
  const oneSize =
    "All executions had about the same size: GPU time per batch and per image are not told apart.";
  return {
    law,
    phases: true,
    batchSplit: gpu.split,
    residual: Math.sqrt(errors.reduce((sum, error) => sum + error ** 2, 0) / Math.max(1, errors.length)),
    notes: [...(note === null ? [] : [note]), ...(gpu.split ? [] : [oneSize])],
  };
}

interface GpuPhase {
  readonly gpu: Line;
  /** What the line was fitted to. */
  readonly equations: readonly Equation[];
  /** Whether computeInfer holds host work beside the GPU phase. */
  readonly worksAlongside: boolean;
  /** What is assumed, in a sentence; null: nothing. */
  readonly note: string | null;
}

function gpuPhaseOf(seen: readonly PhasedObservation[]): GpuPhase {
  const gauged = seen.flatMap(gaugeEquation);
  const trusted = gauged.filter(({ weight }) => weight >= 0.5);
  const telling = seen.filter((one) => runsAlone(one) || isBelow(one, halfIdleGauge));
  const ofGauges = line(trusted);
  // As if phases varied at random, which explains most by waiting.
  const shares = telling.map((one) => restOf(one, ofGauges, 1) / one.inferMs);
  const mean = shares.reduce((sum, share) => sum + share, 0) / shares.length;
  if (trusted.length > 0 && mean > hiddenShare) {
    const note = "The GPU works for a part of the execution only: the rest of it is counted as host time.";
    return { gpu: ofGauges, equations: trusted, worksAlongside: true, note };
  }
  const inferred = (from: readonly PhasedObservation[]): Equation[] =>
    from.map(({ requestBatch, inferMs, measureS }) => ({
      batch: requestBatch,
      ms: inferMs,
      weight: measureS,
    }));
  const direct = [...inferred(seen.filter(runsAlone)), ...gauged];
  const equations = direct.length > 0 ? direct : inferred(seen);
  const gpu = line(equations);
  // A GPU cannot work for more than all of the time.
  const workOf = ({ meanBatch, throughputPerS }: PhasedObservation): number =>
    (at(gpu, meanBatch) * throughputPerS) / meanBatch / 1000;
  const busiest = seen.reduce((most, one) => (workOf(one) > workOf(most) ? one : most));
  const most = workOf(busiest);
  if (most > 1 / possible && busiest.gpuBusy !== null && busiest.gpuBusy >= idleGauge) {
    // The gauge says that the GPU does work nearly all the time: the executions wait for it, and its time follows from the gauge.
    const scale = busiest.gpuBusy / most;
    const part = { ...gpu, perBatch: gpu.perBatch * scale, perImage: gpu.perImage * scale };
    return { gpu: part, equations: [], worksAlongside: false, note: null };
  }
  if (most > 1 / possible) {
    const part = { ...gpu, perBatch: gpu.perBatch / most, perImage: gpu.perImage / most };
    const note =
      "Executions overlap more than one GPU would let them if it worked all the time: what is too much is counted as host time.";
    return { gpu: part, equations: [], worksAlongside: true, note };
  }
  const note =
    direct.length > 0
      ? null
      : "The server has no GPU metrics and executions overlapped: waiting for the GPU is counted as GPU time.";
  return { gpu, equations, worksAlongside: false, note };
}

function at({ perBatch, perImage }: Line, batch: number): number {
  return perBatch + perImage * batch;
}

/** What of computeInfer is neither GPU phase nor the wait for it, milliseconds. */
function restOf(seen: PhasedObservation, gpu: Line, variability = usualVariability): number {
  return Math.max(0, seen.inferMs - at(gpu, seen.requestBatch) - variability * waitOf(seen, gpu));
}

/** How long an execution waits for the GPU while other instances use it, milliseconds, if phases varied at random. */
function waitOf(seen: PhasedObservation, gpu: Line): number {
  if (runsAlone(seen) || isIdle(seen)) return 0;
  const { meanBatch, throughputPerS, inputMs, inferMs, outputMs, variant } = seen;
  const perMs = throughputPerS / meanBatch / 1000;
  const busy = Math.round(perMs * (inputMs + inferMs + (outputMs ?? 0)));
  const gpuMs = at(gpu, meanBatch);
  return finiteSourceWaitMs(Math.min(busy, variant.instanceCount), gpuMs, perMs * gpuMs);
}

/** The GPU is idle enough that executions hardly wait for it. */
function isIdle(seen: PhasedObservation): boolean {
  return isBelow(seen, idleGauge);
}

/** A gauge that can be trusted says that the GPU is less busy than this, whatever the executions wait for. */
function isBelow({ gpuBusy, measureS }: PhasedObservation, busy: number): boolean {
  return gpuBusy !== null && gpuBusy >= leastGauge && gpuBusy < busy && measureS >= gaugeTrustS;
}

/** An observation with the server's own times. */
type PhasedObservation = Observation & {
  readonly requestBatch: number;
  readonly meanBatch: number;
  readonly inputMs: number;
  readonly inferMs: number;
};

function hasPhases(seen: Observation): seen is PhasedObservation {
  const { requestBatch, meanBatch, inputMs, inferMs } = seen;
  return requestBatch !== null && meanBatch !== null && inputMs !== null && inferMs !== null;
}

/**
 * GPU time of an execution by the gauge; short windows weigh little, because the gauge looks back. What it saw before was calmer, as probes
 * get busier: a gauge that is high all the same is about this window.
 */
function gaugeEquation(seen: PhasedObservation): Equation[] {
  const { gpuBusy, meanBatch, throughputPerS, measureS } = seen;
  if (gpuBusy === null || gpuBusy < leastGauge || throughputPerS <= 0) return [];
  const trusted = measureS >= gaugeTrustS || (gpuBusy >= idleGauge && !runsAlone(seen));
  const weight = measureS * (trusted ? 0.5 : 0.02);
  return [{ batch: meanBatch, ms: (gpuBusy * 1000 * meanBatch) / throughputPerS, weight }];
}

/** Copies cost as much for every image; only what does not fit that is told apart into batch and image. */
function hostLine(equations: readonly Equation[]): { perBatch: number; perImage: number } {
  const perImage = Math.max(0, slopeThroughOrigin(equations));
  const two = line(equations);
  const rms = (of: (batch: number) => number): number =>
    Math.sqrt(
      equations.reduce((sum, { batch, ms }) => sum + relative(of(batch), ms) ** 2, 0) / equations.length,
    );
  const straight = rms((batch) => perImage * batch);
  const fits = straight < 0.1 || rms((batch) => two.perBatch + two.perImage * batch) > straight / 2;
  return !two.split || fits ? { perBatch: 0, perImage } : two;
}

/** No other execution can hold the GPU: one instance, or all that is in flight goes into one batch. */
function runsAlone({ variant, concurrency, requestBatch }: Observation): boolean {
  if (variant.instanceCount === 1) return true;
  return concurrency !== null && requestBatch !== null && requestBatch >= 0.9 * concurrency;
}
