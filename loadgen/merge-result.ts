/** Pure: from merged tallies to a LoadResult, with the rules for when its numbers must not be used. */
import { Histogram } from "./histogram";
import type {
  EarlyStop,
  GeneratorHealth,
  LatencySummary,
  LoadChange,
  LoadResult,
  LoadSpec,
} from "./load-spec";
import type { WindowHealth } from "./protocol";
import { CLIENT_ERROR } from "./request-sender";
import { INTERVAL_S } from "./slo-counter";
import type { Tally } from "./tally";

/** Least share of the planned requests that must be sent within the window. */
export const LEAST_ACHIEVED_SHARE = 0.995;
/** Most that the send lateness's p99 may be, as a share of the SLO bound. */
export const MOST_LATENESS_SHARE = 0.05;
/** Most that the event-loop delay's p99 may be, as a share of the SLO bound. */
export const MOST_LOOP_DELAY_SHARE = 0.1;

/** How much less than the busiest replica another one may answer. */
const MOST_SPLIT_SHORTFALL = 0.1;
/** Answers of the busiest replica from which a split is judged: of few requests, one more or less is chance. */
const LEAST_FOR_SPLIT = 50;

export interface WorkerHealth extends WindowHealth {
  /** The worker's name. */
  readonly worker: string;
}

export interface MergedRun {
  readonly spec: LoadSpec;
  /** Tallies of all workers, merged. */
  readonly measured: Tally;
  /** Health of each worker that reached the end. */
  readonly healths: readonly WorkerHealth[];
  /** Why the run is invalid whatever its numbers are: lost workers, lost messages. */
  readonly faults: readonly string[];
  readonly workers: number;
  /** Null: it ran to its end. */
  readonly stop: EarlyStop | null;
  readonly changes: readonly LoadChange[];
  /** Unix milliseconds. */
  readonly measuredFromUnixMs: number;
  readonly measuredToUnixMs: number;
}

export function toLoadResult(run: MergedRun): LoadResult {
  const { spec, measured } = run;
  const health = generatorHealth(run);
  const faults = [...interruption(run), ...run.faults];
  const invalidReasons = [...faults, ...clientProblems({ ...run, faults }, health)];
  return {
    id: spec.id,
    valid: invalidReasons.length === 0,
    invalidReasons,
    intervalS: INTERVAL_S,
    intervals: measured.slo.intervals(Math.ceil(measuredSeconds(spec, run.stop) / INTERVAL_S - 1e-9)),
    total: measured.slo.total(),
    response: summary(measured.response),
    service: summary(measured.service),
    responseHistogram: measured.response.pairs(),
    health,
    errors: measured.errors(),
    errorMessages: measured.errorMessages(),
    perAddress: {
      ...Object.fromEntries(spec.addresses.map((address) => [address, 0])),
      ...measured.perAddress(),
    },
    workers: run.workers,
    stop: run.stop,
    changes: run.changes,
    warnings: splitWarnings(measured.perAddress(), spec.addresses),
    measuredFromUnixMs: run.measuredFromUnixMs,
    measuredToUnixMs: run.measuredToUnixMs,
  };
}

/** Length of the measured window, model seconds. */
export function measuredSeconds({ warmupS, measureS }: LoadSpec, stop: EarlyStop | null): number {
  return stop === null ? measureS : Math.max(0, Math.min(measureS, stop.atS - warmupS));
}

/** What an interruption cut off, in a sentence. */
function interruption({ spec, stop }: MergedRun): string[] {
  if (stop?.interrupted !== true) return [];
  const measuredS = measuredSeconds(spec, stop);
  return [`ended early, after ${measuredS.toFixed(1)} s of ${spec.measureS.toFixed(1)} s: ${stop.reason}`];
}

/** Replicas that answered much less than their even share of the requests, which are sent to all alike. */
function splitWarnings(perAddress: Readonly<Record<string, number>>, addresses: readonly string[]): string[] {
  const counts = addresses.map((address) => perAddress[address] ?? 0);
  const most = Math.max(...counts);
  return addresses.flatMap((address, index) => {
    const count = counts[index]!;
    if (most < LEAST_FOR_SPLIT || count >= (1 - MOST_SPLIT_SHORTFALL) * most) return [];
    return [
      `uneven replicas: ${address} answered ${count} requests, another one ${most}, though all were sent alike`,
    ];
  });
}

