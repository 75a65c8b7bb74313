/** Runs trials on a live server: load from the generator, the server's metrics at both ends of the measured window. */
import type { KnownAnswer, LoadProgress, LoadResult, LoadSpec } from "../loadgen/load-spec";
import type { Variant } from "../model-repo/variant";
import { MetricsPoller, windowOf, type MetricsReader } from "./server-window";
import type { OpenTarget, TargetEndpoints } from "./target";
import { waitUntilWarm, type WarmUp, type WarmUpProgress } from "./warm-up";
import type { TrialProgress, TrialResult, TrialRunner, TrialSpec } from "./trial";

export interface LiveRunnerOptions {
  readonly target: OpenTarget;
  /** Folder of images that become the payloads. */
  readonly imageFolder: string;
  readonly transport: LoadSpec["transport"];
  /** Reads a /metrics URL. Default: HTTP GET. */
  readonly metricsReader?: (url: string) => MetricsReader;
  /** The served model's own answers to the images, one request at a time, before any load. */
  readonly referenceAnswers: (
    variant: Variant,
    modelName: string,
    address: string,
    signal?: AbortSignal,
  ) => Promise<readonly KnownAnswer[]>;
  /** Told after every window of the watch for a server that is not warm yet. */
  readonly onWarmUp?: (variant: Variant, progress: WarmUpProgress) => void;
}

/** Every n-th reply is decoded and compared; decoding all would cost the client more than sending. */
const CHECK_EVERY = 50;
/** Absolute difference of a score that batching may cause in a correct server (engines differ by batch size). */
const SCORE_TOLERANCE = 0.02;
const CONNECTIONS_PER_ADDRESS = 4;
/** As long as a model may take to be loaded: an engine may be built meanwhile, milliseconds. */
const COLD_DEADLINE_MS = 600_000;
/** A request that takes twenty times the bound says no more by being waited for. */
const DEADLINE_BOUNDS = 20;
const POLL_EVERY_MS = 500;

/** What the server serves now. */
interface Served {
  readonly variant: Variant;
  readonly modelName: string;
  readonly answers: readonly KnownAnswer[];
  /** Addresses that answer as fast as they stay. */
  readonly warm: Set<string>;
}

export class LiveRunner implements TrialRunner {
  private served: Served | null = null;
  private readonly warmUps = new Map<string, WarmUp>();

  constructor(private readonly options: LiveRunnerOptions) {}

  run(
    spec: TrialSpec,
    onProgress?: (line: TrialProgress) => void,
    signal?: AbortSignal,
  ): Promise<TrialResult> {
    return this.runOn(() => this.options.target.endpoints(), spec, onProgress, signal);
  }

  /** Runs a trial on other addresses than the target's own; they are asked for when the variant is served. */
  async runOn(
    endpointsOf: () => TargetEndpoints,
    spec: TrialSpec,
    onProgress?: (line: TrialProgress) => void,
    signal?: AbortSignal,
  ): Promise<TrialResult> {
    const { target } = this.options;
    const served = await this.serve(spec.variant, signal);
    const endpoints = endpointsOf();
    await this.warmUp(spec, served, endpoints.grpc, signal);
    const dilation = target.timeDilation(spec.variant);
    const read = this.options.metricsReader ?? httpReader;
    const poller = new MetricsPoller(endpoints.metrics.map(read), served.modelName, POLL_EVERY_MS);
    const before = await target.control.batchSizes(served.modelName);
    await poller.start();
    let polls;
    let load;
    try {
      load = await target.load.run(
        this.loadSpec(spec, served, endpoints.grpc, dilation),
        forward(spec, onProgress),
        signal,
      );
    } finally {
      polls = await poller.stop();
    }
    const after = load.valid ? await target.control.batchSizes(served.modelName) : null;
    if (wasLoadedAnew(before, after, load))
      throw new Error(
        `${target.description}: a server was restarted or ${served.modelName} was loaded anew during the trial`,
      );
    return {
      load,
      server: windowOf(
        polls,
        load.measuredFromUnixMs,
        load.measuredToUnixMs,
        target.gpuGaugeLagMs * dilation,
        difference(before, after),
      ),
    };
  }

  /** Has the target serve the variant; its next trial finds it served. @throws Error when it cannot be served or does not answer */
  async prepare(variant: Variant, signal?: AbortSignal): Promise<{ modelName: string; address: string }> {
    const { modelName } = await this.serve(variant, signal);
    return { modelName, address: this.addressFor(variant) };
  }

  /** How the variant's server became warm before its first trial; null: nobody had to watch. */
  warmUpOf(variant: Variant): WarmUp | null {
    return this.warmUps.get(variant.name) ?? null;
  }

  /** Forget what is served, so that the next trial loads its variant anew (after a server died). */
  reset(): void {
    this.served = null;
  }

  private async serve(variant: Variant, signal?: AbortSignal): Promise<Served> {
    if (this.served?.variant === variant) return this.served;
    this.served = null;
    const { target, referenceAnswers } = this.options;
    const modelName = await target.control.serve(variant, signal);
    const address = this.addressFor(variant);
    const answers = await referenceAnswers(variant, modelName, address, signal);
    this.served = { variant, modelName, answers, warm: new Set() };
    return this.served;
  }

