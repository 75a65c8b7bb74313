import type { InferStatistics, ModelStatistics, StatisticDuration } from "../../kserve/messages";
import type { FinishedBatch, RunnerRequest } from "../executor";

/** Reasons of nv_inference_request_failure. */
export const FAILURE_REASONS = ["OTHER", "BACKEND", "CANCELED", "REJECTED"] as const;
export type FailureReason = (typeof FAILURE_REASONS)[number];

/** Cumulative counters of /metrics. They outlive reloads, as Prometheus counters should. Durations in whole microseconds. */
export class ModelCounters {
  success = 0;
  inferences = 0;
  executions = 0;
  requestUs = 0;
  queueUs = 0;
  computeInputUs = 0;
  computeInferUs = 0;
  computeOutputUs = 0;
  readonly failures: Record<FailureReason, number> = { OTHER: 0, BACKEND: 0, CANCELED: 0, REJECTED: 0 };
}

interface Sum {
  count: number;
  ns: number;
}

interface BatchSums {
  readonly input: Sum;
  readonly infer: Sum;
  readonly output: Sum;
}

const newSum = (): Sum => ({ count: 0, ns: 0 });

/**
 * What ModelStatistics answers, from the load of a model on; every load starts a new one. All durations are model time and add up
 * per request: every request of a batch is charged the whole batch's compute time.
 */
export class StatisticsBook {
  private lastInferenceUnixMs = 0;
  private inferences = 0;
  private executions = 0;
  private readonly success = newSum();
  private readonly fail = newSum();
  private readonly queue = newSum();
  private readonly input = newSum();
  private readonly infer = newSum();
  private readonly output = newSum();
  private readonly batches = new Map<number, BatchSums>();

  constructor(private readonly counters: ModelCounters) {}

  /** Counts one execution with all its requests. */
  executed(batch: FinishedBatch<RunnerRequest>): void {
    const inputNs = toNs(batch.inputEndUs - batch.startUs);
    const inferNs = toNs(batch.inferEndUs - batch.inputEndUs);
    const outputNs = toNs(batch.endUs - batch.inferEndUs);
    for (const queuedUs of batch.queuedUs) {
      this.request(toNs(batch.startUs - queuedUs), inputNs, inferNs, outputNs);
    }
    this.inferences += batch.images;
    this.executions++;
    this.counters.inferences += batch.images;
    this.counters.executions++;
    let sums = this.batches.get(batch.images);
    if (sums === undefined) {
      sums = { input: newSum(), infer: newSum(), output: newSum() };
      this.batches.set(batch.images, sums);
    }
    add(sums.input, inputNs);
    add(sums.infer, inferNs);
    add(sums.output, outputNs);
    this.lastInferenceUnixMs = Date.now();
  }

  /** A request failed after `durationUs`. */
  failed(reason: FailureReason, durationUs: number): void {
    add(this.fail, toNs(durationUs));
    this.counters.failures[reason]++;
  }

  toMessage(name: string, version: string): ModelStatistics {
    const inference: InferStatistics = {
      success: { ...this.success },
      fail: { ...this.fail },
      queue: { ...this.queue },
      compute_input: { ...this.input },
      compute_infer: { ...this.infer },
      compute_output: { ...this.output },
      cache_hit: newSum(),
      cache_miss: newSum(),
    };
    return {
      name,
      version,
      last_inference: this.lastInferenceUnixMs,
      inference_count: this.inferences,
      execution_count: this.executions,
      inference_stats: inference,
      response_stats: {},
      batch_stats: [...this.batches]
        .sort(([a], [b]) => a - b)
        .map(([batchSize, sums]) => ({
          batch_size: batchSize,
          compute_input: { ...sums.input },
          compute_infer: { ...sums.infer },
          compute_output: { ...sums.output },
        })),
      memory_usage: [],
    };
  }

  private request(queueNs: number, inputNs: number, inferNs: number, outputNs: number): void {
    const requestNs = queueNs + inputNs + inferNs + outputNs;
    add(this.success, requestNs);
    add(this.queue, queueNs);
    add(this.input, inputNs);
    add(this.infer, inferNs);
    add(this.output, outputNs);
    const { counters } = this;
    counters.success++;
    counters.requestUs += Math.floor(requestNs / 1000);
    counters.queueUs += Math.floor(queueNs / 1000);
    counters.computeInputUs += Math.floor(inputNs / 1000);
    counters.computeInferUs += Math.floor(inferNs / 1000);
    counters.computeOutputUs += Math.floor(outputNs / 1000);
  }
}

function toNs(us: number): number {
  return Math.round(us * 1000);
}

function add(sum: StatisticDuration, ns: number): void {
  sum.count++;
  sum.ns += ns;
}
