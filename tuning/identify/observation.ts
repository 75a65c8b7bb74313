/** What a trial says about the service law, in the terms of the node model. */
import type { Variant } from "../../model-repo/variant";
import type { TrialResult, TrialSpec } from "../trial";

export interface Observation {
  readonly variant: Variant;
  /** Measured seconds: the weight of what was averaged. */
  readonly measureS: number;
  /** Requests answered a second. */
  readonly throughputPerS: number;
  /** Mean response time, milliseconds. */
  readonly responseMs: number;
  /** Requests kept in flight; null unless users without think time. */
  readonly concurrency: number | null;
  /** Mean images an execution, by executions. */
  readonly meanBatch: number | null;
  /** Mean images of the execution a request is in: larger when sizes differ, because large batches hold more requests. */
  readonly requestBatch: number | null;
  readonly queueMs: number | null;
  readonly inputMs: number | null;
  readonly inferMs: number | null;
  readonly outputMs: number | null;
  readonly gpuBusy: number | null;
}

/** GPU gauges of shorter windows are mostly about what was before: Triton refreshes them every 2 s. */
export const gaugeTrustS = 4;

/** A fixed number in flight that comes this near to what may be offered was held back by that, and not always in flight. */
const heldBack = 0.93;

/**
 * Null when nothing was answered.
 * @param mostPerS largest rate that may be offered; null: no limit
 */
export function observationOf(
  spec: TrialSpec,
  { load, server }: TrialResult,
  mostPerS: number | null = null,
): Observation | null {
  const answered = load.response.count;
  if (answered === 0) return null;
  const { shape } = spec;
  // In flight at both ends differs: what was answered in the window is what was sent plus what was inside before.
  const first = load.intervals[0];
  const last = load.intervals.at(-1);
  const grown = first && last && load.intervals.length > 2 ? last.inFlight - first.inFlight : 0;
  const windowS = grown === 0 ? spec.measureS : spec.measureS - load.intervalS;
  const sent = load.total.planned - load.total.shed - (grown === 0 ? 0 : first!.planned - first!.shed);
  const countedPerS = (sent - grown) / windowS;
  const closed =
    shape.kind === "users" && shape.thinkMaxS === 0 && countedPerS < heldBack * (mostPerS ?? Infinity);
  return {
    variant: spec.variant,
    measureS: spec.measureS,
    // Little's law is exact for a fixed number in flight, while counting answers is off by a batch at each end.
    throughputPerS: closed ? (shape.users * 1000) / load.response.meanMs : countedPerS,
    responseMs: load.response.meanMs,
    concurrency: closed ? shape.users : null,
    meanBatch: server.meanBatch,
    requestBatch: requestBatchOf(server.batchSizes) ?? server.meanBatch,
    queueMs: server.queueMs,
    inputMs: server.computeInputMs,
    inferMs: server.computeInferMs,
    outputMs: server.computeOutputMs,
    gpuBusy: server.gpuBusy,
  };
}

function requestBatchOf(sizes: Readonly<Record<number, number>> | null): number | null {
  if (sizes === null) return null;
  let images = 0;
  let squares = 0;
  for (const [size, count] of Object.entries(sizes)) {
    images += Number(size) * count;
    squares += Number(size) ** 2 * count;
  }
  return images > 0 ? squares / images : null;
}
