import type { CompleteModelConfig } from "../../model-repo/config-types";
import { type Batch, DynamicBatcher } from "../../serving-model/batcher";
import type { ModelRunner, RunnerListener, RunnerRequest } from "../executor";
import type { ModelClock } from "../model-clock";
import { queuePolicyOf } from "../queue-policy";
import type { Execution, OnnxInstance } from "./instance";
import { ScoresOutput } from "./output";

/** A request in the queue or in execution, with its tensor. */
interface Entry<Request> {
  readonly request: Request;
  readonly input: ArrayBuffer;
  readonly queuedUs: number;
}

/** One ONNX model: Triton's batcher in front of threads that infer. */
export class OnnxRunner<Request extends RunnerRequest> implements ModelRunner<Request> {
  private readonly batcher: DynamicBatcher<Entry<Request>>;
  /** Of what waits: for cancelling. */
  private readonly queued = new Map<Request, Entry<Request>>();
  private readonly idle: OnnxInstance[];
  private timer: NodeJS.Timeout | null = null;
  private inside = 0;
  private onEmpty: (() => void) | null = null;

  constructor(
    config: CompleteModelConfig,
    private readonly classes: number,
    private readonly instances: readonly OnnxInstance[],
    private readonly clock: ModelClock,
    private readonly listener: RunnerListener<Request>,
  ) {
    const batching = config.dynamic_batching;
    this.batcher = new DynamicBatcher({
      maxBatchSize: config.max_batch_size,
      preferredBatchSizes: batching?.preferred_batch_size ?? [],
      queueDelayUs: batching?.max_queue_delay_microseconds ?? 0,
      dynamicBatching: batching !== undefined,
      queuePolicy: queuePolicyOf(batching),
    });
    this.idle = [...instances];
  }

  get waiting(): number {
    return this.batcher.queuedRequests;
  }

  submit(request: Request, input: Buffer): void {
    const copy = new ArrayBuffer(input.length);
    new Uint8Array(copy).set(input);
    const queuedUs = this.clock.nowUs();
    const entry = { request, input: copy, queuedUs };
    this.inside++;
    this.queued.set(request, entry);
    if (this.batcher.enqueue(entry, request.images, queuedUs, request.timeoutUs)) this.dispatch();
    else this.reject(entry, "queue-full");
  }

  cancel(request: Request): boolean {
    const entry = this.queued.get(request);
    if (entry === undefined || !this.batcher.cancel(entry)) return false;
    this.forget([entry]);
    this.dispatch();
    return true;
  }

  async close(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.onEmpty = resolve;
      this.forget([]);
    });
    if (this.timer !== null) clearTimeout(this.timer);
    await Promise.all(this.instances.map((instance) => instance.stop()));
  }

  /** Gives idle instances what they take now, and says when to look again. */
  private dispatch(): void {
    while (this.idle.length > 0) {
      const batch = this.batcher.take(this.clock.nowUs());
      for (const entry of this.batcher.drainExpired()) this.reject(entry, "timeout");
      if (batch === null) break;
      void this.execute(this.idle.shift()!, batch);
    }
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
    const wakeUs = this.idle.length === 0 ? Infinity : this.batcher.nextWakeUs();
    if (wakeUs === Infinity) return;
    // Timers may fire a little early: then it is looked again a millisecond later.
    const delayMs = Math.max(1, Math.ceil(this.clock.wallMsUntil(wakeUs)));
    this.timer = setTimeout(() => this.dispatch(), delayMs);
  }

  private async execute(instance: OnnxInstance, batch: Batch<Entry<Request>>): Promise<void> {
    for (const { request } of batch.items) this.queued.delete(request);
    const startUs = this.clock.nowUs();
    const requests = batch.items.map(({ input }) => input);
    const execution = await instance.run({ requests, images: batch.images });
    this.finish(batch, startUs, execution);
    this.idle.push(instance);
    this.forget(batch.items);
    this.dispatch();
  }

  private finish(batch: Batch<Entry<Request>>, startUs: number, execution: Execution): void {
    const endUs = this.clock.nowUs();
    if (execution.kind === "failed") {
      for (const { request, queuedUs } of batch.items)
        this.listener.failed(request, `onnx runtime error: ${execution.reason}`, endUs - queuedUs);
      return;
    }
    // What the thread says is wall time of the same process.
    const ago = (wallMs: number): number => (performance.timeOrigin + performance.now() - wallMs) * 1000;
    const inferEndUs = Math.max(startUs, endUs - Math.max(0, ago(execution.inferEndMs)));
    const inputEndUs = Math.min(inferEndUs, Math.max(startUs, endUs - ago(execution.inputEndMs)));
    let row = 0;
    const outputs = batch.items.map(({ request }) => {
      const from = row;
      row += request.images * this.classes;
      return new ScoresOutput(execution.values.subarray(from, row), this.classes);
    });
    this.listener.finished({
      requests: batch.items.map(({ request }) => request),
      outputs,
      queuedUs: batch.enqueuedUs,
      images: batch.images,
      startUs,
      inputEndUs,
      inferEndUs,
      endUs,
    });
  }

  private reject(entry: Entry<Request>, reason: "queue-full" | "timeout"): void {
    this.listener.rejected(entry.request, reason, this.clock.nowUs() - entry.queuedUs);
    this.forget([entry]);
  }

  private forget(entries: readonly Entry<Request>[]): void {
    for (const { request } of entries) this.queued.delete(request);
    this.inside -= entries.length;
    if (this.inside === 0) this.onEmpty?.();
  }
}
