/** What the server's thread and an instance's thread tell each other. */
import type { TensorType } from "../../model-repo/variant";

/** What an instance's thread is started with. */
export interface InstanceSettings {
  readonly modelFile: string;
  /** Shape without the batch. */
  readonly input: { readonly name: string; readonly type: TensorType; readonly dims: readonly number[] };
  readonly output: { readonly name: string; readonly classes: number };
  /** Threads that one operator may use (ONNX Runtime's intra-op threads). */
  readonly threads: number;
  /** Batch sizes that are run once before the model is ready. */
  readonly warmupBatches: readonly number[];
}

/** One batch: the requests' tensors, oldest first. The buffers move to the thread. */
export interface RunRequest {
  readonly requests: readonly ArrayBuffer[];
  readonly images: number;
}

/** An input or output of the model's file, in ONNX Runtime's words; open dimensions are -1. */
export interface SessionTensor {
  readonly name: string;
  readonly type: string;
  readonly shape: readonly number[];
}

export type WorkerMessage =
  | {
      readonly kind: "loaded";
      readonly inputs: readonly SessionTensor[];
      readonly outputs: readonly SessionTensor[];
    }
  | { readonly kind: "warm" }
  | {
      readonly kind: "done";
      /** Scores of all images, row-major. */
      readonly values: Float32Array<ArrayBuffer>;
      /** Unix milliseconds with fractions: the batch's tensor was there; the model had run. */
      readonly inputEndMs: number;
      readonly inferEndMs: number;
    }
  | { readonly kind: "failed"; readonly reason: string };
