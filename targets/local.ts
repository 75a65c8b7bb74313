/** The target that needs nothing: the embedded server on a simulated T4, and load workers on the same machine. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startLocalCluster } from "../loadgen/local-cluster";
import type { LoadClient } from "../loadgen/load-spec";
import { toConfigPbtxt } from "../model-repo/config-pbtxt";
import type { StandAloneSpeed } from "../model-repo/stand-alone-speed";
import type { Variant } from "../model-repo/variant";
import { writeRepository } from "../model-repo/write-repository";
import { gpuImagesPerS } from "../serving-model/service-law";
import { lawAssumptions, payloadBytesOf, serviceLawFor } from "../serving-model/t4";
import { capacityPerS } from "../serving-model/truth";
import { RepositoryControl } from "../tuning/repository-control";
import type { OpenTarget, TargetEndpoints } from "../tuning/target";
import type { ServerControl } from "../tuning/trial";
import { canonicalJson, sha256Hex } from "../tuning/results/canonical";
import { lawToJson } from "../tuning/results/manifest";
import packageJson from "../package.json";
import { busyWaitNotes } from "./busy-wait";
import { dilationFor, probeHostCapacity } from "./host-capacity";
import { LocalServer } from "./local-server";
import { writeProbeModel } from "./probe-model";

export interface LocalTargetOptions {
  /** All variants that may be served. */
  readonly variants: readonly Variant[];
  /** Served too, but not measured: answers are compared with its. Default: none. */
  readonly reference?: Variant;
  readonly imageFolder: string;
  /** Load worker processes; null: one, or more on machines with many cores. */
  readonly workers: number | null;
  /** The workers wait awake for each planned send this long, milliseconds. Default 0: they sleep. */
  readonly busyWaitMs?: number;
  /** Variants that are not listed may be served and measured later. */
  readonly moreMayCome: boolean;
  /** Wall seconds per model second for all variants; null: chosen for each by a probe of this machine. */
  readonly timeDilation: number | null;
  /** Factors by variant of an interrupted sweep that goes on: its trials were planned with them. */
  readonly knownDilations: ReadonlyMap<string, number>;
}

/** After a trial that the machine limited, time runs slower by this factor. */
const SLOWDOWN = 1.5;

/** Triton's default of 2000 ms would blur the short trials of a quick sweep. */
const METRICS_INTERVAL_MS = 250;

/** Each worker keeps about a core busy, and the server needs one too. */
function defaultWorkers(cores: number): number {
  return Math.max(1, Math.min(4, Math.floor(cores / 2)));
}

function capacityOf(variant: Variant): number {
  return capacityPerS({ ...variant, dynamicBatching: true, law: serviceLawFor(variant) });
}

/** There is no artefact to measure: what the simulated GPU's phase alone would pass stands for it. */
function gpuPhaseAlone(variant: Variant): StandAloneSpeed {
  const { maxBatchSize: batchSize } = variant;
  const imagesPerS = gpuImagesPerS(serviceLawFor(variant), batchSize);
  const latencyP95Ms = (1000 * batchSize) / imagesPerS;
  return { batchSize, imagesPerS, latencyP95Ms, basis: "simulated", on: null };
}

class LocalControl implements ServerControl {
  private server: LocalServer | null = null;
  private repository: RepositoryControl | null = null;
  private readonly slowdowns = new Map<string, number>();
  /** Requests a second that this machine passes, by the bytes of a request. */
  private readonly hostCapacities = new Map<number, number>();

  constructor(
    private readonly folder: string,
    private readonly load: LoadClient,
    private readonly options: LocalTargetOptions,
  ) {}

  /** Starts a server of its own for every variant, because the time dilation is a property of the process. */
  async serve(variant: Variant): Promise<string> {
    const { variants, reference } = this.options;
    // What is not listed was proposed meanwhile.
    if (variant !== reference && !variants.includes(variant)) await writeRepository([variant], this.folder);
    await this.restart(variant, this.timeDilation(variant));
    return variant.name;
  }

  timeDilation(variant: Variant): number {
    if (this.options.timeDilation !== null) return this.options.timeDilation;
    const slowdown = SLOWDOWN ** (this.slowdowns.get(variant.name) ?? 0);
    return this.plannedDilation(variant) * slowdown;
  }

  plannedDilation(variant: Variant): number {
    const { timeDilation, knownDilations, variants, reference } = this.options;
    if (timeDilation !== null) return timeDilation;
    // What is not measured needs no room.
    if (variant.name === reference?.name && !variants.some(({ name }) => name === variant.name)) return 1;
    const known = knownDilations.get(variant.name);
    if (known !== undefined) return known;
    const hostCapacityPerS = this.hostCapacities.get(payloadBytesOf(variant.artefact.input));
    if (hostCapacityPerS === undefined)
      throw new Error("the time dilation is not known before the machine was probed");
    return dilationFor(capacityOf(variant), hostCapacityPerS);
  }

