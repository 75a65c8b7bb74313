import type { CompleteModelConfig } from "../../model-repo/config-types";
import type { FinishedBatch, ModelOutput, ModelRunner, RunnerListener, RunnerRequest } from "../executor";
import { type IoRules, ioRulesOf } from "../infer/tensors";
import type { StatisticsBook } from "./statistics";

/** A request in the server's hands. */
export interface PendingRequest extends RunnerRequest {
  finished(output: ModelOutput): void;
  /** The queue policy refused it. */
  rejected(reason: "queue-full" | "timeout"): void;
  /** Its execution failed. */
  failed(reason: string): void;
}

/** One version of a model that takes requests, from load to unload. */
export class ServedModel implements RunnerListener<PendingRequest> {
  readonly io: IoRules;
  private runner: ModelRunner<PendingRequest> | null = null;

  constructor(
    readonly name: string,
    readonly version: string,
    readonly config: CompleteModelConfig,
    /** Class names by output; outputs without a label file are absent. */
    readonly labels: ReadonlyMap<string, readonly string[]>,
    readonly statistics: StatisticsBook,
    /** Model time now, microseconds. */
    private readonly nowUs: () => number,
  ) {
    this.io = ioRulesOf(config);
  }

  start(runner: ModelRunner<PendingRequest>): void {
    this.runner = runner;
  }

  /** Requests that wait for execution. */
  get waiting(): number {
    return this.runner?.waiting ?? 0;
  }

  /** `input` is only valid during the call. */
  submit(request: PendingRequest, input: Buffer): void {
    this.runner?.submit(request, input);
  }

  /** The client gave up. What waits is taken out and counted as CANCELED; what is executing runs on and counts as success. */
  cancel(request: PendingRequest, submittedUs: number): void {
    if (this.runner?.cancel(request) === true) this.statistics.failed("CANCELED", this.nowUs() - submittedUs);
  }

  /** Resolves when everything that was submitted is answered. */
  async close(): Promise<void> {
    await this.runner?.close();
  }

  finished(batch: FinishedBatch<PendingRequest>): void {
    this.statistics.executed(batch);
    batch.requests.forEach((request, index) => request.finished(batch.outputs[index]!));
  }

  rejected(request: PendingRequest, reason: "queue-full" | "timeout", queuedForUs: number): void {
    // Triton counts a full queue nowhere (observed on 2.51).
    if (reason === "timeout") this.statistics.failed("REJECTED", queuedForUs);
    request.rejected(reason);
  }

  failed(request: PendingRequest, reason: string, afterUs: number): void {
    this.statistics.failed("BACKEND", afterUs);
    request.failed(reason);
  }
}
