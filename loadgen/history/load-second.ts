/** One second of a measurement as charts, tables and downloads show it. */
import type { SparseHistogram } from "../histogram";

/** What the servers under test say about themselves. */
export interface ServerReading {
  /** Executed batches per second, all replicas. */
  readonly batchesPerS: number;
  /** Mean images a batch; null when none was executed. */
  readonly batchSize: number | null;
  /** Mean time of a request in the queue, milliseconds; null when none was answered. */
  readonly queueMs: number | null;
  /** Mean busy share of the GPUs, 0..1; null: the servers report none. */
  readonly gpuBusy: number | null;
}

export interface LoadSecond {
  /** End of the second, model seconds since the load's start. */
  readonly atS: number;
  readonly unixMs: number;
  readonly phase: "warm-up" | "measuring" | "draining";
  /** Requests that ended in the second, per second of model time: answered, failed and shed. */
  readonly ratePerS: number;
  readonly answered: number;
  readonly failed: number;
  readonly shed: number;
  /** Response times over the last `windowS` seconds, milliseconds; null: nothing was answered. */
  readonly p50Ms: number | null;
  readonly p95Ms: number | null;
  readonly p99Ms: number | null;
  /** Real minus planned send in the second, milliseconds; null: nothing was sent. */
  readonly latenessP99Ms: number | null;
  /** At the end of the second, over all workers. */
  readonly inFlight: number;
  /** By plan; null in an open loop. */
  readonly users: number | null;
  /** By plan, requests per second; null in a closed loop. */
  readonly offeredPerS: number | null;
  readonly workers: number;
  /** Correctly answered requests since the load's start, by address; those of the warm-up included. */
  readonly perAddress: Readonly<Record<string, number>>;
  readonly server: ServerReading | null;
}

/** Most seconds that a chart is given, two hours: more than its pixels show, and few enough for an event of a live page. */
export const MOST_CHART_SECONDS = 7200;

/** Adds a second to those of a chart; when they are too many, every other one goes. The newest always stays. */
export function addChartSecond(seconds: LoadSecond[], second: LoadSecond): void {
  seconds.push(second);
  const newest = seconds.length - 1;
  if (newest >= MOST_CHART_SECONDS)
    seconds.splice(0, Infinity, ...seconds.filter((_, index) => (newest - index) % 2 === 0));
}

/** Those of recorded seconds that a chart is given. */
export function chartSeconds(recorded: readonly RecordedSecond[]): LoadSecond[] {
  const seconds: LoadSecond[] = [];
  for (const { second } of recorded) addChartSecond(seconds, second);
  return seconds;
}

/** A second and the response times that ended in it. */
export interface RecordedSecond {
  readonly second: LoadSecond;
  readonly response: SparseHistogram;
}
