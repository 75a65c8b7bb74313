import type { Executor } from "./executor";
import type { ModelClock } from "./model-clock";
import { OnnxExecutor } from "./onnx/executor";
import { DEFAULT_LOAD_TIME_US, SimulatedT4, type TimingObserver } from "./simulated-t4/executor";
import { DEFAULT_GPU_POLL_US } from "./simulated-t4/gpu";

/** What executes the models: a simulated GPU, or ONNX Runtime on the CPU. */
export const executorNames = ["simulated-t4", "onnx"] as const;
export type ExecutorName = (typeof executorNames)[number];

export interface ExecutorOptions {
  /** Default `simulated-t4`. */
  readonly executor?: ExecutorName;
  /** `simulated-t4`: model time that loading a model takes, milliseconds. Default 500. */
  readonly loadTimeMs?: number;
  /** `simulated-t4`: how often the GPU metrics are refreshed, model milliseconds. Default 2000, as Triton. */
  readonly metricsIntervalMs?: number;
  /** `onnx`: threads that a model's instances share. Default: all cores but one. */
  readonly cpuThreads?: number;
}

/** @throws Error when `onnx` is asked for in dilated time */
export function createExecutor(
  options: ExecutorOptions,
  clock: ModelClock,
  observer: TimingObserver,
): Executor {
  if (options.executor !== "onnx") {
    const loadTimeUs = (options.loadTimeMs ?? DEFAULT_LOAD_TIME_US / 1000) * 1000;
    return new SimulatedT4(
      clock,
      observer,
      loadTimeUs,
      (options.metricsIntervalMs ?? DEFAULT_GPU_POLL_US / 1000) * 1000,
    );
  }
  if (clock.dilation !== 1)
    throw new Error(
      "--time-dilation is for the simulated T4: ONNX Runtime takes the time that it takes; leave it out.",
    );
  return new OnnxExecutor(clock, options.cpuThreads);
}
