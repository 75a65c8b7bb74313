/**
 * One measurement's load, as the controller takes it, and its merged result.
 * All times and rates here are in model (undilated) time: the worker multiplies planned times by `timeDilation` and divides
 * measured ones by it, so nobody else has to think about it.
 */
import type { LoadProfile } from "./load-profile";
import type { StopFinding, StopRule } from "./stop-rule";

/** Shape of a steady load, as trials offer it. `LoadProfile` has those that change while they run. */
export type LoadShape =
  /** Open loop with exponential gaps. */
  | { readonly kind: "poisson"; readonly ratePerS: number }
  /** Open loop with equal gaps. */
  | { readonly kind: "constant"; readonly ratePerS: number }
  /** Closed loop as in the documents: each user waits uniform(thinkMinS, thinkMaxS) after an answer, then sends again. */
  | {
      readonly kind: "users";
      readonly users: number;
      readonly spawnPerS: number;
      readonly thinkMinS: number;
      readonly thinkMaxS: number;
      /** All users together send no faster than this, requests per second: who would, waits for its turn. Default, and 0: no limit. */
      readonly maxRatePerS?: number;
    };

/** The answer that the served model is known to give for one payload: top-1 class index, its label and its score. */
export interface KnownAnswer {
  readonly classIndex: number;
  readonly label: string;
  readonly score: number;
}

export interface LoadSpec {
  /** Unique id of the measurement; a repeated id returns the first one's result. */
  readonly id: string;
  /**
   * gRPC addresses, one a server replica: host:port, or dns:///NAME:port for every address that the name has when the measurement starts.
   * Every worker spreads its requests evenly over them.
   */
  readonly addresses: readonly string[];
  readonly modelName: string;
  /** Input and output tensor names. */
  readonly inputName: string;
  readonly outputName: string;
  /** Input element type; decides the bytes a request carries. */
  readonly inputType: "FP32" | "UINT8";
  /** Shape of an image without the batch: [height, width, 3] or [3, height, width]. Default: the documents' [224, 224, 3]. */
  readonly inputDims?: readonly number[];
  /** Folder of images, readable by every worker; each image becomes one payload. */
  readonly imageFolder: string;
  /** Known answers in the order of the sorted image files; null switches the check off. */
  readonly knownAnswers: readonly KnownAnswer[] | null;
  /** Allowed absolute difference of the score. */
  readonly scoreTolerance: number;
  /** Every n-th reply is decoded and checked; 0 switches it off. */
  readonly checkEvery: number;
  readonly shape: LoadProfile;
  readonly seed: number;
  /** Load before the measured window, seconds; not counted. */
  readonly warmupS: number;
  /** Measured window, seconds. Requests count by their planned send time. */
  readonly measureS: number;
  /** SLO bound on the response time, milliseconds: splits `ok` from `late`. */
  readonly sloBoundMs: number;
  /** Share of the requests that must keep the bound, e.g. 0.95, for whoever shows the outcome; nothing here depends on it. */
  readonly sloQuantile?: number;
  /** A request without an answer after this long fails, milliseconds. */
  readonly deadlineMs: number;
  /** Largest number of requests in flight over all workers; what is over it is shed and counts as late. */
  readonly maxInFlight: number;
  readonly connectionsPerAddress: number;
  readonly transport: "lean" | "grpc-js";
  /** Wall seconds per model second, >= 1. */
  readonly timeDilation: number;
  /** Ends the measurement when the window of the last seconds breaks a bound. Default: it runs to its end. */
  readonly stopWhen?: StopRule;
  /** Every request opens a connection of its own, as the documents' client does; the time that this takes counts. Default false. */
  readonly newConnectionPerRequest?: boolean;
  /** Default: plain text. */
  readonly tls?: TlsOptions;
  /** What is measured, in words, for dashboards: the variant's name, and the trial's purpose and load. Default: model and id. */
  readonly subject?: { readonly variant: string; readonly trial: string };
}

/** How servers behind TLS are known. */
export interface TlsOptions {
  /** Certificates (PEM) of the authorities that are trusted; empty: those of the system. */
  readonly caPem: string;
  /** Name that the certificate must have; empty: the address's host. */
  readonly serverName: string;
}

/** A measurement that was ended before its time. */
export interface EarlyStop {
  /** Model seconds since the load's start, warm-up included. */
  readonly atS: number;
  /** In one sentence. */
  readonly reason: string;
  /** What the stop rule found; null: somebody asked for it. */
  readonly finding: StopFinding | null;
  /**
   * True: a process of the load generator had to end (Ctrl-C, SIGTERM). The figures are those of the time until then, and the result is
   * not valid as that of a whole measurement.
   */
  readonly interrupted?: boolean;
}

/** The load was changed while it ran. */
export interface LoadChange {
  /** Model seconds since the load's start, warm-up included. */
  readonly atS: number;
  readonly shape: LoadProfile;
}

