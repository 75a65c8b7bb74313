/** The probe: short closed-loop trials at fixed numbers in flight, from which the service law is identified. */
import type { Variant } from "../../model-repo/variant";
import type { Slo } from "../trial";
import { identify } from "../identify/identify";
import type { Observation } from "../identify/observation";

/** One probe: so many requests in flight, without think time. */
export interface ProbeStep {
  readonly concurrency: number;
  readonly warmupS: number;
  readonly measureS: number;
}

/** Requests kept waiting beside full batches, so that the way into the node is never idle. */
const extraInFlight = 32;
/** Saturation need not be deeper than this many SLO bounds of response time: such a load fails anyway. */
const deepestBounds = 2;

/**
 * The next probe after those seen, or null when the probe is complete. A quarter of a batch in flight; a full batch, alone, where
 * several instances share the GPU; then as many as keep everything busy.
 */
export function nextProbe(
  variant: Variant,
  slo: Slo,
  seen: readonly Observation[],
  done: number,
): ProbeStep | null {
  const { maxBatchSize, instanceCount } = variant;
  const steps = [Math.max(1, Math.round(maxBatchSize / 4))];
  if (instanceCount > 1 && maxBatchSize > 1) steps.push(maxBatchSize);
  if (done < steps.length) return sized(steps[done]!, seen);
  if (done > steps.length) return null;
  const full = 2 * instanceCount * maxBatchSize + extraInFlight;
  const fitted = identify(seen);
  if (fitted === null) return sized(full, seen);
  const { hostMsPerImage, gpuMsPerBatch, gpuMsPerImage } = fitted.law;
  // In flight when the response time is `deepestBounds` bounds, if batches grow with what is in flight.
  const perImageMs = Math.max(gpuMsPerImage + hostMsPerImage / instanceCount, 1e-3);
  const deep = Math.floor((deepestBounds * slo.boundMs - gpuMsPerBatch) / perImageMs);
  const least = instanceCount * Math.max(2, steps[0]! + 1);
  return sized(Math.max(least, Math.min(full, deep)), seen);
}

/** Long enough for some twenty executions at the response time to be expected. */
function sized(concurrency: number, seen: readonly Observation[]): ProbeStep {
  const last = seen.at(-1);
  const expectedS =
    last === undefined
      ? 0.06
      : (last.responseMs / 1000) * Math.max(1, concurrency / (last.concurrency ?? concurrency));
  return { concurrency, warmupS: clamp(5 * expectedS, 0.3, 1.5), measureS: clamp(15 * expectedS, 1, 4) };
}

function clamp(value: number, low: number, high: number): number {
  return Math.round(Math.min(high, Math.max(low, value)) * 10) / 10;
}
