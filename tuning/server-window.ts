/**
 * What the server says about itself over a measured window. Its metrics are polled while the load runs; counters are
 * interpolated at the window's two ends, so the window need not fall on a poll, and gauges are averaged inside it.
 * Durations in Triton's counters add up per request (every request of a batch is charged the batch's compute time).
 */
import { tritonMetrics as triton } from "../kserve/triton-metrics";
import { parsePrometheusText, sumOf, type MetricSample } from "./prometheus-text";
import type { ServerWindow } from "./trial";

/** Reads one replica's /metrics as text. Rejects when it cannot. */
export type MetricsReader = () => Promise<string>;

/** One poll of all replicas: sums of counters, means of gauges. */
export interface MetricsPoll {
  readonly unixMs: number;
  readonly counters: Readonly<Record<CounterName, number | null>>;
  readonly gauges: Readonly<Record<GaugeName, number | null>>;
}

const COUNTERS = [
  triton.requestSuccess,
  triton.inferenceCount,
  triton.executionCount,
  triton.queueDurationUs,
  triton.computeInputDurationUs,
  triton.computeInferDurationUs,
  triton.computeOutputDurationUs,
] as const;
type CounterName = (typeof COUNTERS)[number];

const GAUGES = [
  triton.gpuUtilization,
  triton.gpuMemoryUsedBytes,
  triton.gpuPowerW,
  triton.gpuMemoryTotalBytes,
  triton.gpuPowerLimitW,
] as const;
type GaugeName = (typeof GAUGES)[number];

/** Sums the counters of `modelName` over the replicas' expositions and averages the GPU gauges over all GPUs. */
export function pollOf(
  unixMs: number,
  modelName: string,
  expositions: readonly (readonly MetricSample[])[],
): MetricsPoll {
  const counters = {} as Record<CounterName, number | null>;
  for (const name of COUNTERS) {
    let sum: number | null = null;
    for (const samples of expositions) {
      const value = sumOf(samples, name, { model: modelName });
      if (value !== null) sum = (sum ?? 0) + value;
    }
    counters[name] = sum;
  }
  const gauges = {} as Record<GaugeName, number | null>;
  for (const name of GAUGES) {
    const values = expositions.flatMap((samples) =>
      samples.filter((sample) => sample.name === name).map((sample) => sample.value),
    );
    gauges[name] = values.length === 0 ? null : values.reduce((a, b) => a + b, 0) / values.length;
  }
  return { unixMs, counters, gauges };
}

/**
 * Reduces polls to the window [fromUnixMs, toUnixMs].
 * @param gaugeLagMs how far the GPU gauges look back (Triton polls them every 2000 ms): polls within that of the window's start are left out. A window shorter than that has no gauges.
 */
export function windowOf(
  polls: readonly MetricsPoll[],
  fromUnixMs: number,
  toUnixMs: number,
  gaugeLagMs: number,
  batchSizes: Readonly<Record<number, number>> | null,
): ServerWindow {
  const delta = (name: CounterName): number | null => {
    const start = counterAt(polls, name, fromUnixMs);
    const end = counterAt(polls, name, toUnixMs);
    return start === null || end === null ? null : end - start;
  };
  const requests = delta(triton.requestSuccess);
  const perRequestMs = (name: CounterName): number | null => {
    const sumUs = delta(name);
    return sumUs === null || requests === null || requests <= 0 ? null : sumUs / requests / 1000;
  };
  const inferences = delta(triton.inferenceCount);
  const executions = delta(triton.executionCount);
  const gaugeMean = (name: GaugeName): number | null => {
    const inside = polls.filter(
      (poll) => poll.unixMs >= fromUnixMs && poll.unixMs <= toUnixMs && poll.gauges[name] !== null,
    );
    const used = inside.filter((poll) => poll.unixMs >= fromUnixMs + gaugeLagMs);
    return used.length === 0 ? null : used.reduce((sum, poll) => sum + poll.gauges[name]!, 0) / used.length;
  };
  return {
    meanBatch: inferences === null || executions === null || executions <= 0 ? null : inferences / executions,
    queueMs: perRequestMs(triton.queueDurationUs),
    computeInputMs: perRequestMs(triton.computeInputDurationUs),
    computeInferMs: perRequestMs(triton.computeInferDurationUs),
    computeOutputMs: perRequestMs(triton.computeOutputDurationUs),
    gpuBusy: gaugeMean(triton.gpuUtilization),
    gpuMemoryUsedBytes: gaugeMean(triton.gpuMemoryUsedBytes),
    gpuPowerW: gaugeMean(triton.gpuPowerW),
    gpuMemoryTotalBytes: gaugeMean(triton.gpuMemoryTotalBytes),
    gpuPowerLimitW: gaugeMean(triton.gpuPowerLimitW),
    batchSizes,
  };
}

/** Linear interpolation of a counter; null outside the polled range or when the server does not report it. */
function counterAt(polls: readonly MetricsPoll[], name: CounterName, unixMs: number): number | null {
  let before: MetricsPoll | null = null;
  for (const poll of polls) {
    if (poll.counters[name] === null) continue;
    if (poll.unixMs <= unixMs) {
      before = poll;
      continue;
    }
    if (before === null) return null;
    const share = (unixMs - before.unixMs) / (poll.unixMs - before.unixMs);
    return before.counters[name]! + share * (poll.counters[name] - before.counters[name]!);
  }
  return before !== null && before.unixMs === unixMs ? before.counters[name] : null;
}

/** Polls all replicas in the background until stopped. A replica that does not answer a poll makes that poll be left out. */
export class MetricsPoller {
  private readonly polls: MetricsPoll[] = [];
  private timer: NodeJS.Timeout | undefined;
  private busy: Promise<void> = Promise.resolve();

  constructor(
    private readonly readers: readonly MetricsReader[],
    private readonly modelName: string,
    private readonly everyMs: number,
  ) {}

  async start(): Promise<void> {
    await this.poll();
    this.timer = setInterval(() => {
      this.busy = this.busy.then(() => this.poll());
    }, this.everyMs);
  }

  /** One last poll, then all of them in order of time. */
  async stop(): Promise<readonly MetricsPoll[]> {
    clearInterval(this.timer);
    await this.busy;
    await this.poll();
    return this.polls;
  }

  private async poll(): Promise<void> {
    try {
      const before = Date.now();
      const texts = await Promise.all(this.readers.map((read) => read()));
      this.polls.push(pollOf((before + Date.now()) / 2, this.modelName, texts.map(parsePrometheusText)));
    } catch {
      // A missed poll only widens the interpolation; a server that is gone shows as failed requests in the trial itself.
    }
  }
}
