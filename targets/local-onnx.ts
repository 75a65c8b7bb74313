/** The target that needs no GPU and simulates none: the embedded server with ONNX Runtime on this machine's CPU. */
import { mkdtemp, rm } from "node:fs/promises";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { version as onnxRuntimeVersion } from "onnxruntime-node/package.json";
import { startLocalCluster } from "../loadgen/local-cluster";
import type { LoadClient } from "../loadgen/load-spec";
import type { OnnxModels } from "../model-repo/onnx-models";
import type { Variant } from "../model-repo/variant";
import { writeRepository } from "../model-repo/write-repository";
import { RepositoryControl } from "../tuning/repository-control";
import type { OpenTarget } from "../tuning/target";
import type { ServerControl } from "../tuning/trial";
import { busyWaitNotes } from "./busy-wait";
import { LocalServer } from "./local-server";

export interface OnnxTargetOptions {
  readonly models: OnnxModels;
  /** All variants that may be served. */
  readonly variants: readonly Variant[];
  /** Load worker processes; null: one. */
  readonly workers: number | null;
  /** The workers wait awake for each planned send this long, milliseconds. Default 0: they sleep. */
  readonly busyWaitMs?: number;
  readonly cores: number;
}

/** There is no GPU, so nothing depends on it. */
const METRICS_INTERVAL_MS = 250;

/** The server, and another one after it died. */
class OnnxControl implements ServerControl {
  private server: LocalServer | null = null;
  private repository: RepositoryControl | null = null;

  constructor(private readonly folder: string) {}

  async serve(variant: Variant, signal?: AbortSignal): Promise<string> {
    const { repository } = await this.running();
    return repository.serve(variant, signal);
  }

  async batchSizes(modelName: string): Promise<Readonly<Record<number, number>> | null> {
    return this.repository === null ? null : this.repository.batchSizes(modelName);
  }

  // The repository is written with model_warmup, so a ready model is warm.
  async restore(): Promise<void> {
    // The server belongs to the sweep and ends with it.
  }

  endpoints(): { grpc: string[]; metrics: string[] } {
    if (this.server === null) return { grpc: [], metrics: [] };
    return { grpc: [this.server.grpcAddress], metrics: [this.server.metricsUrl] };
  }

  async stop(): Promise<void> {
    this.repository?.close();
    this.repository = null;
    await this.server?.stop();
    this.server = null;
  }

  private async running(): Promise<{ repository: RepositoryControl }> {
    if (this.server?.running && this.repository !== null) return { repository: this.repository };
    await this.stop();
    this.server = await LocalServer.start({
      repository: this.folder,
      modelName: null,
      executor: "onnx",
      timeDilation: 1,
      metricsIntervalMs: METRICS_INTERVAL_MS,
    });
    this.repository = new RepositoryControl({ addresses: [this.server.grpcAddress] });
    return { repository: this.repository };
  }
}

/** What keeps the models' own speeds from being compared with the served rates of this machine. */
function speedNotes({ machine, folder }: OnnxModels, cpu: string, cores: number): string[] {
  if (machine === null)
    return [
      `how fast the models are alone is not known: ${folder} was prepared before that was measured; delete it and prepare it again`,
    ];
  if (machine.cores === cores && (machine.cpu === null || machine.cpu === cpu)) return [];
  return [
    `the models' speeds alone were measured on another machine, or on other cores (${machine.cpu ?? "a CPU"}, ${machine.cores} cores): delete ` +
      `${folder} and prepare it again here to compare them with served rates`,
  ];
}

/** Starts workers; the server starts with the first variant that is served. */
export async function openOnnxTarget(options: OnnxTargetOptions): Promise<OpenTarget> {
  const { models, variants, cores, busyWaitMs = 0 } = options;
  const workers = options.workers ?? 1;
  const waiting = busyWaitNotes({ busyWaitMs, workers, cores, isServerHere: true });
  const folder = await mkdtemp(join(tmpdir(), "triton-slo-onnx-"));
  let load: LoadClient | null = null;
  try {
    await writeRepository(variants, folder, {
      instanceKind: "KIND_CPU",
      warmup: true,
      readLabelsFile: models.labelsOf,
      modelFileOf: ({ artefact }) => models.modelFileOf(artefact.name),
    });
    load = await startLocalCluster({ workers, busyWaitMs });
    const control = new OnnxControl(folder);
    const client = load;
    const model = cpus()[0]?.model.trim() ?? "unknown CPU";
    const cpu = `${model}, ${cores} ${cores === 1 ? "core" : "cores"}`;
    return {
      kind: "local",
      description: `local-triton on this machine, ONNX Runtime ${onnxRuntimeVersion} on its CPU (${cpu})`,
      simulated: false,
      serverName: "local-triton",
      serverVersion: `ONNX Runtime ${onnxRuntimeVersion}`,
      identity: `local-triton onnx ${onnxRuntimeVersion} ${cpu} models ${models.hash.slice(0, 16)}`,
      artefactHash: ({ artefact }) => models.fileHashOf(artefact.name),
      gpu: null,
      control,
      load: client,
      facts: { wireCeilingPerS: null, clientCeilingPerS: null, processor: "cpu" },
      workers,
      notes: [
        "inference is real and runs on this machine's CPU, beside the load generator: the rates are this machine's own",
        ...waiting,
        ...speedNotes(models, model, cores),
      ],
      standAloneOf: models.standAloneOf,
      calibrationImages: models.calibrationImages,
      endpoints: () => control.endpoints(),
      timeDilation: () => 1,
      plannedDilation: () => 1,
      gpuGaugeLagMs: METRICS_INTERVAL_MS,
      recover: async (_variant, failure) => {
        if (!failure.measured) await control.stop();
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
