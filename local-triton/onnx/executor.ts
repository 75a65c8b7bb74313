import { statSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import type { CompleteModelConfig } from "../../model-repo/config-types";
import {
  type Executor,
  type GpuReading,
  ModelLoadError,
  type ModelRunner,
  type ModelToLoad,
  type RunnerListener,
  type RunnerRequest,
} from "../executor";
import type { ModelClock } from "../model-clock";
import { OnnxInstance } from "./instance";
import { checkSession, classifierOf } from "./model-files";
import { OnnxRunner } from "./runner";

/** Threads of an operator, as Triton's ONNX Runtime backend reads it from a model's configuration. */
export const THREADS_PARAMETER = "intra_op_thread_count";
/** Each instance is a thread with a session of its own. */
const MAX_INSTANCES = 32;

/** Cores for inference by default: all but one, which the server and the load generator need. */
export function defaultCpuThreads(): number {
  return Math.max(1, availableParallelism() - 1);
}

/** Real inference on the CPU by ONNX Runtime. Every instance of a model has a thread and a session of its own. */
export class OnnxExecutor implements Executor {
  readonly gpuIds = [];
  readonly instanceKind = "KIND_CPU";

  private readonly instances = new Set<OnnxInstance>();

  constructor(
    private readonly clock: ModelClock,
    /** Threads that the instances of a model share, unless its configuration says how many each has. */
    private readonly cpuThreads: number = defaultCpuThreads(),
  ) {}

  async load<Request extends RunnerRequest>(
    { config, versionFolder }: ModelToLoad,
    listener: RunnerListener<Request>,
  ): Promise<ModelRunner<Request>> {
    const classifier = classifierOf(config);
    const instanceCount = config.instance_group.reduce((sum, { count }) => sum + count, 0);
    if (instanceCount > MAX_INSTANCES)
      throw new ModelLoadError(
        `Invalid argument: this server has at most ${MAX_INSTANCES} instances of a model; '${config.name}' wants ${instanceCount}`,
      );
    const settings = {
      ...classifier,
      modelFile: modelFileOf(config, versionFolder),
      threads: this.threadsOf(config, instanceCount),
      warmupBatches: config.model_warmup.map(({ batch_size }) => Math.max(1, batch_size)),
    };
    const started = await Promise.allSettled(
      Array.from({ length: instanceCount }, () =>
        OnnxInstance.start(settings, (inputs, outputs) => checkSession(config, inputs, outputs)),
      ),
    );
    const instances = started.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
    const failure = started.find((result) => result.status === "rejected");
    if (failure !== undefined) {
      await Promise.all(instances.map((instance) => instance.stop()));
      throw asLoadError(failure.reason);
    }
    for (const instance of instances) this.instances.add(instance);
    return new OnnxRunner(config, classifier.output.classes, instances, this.clock, listener);
  }

  async close(): Promise<void> {
    await Promise.all([...this.instances].map((instance) => instance.stop()));
  }

  gpus(): readonly GpuReading[] {
    return [];
  }

  private threadsOf(config: CompleteModelConfig, instanceCount: number): number {
    const stated = config.parameters[THREADS_PARAMETER]?.string_value;
    if (stated === undefined) return Math.max(1, Math.floor(this.cpuThreads / instanceCount));
    const threads = Number(stated);
    if (Number.isInteger(threads) && threads >= 1) return threads;
    throw new ModelLoadError(
      `Invalid argument: parameter ${THREADS_PARAMETER} of '${config.name}' is '${stated}', not a whole number >= 1`,
    );
  }
}

function modelFileOf(
  { name, default_model_filename: fileName }: CompleteModelConfig,
  folder: string,
): string {
  const file = join(folder, fileName || "model.onnx");
  if (statSync(file, { throwIfNoEntry: false })?.isFile()) return file;
  throw new ModelLoadError(`Invalid argument: unable to find '${file}' for model '${name}'`);
}

function asLoadError(reason: unknown): ModelLoadError {
  if (reason instanceof ModelLoadError) return reason;
  const text = reason instanceof Error ? reason.message : String(reason);
  return new ModelLoadError(`Internal: onnx runtime error: ${text}`);
}
