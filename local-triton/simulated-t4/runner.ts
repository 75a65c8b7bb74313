import type { CompleteModelConfig } from "../../model-repo/config-types";
import {
  type Execution,
  NodeModel,
  type NodeDevices,
  type NodeListener,
} from "../../serving-model/node-model";
import type { FinishedBatch, ModelOutput, ModelRunner, RunnerListener, RunnerRequest } from "../executor";
import { queuePolicyOf } from "../queue-policy";
import { classify, SimulatedOutput } from "./answer";
import type { SimulatedModel } from "./model-law";

/** What a runner needs of the simulated T4 that it runs on. */
export interface RunnerHost {
  /** Brings all models to the present and returns it, model microseconds. */
  advanceToNow(): number;
  /** Something was queued or taken out: the next event may have changed. */
  changed(): void;
  /** An execution's answers leave; planned for `endUs`. */
  delivered(endUs: number): void;
}

/** A request on its way through the node, with the answer that it will get. */
interface Entry<Request> {
  readonly request: Request;
  readonly output: ModelOutput;
  readonly arrivedUs: number;
}

/** One model on the simulated T4. The answer is known when the request arrives; the node model says when it may leave. */
export class SimulatedRunner<Request extends RunnerRequest>
  implements ModelRunner<Request>, NodeListener<Entry<Request>>
{
  readonly node: NodeModel<Entry<Request>>;
  private readonly entries = new Map<Request, Entry<Request>>();
  private onEmpty: (() => void) | null = null;

  constructor(
    private readonly model: SimulatedModel,
    config: CompleteModelConfig,
    devices: NodeDevices,
    private readonly host: RunnerHost,
    private readonly listener: RunnerListener<Request>,
    private readonly onClosed: (runner: SimulatedRunner<Request>) => void,
  ) {
    const batching = config.dynamic_batching;
    this.node = new NodeModel(
      {
        maxBatchSize: Math.max(1, config.max_batch_size),
        preferredBatchSizes: batching?.preferred_batch_size ?? [],
        queueDelayUs: batching?.max_queue_delay_microseconds ?? 0,
        dynamicBatching: batching !== undefined,
        queuePolicy: queuePolicyOf(batching),
        instanceCount: model.instanceCount,
        law: model.law,
        payloadBytes: model.imageBytes,
        devices,
      },
      this,
    );
  }

  get instanceCount(): number {
    return this.model.instanceCount;
  }

  get waiting(): number {
    return this.node.waiting;
  }

  submit(request: Request, input: Buffer): void {
    const { inputType, imageBytes, classes, precision, defect } = this.model;
    const answers = Array.from({ length: request.images }, (_unused, image) =>
      classify(
        input.subarray(image * imageBytes, (image + 1) * imageBytes),
        inputType,
        classes,
        precision,
        defect,
      ),
    );
    const nowUs = this.host.advanceToNow();
    const entry: Entry<Request> = {
      request,
      output: new SimulatedOutput(answers, classes),
      arrivedUs: nowUs,
    };
    this.entries.set(request, entry);
    this.node.arrive(entry, request.images, input.length, nowUs, request.timeoutUs);
    this.host.changed();
  }

  cancel(request: Request): boolean {
    const entry = this.entries.get(request);
    if (entry === undefined) return false;
    this.host.advanceToNow();
    if (!this.node.cancel(entry)) return false;
    this.forget([entry]);
    this.host.changed();
    return true;
  }

  close(): Promise<void> {
    return new Promise((resolve) => {
      this.onEmpty = () => {
        this.onClosed(this);
        resolve();
      };
      this.forget([]);
    });
  }

  onExecuted(execution: Execution<Entry<Request>>): void {
    const { items, enqueuedUs, images, startUs, hostEndUs, endUs } = execution;
    const batch: FinishedBatch<Request> = {
      requests: items.map((entry) => entry.request),
      outputs: items.map((entry) => entry.output),
      queuedUs: enqueuedUs,
      images,
      startUs,
      // The host phase is the copying of inputs into the backend; waiting for the GPU counts as inference, as for a real backend.
      inputEndUs: hostEndUs,
      inferEndUs: endUs,
      endUs,
    };
    this.host.delivered(endUs);
    this.listener.finished(batch);
    this.forget(items);
  }

  onRejected(entry: Entry<Request>, reason: "queue-full" | "timeout", atUs: number): void {
    this.listener.rejected(entry.request, reason, atUs - entry.arrivedUs);
    this.forget([entry]);
  }

  private forget(entries: readonly Entry<Request>[]): void {
    for (const { request } of entries) this.entries.delete(request);
    if (this.entries.size === 0) this.onEmpty?.();
  }
}
