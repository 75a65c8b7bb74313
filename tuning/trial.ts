/**
 * A trial is one measurement of one variant at one load. Rates, times and the SLO are in model (undilated) time throughout.
 */
import type { LoadResult, LoadShape } from "../loadgen/load-spec";
import type { Variant } from "../model-repo/variant";

/** Service-level objective: `quantile` of the requests answered within `boundMs`. Default p95 <= 100 ms. */
export interface Slo {
  /** 0.5 .. 0.999 */
  readonly quantile: number;
  readonly boundMs: number;
}

export interface TrialSpec {
  readonly variant: Variant;
  readonly shape: LoadShape;
  readonly slo: Slo;
  readonly seed: number;
  readonly warmupS: number;
  readonly measureS: number;
  /** What the trial is for; shown in the live line and the point log. */
  readonly purpose: "probe" | "locate" | "confirm" | "verify";
}

/** What the server says about itself over the measured window; null fields were not reported by that server. */
export interface ServerWindow {
  /** Mean requests per execution. */
  readonly meanBatch: number | null;
  /** Mean per request, milliseconds. */
  readonly queueMs: number | null;
  readonly computeInputMs: number | null;
  readonly computeInferMs: number | null;
  readonly computeOutputMs: number | null;
  /** Mean GPU busy share, 0..1; null when the server has no GPU metrics. */
  readonly gpuBusy: number | null;
  readonly gpuMemoryUsedBytes: number | null;
  readonly gpuPowerW: number | null;
  /** Memory and power limit of the GPU; absent or null when the server does not say. */
  readonly gpuMemoryTotalBytes?: number | null;
  readonly gpuPowerLimitW?: number | null;
  /** Executions by batch size over the window, if the server reports them. */
  readonly batchSizes: Readonly<Record<number, number>> | null;
}

export interface TrialResult {
  readonly load: LoadResult;
  readonly server: ServerWindow;
}

/** Runs trials: live against a server, or simulated in virtual time. */
export interface TrialRunner {
  run(
    spec: TrialSpec,
    onProgress?: (line: TrialProgress) => void,
    signal?: AbortSignal,
  ): Promise<TrialResult>;
}

export interface TrialProgress {
  readonly elapsedS: number;
  readonly totalS: number;
  readonly ratePerS: number;
  readonly p95Ms: number;
}

/** Makes the server serve exactly one variant. */
export interface ServerControl {
  /**
   * Loads the variant (alone) on every replica and waits until it answers.
   * @returns the name of the model that serves it: the variant's own, or that of a model whose settings were overridden
   */
  serve(variant: Variant, signal?: AbortSignal): Promise<string>;
  /** Executions of the model by batch size since it was loaded, over all replicas; null when the server does not say. */
  batchSizes(modelName: string): Promise<Readonly<Record<number, number>> | null>;
  /**
   * Whether the model is ready before its engines exist: on some replica its configuration has no model_warmup, so its first requests may
   * be slow. Default: it is warm.
   */
  isCold?(modelName: string): Promise<boolean>;
  /** Loads again what was served before the sweep. */
  restore(): Promise<void>;
}

export type Verdict = "pass" | "fail" | "undecided";

/** Cause of a limit; `none` when no limit was found. */
export type Cause =
  | "gpu-bound"
  | "cpu-bound"
  | "host-bound"
  | "wire-bound"
  | "client-bound"
  | "queue-delay"
  | "memory-limit"
  | "throttled"
  | "conversion-noop"
  | "none";