  /** After a trial that the machine limited: the next one runs in slower time. */
  slowDown(variant: Variant): void {
    this.slowdowns.set(variant.name, (this.slowdowns.get(variant.name) ?? 0) + 1);
  }

  endpoints(): TargetEndpoints {
    if (this.server === null) return { grpc: [], metrics: [] };
    return { grpc: [this.server.grpcAddress], metrics: [this.server.metricsUrl] };
  }

  async batchSizes(modelName: string): Promise<Readonly<Record<number, number>> | null> {
    return this.repository === null ? null : this.repository.batchSizes(modelName);
  }

  async restore(): Promise<void> {
    // Nothing was served before the sweep: the server belongs to it and ends with it.
  }

  async stop(): Promise<void> {
    this.repository?.close();
    this.repository = null;
    await this.server?.stop();
    this.server = null;
  }

  private async restart(variant: Variant, timeDilation: number): Promise<LocalServer> {
    await this.stop();
    const server = await LocalServer.start({
      repository: this.folder,
      modelName: variant.name,
      executor: "simulated-t4",
      timeDilation,
      metricsIntervalMs: METRICS_INTERVAL_MS,
    });
    this.server = server;
    this.repository = new RepositoryControl({ addresses: [server.grpcAddress] });
    return server;
  }

  /** How many requests of each payload this machine passes. */
  async probeHost(): Promise<void> {
    const { variants, moreMayCome, knownDilations, timeDilation, imageFolder } = this.options;
    const allKnown = !moreMayCome && variants.every(({ name }) => knownDilations.has(name));
    if (timeDilation !== null || allKnown) return;
    const payloads = new Map(variants.map((variant) => [payloadBytesOf(variant.artefact.input), variant]));
    try {
      for (const [bytes, variant] of payloads) {
        const probe = await writeProbeModel(this.folder, variant);
        const server = await this.restart(probe, 1);
        const perS = await probeHostCapacity(this.load, probe, server.grpcAddress, imageFolder);
        this.hostCapacities.set(bytes, perS);
      }
    } finally {
      // Also when the probe failed: a server that stays would keep this process from ending.
      await this.stop();
    }
  }
}

/** Starts workers; the server starts with the first variant that is served. */
export async function openLocalTarget(
  options: LocalTargetOptions & { readonly cores: number },
): Promise<OpenTarget> {
  const workers = options.workers ?? defaultWorkers(options.cores);
  const { cores, busyWaitMs = 0 } = options;
  const notes = busyWaitNotes({ busyWaitMs, workers, cores, isServerHere: true });
  const folder = await mkdtemp(join(tmpdir(), "triton-slo-repository-"));
  let load: LoadClient | null = null;
  try {
    const { variants, reference } = options;
    const isExtra = reference !== undefined && variants.every(({ name }) => name !== reference.name);
    await writeRepository(isExtra ? [...variants, reference] : variants, folder);
    load = await startLocalCluster({ workers, busyWaitMs });
    const control = new LocalControl(folder, load, options);
    await control.probeHost();
    const client = load;
    return {
      kind: "local",
      description: "local-triton on this machine, simulated T4",
      simulated: true,
      serverName: "local-triton",
      serverVersion: "simulated T4",
      identity: `local-triton ${packageJson.version} simulated-t4`,
      // There is no model file: the law of its service times stands in its place.
      modelHash: (variant) =>
        sha256Hex(canonicalJson({ config: toConfigPbtxt(variant), law: lawToJson(serviceLawFor(variant)) })),
      gpu: null,
      control,
      load: client,
      facts: { wireCeilingPerS: null, clientCeilingPerS: null },
      workers,
      notes,
      lawOf: serviceLawFor,
      assumptionsOf: lawAssumptions,
      standAloneOf: gpuPhaseAlone,
      endpoints: () => control.endpoints(),
      timeDilation: (variant) => control.timeDilation(variant),
      plannedDilation: (variant) => control.plannedDilation(variant),
      gpuGaugeLagMs: METRICS_INTERVAL_MS,
      recover: async (variant, failure) => {
        if (failure.measured) control.slowDown(variant);
        await control.stop();
      },
      close: async () => {
        await control.stop();
        await client.close();
        await rm(folder, { recursive: true, force: true });
      },
    };
  } catch (error) {
    await load?.close();
    await rm(folder, { recursive: true, force: true });
    throw error;
  }
}