function generatorHealth({ spec, measured, healths }: MergedRun): GeneratorHealth {
  const { planned } = measured.slo.total();
  const worst = (read: (health: WindowHealth) => number): number => Math.max(0, ...healths.map(read));
  return {
    latenessP99Ms: measured.lateness.percentileUs(0.99) / 1000,
    loopDelayP99Ms: worst(({ loopDelayP99Ms }) => loopDelayP99Ms) / spec.timeDilation,
    cpuShare: worst(({ cpuShare }) => cpuShare),
    busyWaitMs: worst(({ busyWaitMs }) => busyWaitMs),
    busyWaitShare: worst(({ busyWaitShare }) => busyWaitShare),
    wireMBPerS: healths.reduce((sum, { wireMbPerS }) => sum + wireMbPerS, 0),
    achievedShare: measured.onTimeSends / planned,
  };
}

/** Reasons that lie in the load generator, in sentences. */
function clientProblems({ spec, measured, faults, healths }: MergedRun, health: GeneratorHealth): string[] {
  const { planned } = measured.slo.total();
  if (planned === 0) return faults.length > 0 ? [] : ["no request was planned in the measured window"];
  const problems: string[] = [];
  const { sloBoundMs } = spec;
  const { achievedShare, latenessP99Ms, loopDelayP99Ms } = health;
  if (hasSchedule(spec) && achievedShare < LEAST_ACHIEVED_SHARE)
    problems.push(
      `client-bound: only ${percent(achievedShare)} of the planned requests were sent in the window ` +
        `(at least ${percent(LEAST_ACHIEVED_SHARE)} must be)`,
    );
  if (hasSchedule(spec) && latenessP99Ms > MOST_LATENESS_SHARE * sloBoundMs)
    problems.push(tooLong("send lateness", latenessP99Ms, MOST_LATENESS_SHARE * sloBoundMs));
  if (hasSchedule(spec) && loopDelayP99Ms > MOST_LOOP_DELAY_SHARE * sloBoundMs)
    problems.push(tooLong("event-loop delay", loopDelayP99Ms, MOST_LOOP_DELAY_SHARE * sloBoundMs));
  if (hasSchedule(spec)) problems.push(...slowWorkers(healths, MOST_LATENESS_SHARE * sloBoundMs));
  const clientErrors = measured.errors()[CLIENT_ERROR] ?? 0;
  if (clientErrors > 0)
    problems.push(
      `client-bound: ${clientErrors} requests failed in the client: ${measured.errorMessages()[CLIENT_ERROR]}`,
    );
  return problems;
}

/**
 * Workers that were late as a rule. Among many the merged percentile does not show one; by its own median it shows whatever it sent, while
 * the p99 of the few requests that a thousand workers send each would be chance.
 */
function slowWorkers(healths: readonly WorkerHealth[], mostMs: number): string[] {
  const slow = healths.filter(({ latenessP50Ms }) => latenessP50Ms > mostMs);
  if (slow.length === 0) return [];
  const worst = slow.reduce((one, other) => (other.latenessP50Ms > one.latenessP50Ms ? other : one));
  const others = slow.length === 1 ? "" : ` (and ${slow.length - 1} more)`;
  return [
    `client-bound: load worker ${worst.worker}${others} was slow: half of its requests were sent more than ` +
      `${worst.latenessP50Ms.toFixed(1)} ms late (at most ${mostMs.toFixed(1)} ms)`,
  ];
}

/**
 * A closed loop without think time keeps a number of requests in flight and has no times to keep: answers that come in batches make
 * its sends come in bursts, and a late one only lengthens the cycle.
 */
function hasSchedule({ shape }: LoadSpec): boolean {
  return shape.kind !== "users" || shape.thinkMaxS > 0;
}

function tooLong(what: string, p99Ms: number, mostMs: number): string {
  return `client-bound: ${what} p99 is ${p99Ms.toFixed(1)} ms (at most ${mostMs.toFixed(1)} ms)`;
}

function percent(share: number): string {
  return `${(100 * share).toFixed(1)} %`;
}

function summary(histogram: Histogram): LatencySummary {
  const ms = (p: number): number => histogram.percentileUs(p) / 1000;
  return {
    count: histogram.count,
    meanMs: histogram.meanUs / 1000,
    p50Ms: ms(0.5),
    p90Ms: ms(0.9),
    p95Ms: ms(0.95),
    p99Ms: ms(0.99),
    maxMs: histogram.maxUs / 1000,
  };
}
