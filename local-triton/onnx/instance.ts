/** An instance of an ONNX model: its own thread with its own session. */
import { extname, join } from "node:path";
import { Worker } from "node:worker_threads";
import type { InstanceSettings, RunRequest, SessionTensor, WorkerMessage } from "./messages";

/** What one execution gave, or why it failed. */
export type Execution = Extract<WorkerMessage, { kind: "done" | "failed" }>;

export class OnnxInstance {
  private waiting: ((message: WorkerMessage) => void) | null = null;

  private constructor(private readonly worker: Worker) {
    worker.on("message", (message: WorkerMessage) => this.settle(message));
    worker.on("error", (error) => this.settle({ kind: "failed", reason: error.message }));
    worker.on("exit", (code) => this.settle({ kind: "failed", reason: `its thread ended (${code})` }));
  }

  /**
   * Starts the thread and loads the model.
   * @param accept looks at the model's inputs and outputs; throws when they are not those of the configuration
   * @throws Error with ONNX Runtime's reason, or what `accept` throws
   */
  static async start(
    settings: InstanceSettings,
    accept: (inputs: readonly SessionTensor[], outputs: readonly SessionTensor[]) => void,
  ): Promise<OnnxInstance> {
    const extension = extname(__filename);
    const loader = extension === ".ts" ? ["--require", require.resolve("tsx/cjs")] : [];
    const worker = new Worker(join(__dirname, `instance-worker${extension}`), {
      workerData: settings,
      execArgv: loader,
    });
    const instance = new OnnxInstance(worker);
    try {
      const loaded = await instance.next();
      if (loaded.kind !== "loaded") throw new Error(reasonOf(loaded));
      accept(loaded.inputs, loaded.outputs);
      const warm = await instance.ask("warm-up", []);
      if (warm.kind !== "warm") throw new Error(reasonOf(warm));
      return instance;
    } catch (error) {
      await instance.stop();
      throw error;
    }
  }

  /** Never rejects. One batch at a time; its buffers must not be used any more. */
  async run(request: RunRequest): Promise<Execution> {
    const message = await this.ask(request, request.requests);
    return message.kind === "done" || message.kind === "failed"
      ? message
      : { kind: "failed", reason: `its thread answered ${message.kind}` };
  }

  async stop(): Promise<void> {
    await this.worker.terminate();
  }

  private ask(message: RunRequest | "warm-up", transfer: readonly ArrayBuffer[]): Promise<WorkerMessage> {
    const answer = this.next();
    this.worker.postMessage(message, transfer);
    return answer;
  }

  private next(): Promise<WorkerMessage> {
    return new Promise((resolve) => (this.waiting = resolve));
  }

  private settle(message: WorkerMessage): void {
    const { waiting } = this;
    this.waiting = null;
    waiting?.(message);
  }
}

function reasonOf(message: WorkerMessage): string {
  return message.kind === "failed" ? message.reason : `its thread answered ${message.kind}`;
}
