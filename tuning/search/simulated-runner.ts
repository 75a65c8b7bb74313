/** Trials in virtual time: a TrialRunner whose server is the node simulation, so that the truth is known. */
import type { LatencySummary, LoadResult } from "../../loadgen/load-spec";
import type { Variant } from "../../model-repo/variant";
import { latencyBin, latencyBinFloorUs, percentileMs } from "../../serving-model/latency-bins";
import { Random } from "../../serving-model/random";
import { simulate, type SimulatedServer } from "../../serving-model/simulate";
import type { SimulationResult } from "../../serving-model/window-stats";
import { inFlightCap } from "../live-runner";
import { withOverhead } from "./load-axis";
import { plannedSendsUs } from "./replay";
import type { ServerWindow, TrialResult, TrialRunner, TrialSpec } from "../trial";

export interface SimulatedRunnerOptions {
  /**
   * The server that serves a variant. A fresh one per trial, so that its variation starts anew.
   * @param startedS when the trial starts, model seconds since the first one did: for servers that change over time
   */
  readonly serverFor: (variant: Variant, trialSeed: number, startedS: number) => SimulatedServer;
  /** Time between two trials, model seconds. Default 0. */
  readonly gapS?: number;
  /** More of what the server says about a window, from its start and end in model seconds. Default: nothing. */
  readonly alsoReports?: (fromS: number, toS: number) => Partial<ServerWindow>;
  /** Constant time outside the node added to every response, milliseconds. Default 0. */
  readonly overheadMs?: number;
  /** Relative standard deviation of the noise on every server metric. Default 0. */
  readonly metricNoise?: number;
  /** Which server metrics exist. Default: all that the node model knows. */
  readonly metrics?: "all" | "no-gpu" | "none";
  /** Length of the result's intervals, seconds. Default 1, as the load generator's. */
  readonly intervalS?: number;
  /** Seed of what happens in the server: its variation and the noise of its metrics. Arrivals follow from the trial. Default 0. */
  readonly worldSeed?: number;
}

export class SimulatedRunner implements TrialRunner {
  /** Model seconds of load so far, warm-up included. */
  loadedS = 0;
  trials = 0;
  /** Model seconds since the first trial started. */
  private nowS = 0;

  constructor(private readonly options: SimulatedRunnerOptions) {}

  async run(spec: TrialSpec): Promise<TrialResult> {
    return this.runNow(spec);
  }

  /** The same without a promise, for scoring many sweeps. */
  runNow(spec: TrialSpec): TrialResult {
    const { overheadMs = 0, intervalS = 1, worldSeed = 0 } = this.options;
    const startedS = this.nowS;
    const lengthS = spec.warmupS + spec.measureS;
    this.loadedS += lengthS;
    this.nowS += lengthS + (this.options.gapS ?? 0);
    this.trials++;
    const seed = Math.imul(spec.seed ^ Math.imul(worldSeed + 1, 0x9e3779b1), 0x85ebca6b) ^ 0x5bd1e995;
    // The load generator's own schedule, as one worker has it.
    const timesUs = spec.shape.kind === "users" ? null : plannedSendsUs(spec, 1);
    const run = simulate(this.options.serverFor(spec.variant, seed, startedS), {
      shape: timesUs === null ? withOverhead(spec.shape, overheadMs) : { kind: "listed", timesUs },
      seed,
      warmupS: spec.warmupS,
      measureS: spec.measureS,
      sloBoundMs: Math.max(1e-3, spec.slo.boundMs - overheadMs),
      intervalS,
      maxInFlight: inFlightCap(spec),
    });
    return {
      load: loadResultOf(spec, run, overheadMs),
      server: {
        ...this.windowOf(run, new Random(seed ^ 0x2545f491)),
        ...this.options.alsoReports?.(startedS + spec.warmupS, startedS + lengthS),
      },
    };
  }

  private windowOf(run: SimulationResult, random: Random): ServerWindow {
    const { metricNoise = 0, metrics = "all" } = this.options;
    const noisy = (value: number): number | null =>
      Number.isFinite(value) ? value * Math.max(0, 1 + metricNoise * random.nextNormal()) : null;
    const known = metrics !== "none" && run.executions > 0;
    const busy = known && metrics === "all" ? noisy(run.gpuBusy) : null;
    return {
      meanBatch: known ? noisy(run.meanBatch) : null,
      queueMs: known ? noisy(run.queueMs) : null,
      computeInputMs: known ? noisy(run.hostMs) : null,
      computeInferMs: known ? noisy(run.gpuWaitMs + run.gpuMs) : null,
      computeOutputMs: known ? 0 : null,
      gpuBusy: busy === null ? null : Math.min(1, busy),
      gpuMemoryUsedBytes: null,
      gpuPowerW: null,
      batchSizes: known
        ? Object.fromEntries([...run.batchSizes].flatMap((count, size) => (count > 0 ? [[size, count]] : [])))
        : null,
    };
  }
}

function loadResultOf(spec: TrialSpec, run: SimulationResult, overheadMs: number): LoadResult {
  const { intervals } = run;
  const answeredOf = (i: number): number => intervals.planned[i]! - intervals.shed[i]!;
  const shed = intervals.shed.reduce((sum, count) => sum + count, 0);
  const response = shifted(run.responseCounts, overheadMs * 1000);
  const summary: LatencySummary = {
    count: run.planned - shed,
    meanMs: run.meanResponseMs + overheadMs,
    p50Ms: percentileMs(response, 0.5),
    p90Ms: percentileMs(response, 0.9),
    p95Ms: percentileMs(response, 0.95),
    p99Ms: percentileMs(response, 0.99),
    maxMs: run.maxResponseMs + overheadMs,
  };
  const total = { planned: run.planned, ok: run.planned - run.late, late: run.late, failed: 0, shed };
  return {
    id: `simulated-${spec.variant.name}-${spec.seed}`,
    valid: true,
    invalidReasons: [],
    intervalS: run.intervalS,
    intervals: Array.from(intervals.planned, (planned, index) => ({
      index,
      planned,
      ok: intervals.ok[index]!,
      late: intervals.late[index]!,
      failed: 0,
      shed: intervals.shed[index]!,
      responseSumMs: intervals.responseSumMs[index]! + overheadMs * answeredOf(index),
      answered: answeredOf(index),
      inFlight: intervals.inFlight[index]!,
    })),
    total,
    response: summary,
    service: summary,
    responseHistogram: Array.from(response.entries())
      .filter(([, count]) => count > 0)
      .map(([bin, count]) => [latencyBinFloorUs(bin), count] as const),
    health: { latenessP99Ms: 0, loopDelayP99Ms: 0, cpuShare: 0, wireMBPerS: 0, achievedShare: 1 },
    errors: {},
    perAddress: { simulated: run.planned - shed },
    workers: 1,
    measuredFromUnixMs: 0,
    measuredToUnixMs: spec.measureS * 1000,
  };
}

function shifted(counts: Uint32Array, byUs: number): Uint32Array {
  if (byUs === 0) return counts;
  const moved = new Uint32Array(counts.length);
  counts.forEach((count, bin) => {
    if (count > 0)
      moved[latencyBin((latencyBinFloorUs(bin) + latencyBinFloorUs(bin + 1)) / 2 + byUs)]! += count;
  });
  return moved;
}