/** Exact counters of one interval; they merge by addition. */
export interface Counts {
  /** Requests whose planned send lies in the interval. planned = ok + late + failed. */
  readonly planned: number;
  /** Answered correctly within the SLO bound, from the planned send. */
  readonly ok: number;
  /** Answered correctly, but later; includes shed requests. */
  readonly late: number;
  /** Error, deadline or wrong answer. */
  readonly failed: number;
  /** Part of `late`: never sent because the in-flight cap was reached. */
  readonly shed: number;
}

/** One model-time interval of the measured window. */
export interface IntervalResult extends Counts {
  /** Index from the start of the measured window; intervals are `intervalS` long, the last one may be shorter. */
  readonly index: number;
  /** Sum of response times of correctly answered requests (ok + late - shed), milliseconds, and their number: for the mean. */
  readonly responseSumMs: number;
  readonly answered: number;
  /** In flight over all workers at the interval's end. */
  readonly inFlight: number;
}

/** Health of the load generator itself during the measured window, undilated. */
export interface GeneratorHealth {
  /** Real minus planned send, milliseconds. */
  readonly latenessP99Ms: number;
  /** Event-loop delay, milliseconds; worst worker. */
  readonly loopDelayP99Ms: number;
  /** CPU seconds per wall second, worst worker, without busy waiting. */
  readonly cpuShare: number;
  /** The longest that a worker waits awake for a planned send, milliseconds; 0 (and absent, in older results): all sleep until it is due. */
  readonly busyWaitMs?: number;
  /** CPU seconds per wall second spent waiting awake, worker with the most; not in `cpuShare`. Absent in older results. */
  readonly busyWaitShare?: number;
  /** Bytes sent per wall second over all workers, in megabytes. */
  readonly wireMBPerS: number;
  /**
   * Requests sent before the measured window ended over planned requests, 0..1. Shed requests count as sent: the in-flight cap, that is
   * a slow server, kept them back, not a slow client.
   */
  readonly achievedShare: number;
}

/**
 * Percentiles of correctly answered requests by nearest rank: the smallest value whose cumulative count is >= p n, at most 0.1 % too
 * small. Milliseconds, undilated. NaN when count is 0: there is no percentile of nothing.
 */
export interface LatencySummary {
  readonly count: number;
  readonly meanMs: number;
  readonly p50Ms: number;
  readonly p90Ms: number;
  readonly p95Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
}

export interface LoadResult {
  readonly id: string;
  /** False when the numbers must not be used; the reasons say why, in sentences. */
  readonly valid: boolean;
  readonly invalidReasons: readonly string[];
  /** Length of an interval, model seconds. */
  readonly intervalS: number;
  readonly intervals: readonly IntervalResult[];
  readonly total: Counts;
  /** From the planned send. */
  readonly response: LatencySummary;
  /** From the real send. */
  readonly service: LatencySummary;
  /** Serialized response-time histogram (microseconds), for other bounds and quantiles: [lower bound us, count] pairs, sorted. */
  readonly responseHistogram: readonly (readonly [number, number])[];
  readonly health: GeneratorHealth;
  /** Errors by class, e.g. {"UNAVAILABLE": 3, "wrong-answer": 1}. */
  readonly errors: Readonly<Record<string, number>>;
  /** The first message of each class of errors. */
  readonly errorMessages?: Readonly<Record<string, string>>;
  /** Correctly answered requests per address. */
  readonly perAddress: Readonly<Record<string, number>>;
  readonly workers: number;
  /** Null (or absent): it ran to its end. */
  readonly stop?: EarlyStop | null;
  /** Changes of the load while it ran; absent or empty: none. */
  readonly changes?: readonly LoadChange[];
  /** What is odd, but does not make the numbers wrong, in sentences: an uneven split over the replicas. */
  readonly warnings?: readonly string[];
  /** Wall-clock start and end of the measured window, Unix milliseconds on the controller's clock. */
  readonly measuredFromUnixMs: number;
  readonly measuredToUnixMs: number;
}

/** What a running measurement shows once a second. */
export interface LoadProgress {
  readonly id: string;
  readonly phase: "connecting" | "warm-up" | "measuring" | "draining";
  /** Model seconds since the start of the phase `warm-up`. */
  readonly elapsedS: number;
  readonly ratePerS: number;
  readonly p95Ms: number;
  readonly total: Counts;
}

/** What one can do to a running measurement. */
export interface RunningLoad {
  /** Ends it in a moment; the result covers what was measured. False when it is over, or has not begun. */
  stop(reason: string): boolean;
  /** Another load from in a moment on. False when the measurement is over, or has not begun. @throws LoadSpecError */
  change(shape: LoadProfile): boolean;
}

/** The controller as the sweep sees it; in process, or over the network. */
export interface LoadClient {
  /** Runs one measurement to its end. Rejects only if it could not be run at all (no workers, bad spec). */
  run(
    spec: LoadSpec,
    onProgress?: (progress: LoadProgress) => void,
    signal?: AbortSignal,
  ): Promise<LoadResult>;
  close(): Promise<void>;
}
