/** Where the system under test runs. The sweep does not know which kind it has. */
import type { LoadClient } from "../loadgen/load-spec";
import type { Variant } from "../model-repo/variant";
import type { StandAloneSpeed } from "../model-repo/stand-alone-speed";
import type { ServiceLaw } from "../serving-model/service-law";
import type { SystemFacts } from "./outcome";
import type { GpuFacts } from "./results/gpu-facts";
import type { ServerControl } from "./trial";

/** Why a trial gave no result that may be used. */
export interface TrialFailure {
  /** True when it was measured but must not be used (the load generator says so); false when it could not be run at all. */
  readonly measured: boolean;
  readonly reason: string;
}

/** The target does not come back: more waiting, or another trial, would be in vain. */
export class TargetGone extends Error {
  override readonly name = "TargetGone";
}

/** Who waits for a target to come back. */
export interface RecoveryWatch {
  /** Ends the wait. */
  readonly signal?: AbortSignal;
  /** Told every few seconds what is waited for and since when, in a few words. */
  readonly onWaiting?: (text: string) => void;
}

/** A target that has been opened: servers answer, workers are connected. */
export interface OpenTarget {
  readonly kind: "local" | "stack" | "address";
  /** For people: what and where, e.g. "local-triton, simulated T4". */
  readonly description: string;
  /** True when service times come from a model, not from hardware: every report must say so. */
  readonly simulated: boolean;
  readonly serverName: string;
  readonly serverVersion: string;
  /** Identity for the point log: equal strings mean that trials of one run may be reused in the other. */
  readonly identity: string;
  /**
   * Hash of what the server makes of a variant: its model's files, where they can be read, and its configuration. Null, or no such
   * method, when the server does not show them; then its identity and the variant's settings have to tell trials apart.
   */
  modelHash?(variant: Variant): string | null;
  /**
   * Hash of the files that a conversion made for a variant, by the conversion's own manifest. Not what the server itself shows, so trials
   * are not told apart by it; the sweep's manifest has it. Null, or no such method, where there is no such manifest.
   */
  artefactHash?(variant: Variant): string | null;
  /** The servers' GPUs; null: none, or a simulated one. */
  readonly gpu: GpuFacts | null;
  readonly control: ServerControl;
  readonly load: LoadClient;
  readonly facts: SystemFacts;
  readonly workers: number;
  /** What a person should know about it, in sentences: limits, what cannot be seen. Shown at the start and in the report. */
  readonly notes: readonly string[];
  /** Addresses that the trials load, after `control.serve`: SLO rates are per replica, so usually one. */
  endpoints(): TargetEndpoints;
  /** All replicas that serve the variant, where there are more than the trials load; then it is checked that rates add up. */
  replicas?(): TargetEndpoints;
  /** Wall seconds per model second for this variant, >= 1; always 1 on real hardware. */
  timeDilation(variant: Variant): number;
  /**
   * The factor that trials of this variant are planned with: `timeDilation` before any trial had to run in slower time. It stays the
   * same over a sweep and its resumption, so that both plan the same trials.
   */
  plannedDilation(variant: Variant): number;
  /** How far the server's GPU gauges look back, milliseconds of model time (Triton's --metrics-interval-ms; 2000 by default). */
  readonly gpuGaugeLagMs: number;
  /**
   * After a trial that was invalid or could not be run: bring back what is gone, or wait for it, so that it can be tried again.
   * @throws TargetGone when there is nothing left to wait for
   */
  recover(variant: Variant, failure: TrialFailure, watch?: RecoveryWatch): Promise<void>;
  /** True service times, where they are known because they are simulated. */
  readonly lawOf?: (variant: Variant) => ServiceLaw;
  /** What of a variant's simulated service times nobody has published, in sentences; shown beside its figures. */
  readonly assumptionsOf?: (variant: Variant) => readonly string[];
  /** How fast a variant's artefact is without a server; null, or no such method, where nobody measured it. */
  readonly standAloneOf?: (variant: Variant) => StandAloneSpeed | null;
  /** SHA-256 of the images that its models were calibrated with, where that is known: those say nothing about accuracy. */
  readonly calibrationImages?: ReadonlySet<string>;
  /** Dashboard that shows trials as they ran, without a time; absent when the target has none. */
  readonly dashboardUrl?: string;
  /** Stops what the target started; leaves alone what it did not start. */
  close(): Promise<void>;
}

export interface TargetEndpoints {
  /** host:port of gRPC, one a replica. */
  readonly grpc: readonly string[];
  /** URL of /metrics, one a replica; empty when the server's metrics cannot be reached. */
  readonly metrics: readonly string[];
}
