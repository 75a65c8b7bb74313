/**
 * The seam between the server (protocol, repository, statistics) and what executes models. The simulated T4 implements it;
 * a real runtime does it by the same interface.
 */
import type { CompleteModelConfig } from "../model-repo/config-types";

/** One class of an answer. */
export interface ScoredClass {
  readonly classIndex: number;
  readonly score: number;
}

/** The output tensor of one request. */
export interface ModelOutput {
  /** The `count` most probable classes of one image of the request, best first. */
  top(image: number, count: number): readonly ScoredClass[];
  /** The whole tensor, row-major, little endian. */
  raw(): Buffer;
}

/** What a runner has to know of a request. */
export interface RunnerRequest {
  /** Images in it: its batch size. */
  readonly images: number;
  /** Longest wait in the queue that the client asks for, model microseconds; 0: none. */
  readonly timeoutUs: number;
}

/** One finished execution. Times are absolute model microseconds. */
export interface FinishedBatch<Request> {
  /** Oldest first; outputs and queuedUs in the same order. */
  readonly requests: readonly Request[];
  readonly outputs: readonly ModelOutput[];
  /** When each request came into the queue. */
  readonly queuedUs: readonly number[];
  readonly images: number;
  /** An instance took the batch; it copies the inputs from here to inputEndUs, then infers until inferEndUs, and copies the outputs until endUs. */
  readonly startUs: number;
  readonly inputEndUs: number;
  readonly inferEndUs: number;
  readonly endUs: number;
}

export interface RunnerListener<Request> {
  finished(batch: FinishedBatch<Request>): void;
  /** The queue policy refused the request. */
  rejected(request: Request, reason: "queue-full" | "timeout", queuedForUs: number): void;
  /** The execution that the request was in failed, `afterUs` model microseconds after it came into the queue. */
  failed(request: Request, reason: string, afterUs: number): void;
}

/** One loaded model: its queue, its batcher and its instances. */
export interface ModelRunner<Request extends RunnerRequest> {
  /** Queues a request. `input` holds its tensor and is only valid during the call. The listener may be called before it returns. */
  submit(request: Request, input: Buffer): void;
  /** Takes a request out that waits for execution; false when it is being executed or finished: then it is finished as usual. */
  cancel(request: Request): boolean;
  /** Requests that wait for execution. */
  readonly waiting: number;
  /** Finishes what it has and resolves; `submit` must not be called any more. */
  close(): Promise<void>;
}

/** One GPU as nv_gpu_* reports it. */
export interface GpuReading {
  readonly uuid: string;
  /** Busy share over the last full poll interval, 0..1. */
  readonly utilization: number;
  readonly memoryTotalBytes: number;
  readonly memoryUsedBytes: number;
  readonly powerW: number;
  readonly powerLimitW: number;
  /** Since the start. */
  readonly energyJ: number;
}

/** The executor cannot serve this configuration; the text is Triton's reason ("Invalid argument: ..."). */
export class ModelLoadError extends Error {
  constructor(reason: string) {
    super(reason);
  }
}

/** A model that is to be loaded. */
export interface ModelToLoad {
  readonly config: CompleteModelConfig;
  /** What the model was loaded with before, if it is: an executor may reload faster when little changes. */
  readonly previous: CompleteModelConfig | null;
  /** Folder of the version's files. */
  readonly versionFolder: string;
}

export interface Executor {
  /** GPU ids that configurations may name. */
  readonly gpuIds: readonly number[];
  /** Where instances run: the kind of instance group that configurations must ask for. */
  readonly instanceKind: "KIND_GPU" | "KIND_CPU";
  /**
   * Loads a model; resolves when it can take requests.
   * @throws ModelLoadError
   */
  load<Request extends RunnerRequest>(
    model: ModelToLoad,
    listener: RunnerListener<Request>,
  ): Promise<ModelRunner<Request>>;
  gpus(): readonly GpuReading[];
  /** Ends at once whatever executes. */
  close(): Promise<void>;
}
