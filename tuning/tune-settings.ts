/** What a sweep is told: what to measure, how, and who listens. */
import type { LoadSpec } from "../loadgen/load-spec";
import type { Variant } from "../model-repo/variant";
import type { AccuracySettings } from "./accuracy/screening";
import type { LiveRunner } from "./live-runner";
import type { Manifest } from "./results/manifest";
import type { Result } from "./results/result-schema";
import type { BudgetPreset } from "./search/budget";
import type { LoadMode } from "./search/load-axis";
import type { SweepEvent } from "./sweep";
import type { CostMeter } from "./sweep-cost";
import type { Slo } from "./trial";

export interface TuneSettings {
  readonly variants: readonly Variant[];
  readonly slo: Slo;
  /** Rate that is to be reached; null when only the limit is asked for. */
  readonly goalRatePerS: number | null;
  readonly load: LoadMode;
  readonly effort: BudgetPreset;
  readonly seed: number;
  readonly imageFolder: string;
  readonly transport: LoadSpec["transport"];
  readonly project: { readonly name: string; readonly version: string };
  /** The command's options, for the manifest. */
  readonly options: Manifest["options"];
  /** Price of one replica with its node; null when no prices are given. */
  readonly price: Result["price"];
  /** Numbers of replicas whose rate together is measured for the winner. Default: all that there are are tried once. */
  readonly replicas?: readonly number[] | null;
  /** Counts what the sweep costs and ends it at its limit. Default: nothing is paid for. */
  readonly cost?: CostMeter | null;
  /** Wall minutes after which the sweep ends with what it has. Default: no limit. */
  readonly maxMinutes?: number | null;
  /** Comparison of answers before speed counts. Default: none, and `notes` say why. */
  readonly accuracy?: AccuracySettings | null;
  /** A variant that is clearly worse than the best one so far is given up early. Default: false. */
  readonly race?: boolean;
  /** Configurations that nobody wrote down to measure at most, after the variants. Default: 0. */
  readonly explore?: number;
  /** More that a person should know, in sentences. */
  readonly notes?: readonly string[];
}

export interface TuneHooks {
  readonly onEvent: (event: SweepEvent) => void;
  readonly signal: AbortSignal;
  /** Runs the trials. Default: live, on the target. */
  readonly runner?: TuneRunner;
}

/** What runs a sweep's trials; the live runner, or one in virtual time. */
export type TuneRunner = Pick<LiveRunner, "run" | "runOn" | "reset"> &
  Partial<Pick<LiveRunner, "prepare" | "warmUpOf">>;