  /** A simulated server builds nothing. */
  private async warmUp(
    spec: TrialSpec,
    served: Served,
    addresses: readonly string[],
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const { target, onWarmUp } = this.options;
    const { variant, slo } = spec;
    const cold = addresses.filter((address) => !served.warm.has(address));
    if (cold.length === 0) return;
    if (!target.simulated && (await target.control.isCold?.(served.modelName))) {
      const warmUp = await waitUntilWarm({
        variant,
        boundMs: slo.boundMs,
        nowS: () => performance.now() / 1000,
        onProgress: (progress) => onWarmUp?.(variant, progress),
        run: (shape, measureS) => {
          const window = { ...spec, shape, measureS, warmupS: 0, purpose: "probe" as const };
          const load = this.loadSpec(window, served, cold, 1);
          const subject = { variant: variant.name, trial: `warm-up, ${describeShape(shape)}` };
          // Wrong answers are the trials' business; here they would look like a server that is not ready.
          const patient = { ...load, subject, knownAnswers: null, deadlineMs: COLD_DEADLINE_MS };
          return target.load.run(patient, undefined, signal);
        },
      });
      this.warmUps.set(variant.name, warmUp);
    }
    for (const address of cold) served.warm.add(address);
  }

  private addressFor(variant: Variant): string {
    const { target } = this.options;
    const [address] = target.endpoints().grpc;
    if (address === undefined)
      throw new Error(`${target.description} has no replica that serves ${variant.name}`);
    return address;
  }

  private loadSpec(
    spec: TrialSpec,
    served: Served,
    addresses: readonly string[],
    timeDilation: number,
  ): LoadSpec {
    const { input, output } = spec.variant.artefact;
    return {
      id: `${spec.variant.name}-${Date.now().toString(36)}-${Math.random().toString(36).slice(2, 8)}`,
      addresses,
      modelName: served.modelName,
      inputName: input.name,
      outputName: output.name,
      inputType: input.type,
      inputDims: input.dims,
      imageFolder: this.options.imageFolder,
      knownAnswers: served.answers,
      scoreTolerance: SCORE_TOLERANCE,
      checkEvery: CHECK_EVERY,
      shape: spec.shape,
      seed: spec.seed,
      warmupS: spec.warmupS,
      measureS: spec.measureS,
      sloBoundMs: spec.slo.boundMs,
      deadlineMs: spec.slo.boundMs * DEADLINE_BOUNDS,
      maxInFlight: inFlightCap(spec),
      connectionsPerAddress: CONNECTIONS_PER_ADDRESS,
      transport: this.options.transport,
      timeDilation,
      subject: { variant: spec.variant.name, trial: `${spec.purpose}, ${describeShape(spec.shape)}` },
    };
  }
}

/** The load in a few words, for whoever watches. */
function describeShape(shape: TrialSpec["shape"]): string {
  if (shape.kind === "users") return `${shape.users} users`;
  return `${shape.kind} ${shape.ratePerS.toFixed(1)}/s`;
}

/**
 * Enough for a queue of five bounds at the offered rate (Little's law): a server that far behind has failed, and more would only
 * fill the client's memory. Closed-loop users never have more than one request each.
 */
export function inFlightCap(spec: TrialSpec): number {
  if (spec.shape.kind === "users") return spec.shape.users;
  return Math.max(256, Math.ceil((spec.shape.ratePerS * spec.slo.boundMs * 5) / 1000));
}

function forward(
  spec: TrialSpec,
  onProgress?: (line: TrialProgress) => void,
): ((progress: LoadProgress) => void) | undefined {
  return (
    onProgress &&
    ((progress) =>
      onProgress({
        elapsedS: progress.elapsedS,
        totalS: spec.warmupS + spec.measureS,
        ratePerS: progress.ratePerS,
        p95Ms: progress.p95Ms,
      }))
  );
}

/**
 * Statistics of a model restart with it: then fewer images were executed between the trial's ends, by what the servers say, than
 * requests were answered in its window. Requests that failed meanwhile would else be taken for the variant's own.
 */
export function wasLoadedAnew(
  before: Readonly<Record<number, number>> | null,
  after: Readonly<Record<number, number>> | null,
  load: Pick<LoadResult, "perAddress">,
): boolean {
  if (before === null || after === null) return false;
  const images = (sizes: Readonly<Record<number, number>>): number =>
    Object.entries(sizes).reduce((sum, [size, count]) => sum + Number(size) * count, 0);
  const answered = Object.values(load.perAddress).reduce((sum, count) => sum + count, 0);
  const shrank = Object.entries(before).some(([size, count]) => (after[Number(size)] ?? 0) < count);
  return shrank || images(after) - images(before) < answered;
}

function difference(
  before: Readonly<Record<number, number>> | null,
  after: Readonly<Record<number, number>> | null,
): Readonly<Record<number, number>> | null {
  if (before === null || after === null) return null;
  const result: Record<number, number> = {};
  for (const [size, count] of Object.entries(after)) {
    const more = count - (before[Number(size)] ?? 0);
    if (more > 0) result[Number(size)] = more;
  }
  return result;
}

function httpReader(url: string): MetricsReader {
  return async () => {
    const response = await fetch(url, { signal: AbortSignal.timeout(2000) });
    if (!response.ok) throw new Error(`${url} answered ${response.status}`);
    return response.text();
  };
}
