import { grpcMethods } from "./api/grpc-services";
import { HttpEndpoint } from "./api/http-server";
import { httpRoutes } from "./api/http-routes";
import { metricsRoute } from "./api/metrics-route";
import { createExecutor, type ExecutorOptions } from "./create-executor";
import type { Executor } from "./executor";
import { GrpcServer } from "./grpc/server";
import { CpuMeter } from "./metrics/cpu";
import { HostHealth } from "./metrics/host-health";
import { ModelClock } from "./model-clock";
import { type ModelControlMode, ModelStore } from "./models/model-store";
import { RepositoryFolder } from "./models/repository-folder";

export interface LocalTritonOptions extends ExecutorOptions {
  /** Folder of the model repository. */
  readonly modelRepository: string;
  /** Ports; 0 is a free one. Default 0. */
  readonly grpcPort?: number;
  readonly httpPort?: number;
  readonly metricsPort?: number;
  /** Address to listen on. Default 127.0.0.1: nothing of it is meant for a network. */
  readonly host?: string;
  /** Default `none`, as Triton: all models are loaded at the start. */
  readonly modelControlMode?: ModelControlMode;
  /** Models loaded at the start in mode `explicit`; "*" is all. Default none. */
  readonly loadModels?: readonly string[];
  /** Wall seconds per model second, >= 1. Default 1. All times that the server keeps or reports are model time. */
  readonly timeDilation?: number;
  /** Length of each of the two steps of a shutdown, wall milliseconds. Default 1000, as observed on Triton 2.51. */
  readonly shutdownStepMs?: number;
  /** Takes the reasons that Triton writes to its log only. Default: none is kept. */
  readonly log?: (line: string) => void;
}

export interface Ports {
  readonly grpc: number;
  readonly http: number;
  readonly metrics: number;
}

const DEFAULT_SHUTDOWN_STEP_MS = 1000;
/** Triton's --exit-timeout-secs. */
const EXIT_TIMEOUT_MS = 30_000;

/** A running server in this process. */
export class LocalTriton {
  private constructor(
    readonly ports: Ports,
    private readonly store: ModelStore,
    private readonly executor: Executor,
    private readonly grpc: GrpcServer,
    private readonly http: HttpEndpoint,
    private readonly metrics: HttpEndpoint,
    private readonly health: HostHealth,
    private readonly shutdownStepMs: number,
  ) {}

  /**
   * Loads the initial models, then opens the ports.
   * @throws Error naming what is wrong: the repository, a model, the dilation, a port in use
   */
  static async start(options: LocalTritonOptions): Promise<LocalTriton> {
    const host = options.host ?? "127.0.0.1";
    const clock = new ModelClock(options.timeDilation ?? 1);
    const health = new HostHealth(clock.dilation);
    const executor = createExecutor(options, clock, health);
    const store = new ModelStore(
      new RepositoryFolder(options.modelRepository),
      executor,
      options.modelControlMode ?? "none",
      () => clock.nowUs(),
      options.log ?? (() => undefined),
    );
    try {
      await store.loadInitial(options.loadModels ?? []);
    } catch (error) {
      await executor.close();
      throw error;
    }
    const grpc = new GrpcServer(grpcMethods(store, clock));
    const http = new HttpEndpoint(httpRoutes(store));
    const cpu = new CpuMeter();
    const metrics = new HttpEndpoint(
      metricsRoute(() => ({
        models: store.counters(),
        gpus: executor.gpus(),
        cpu: cpu.read(),
        host: health,
        timeDilation: options.executor === "onnx" ? null : clock.dilation,
      })),
    );
    try {
      const ports = {
        grpc: await grpc.listen(options.grpcPort ?? 0, host),
        http: await http.listen(options.httpPort ?? 0, host, "HTTP"),
        metrics: await metrics.listen(options.metricsPort ?? 0, host, "Metrics"),
      };
      health.start();
      const stepMs = options.shutdownStepMs ?? DEFAULT_SHUTDOWN_STEP_MS;
      return new LocalTriton(ports, store, executor, grpc, http, metrics, health, stepMs);
    } catch (error) {
      await Promise.allSettled([grpc.close(), http.close(), metrics.close(), executor.close()]);
      throw error;
    }
  }

  /** gRPC calls without an answer. */
  get inFlight(): number {
    return this.grpc.inFlight;
  }

  /**
   * Ends as Triton does on SIGTERM: HTTP closes at once; over gRPC, requests that are inside are answered and new ones get
   * UNAVAILABLE; one step (a second) later the models are gone (NOT_FOUND) and /metrics closes; another step later gRPC closes.
   * Takes two steps at least, and 30 seconds at most.
   */
  async shutdown(): Promise<void> {
    const exitAt = performance.now() + EXIT_TIMEOUT_MS;
    this.store.stopAccepting();
    await this.http.close();
    do await sleep(this.shutdownStepMs);
    while (this.grpc.inFlight > 0 && performance.now() < exitAt);
    this.store.unloadAll();
    await this.metrics.close();
    await sleep(this.shutdownStepMs);
    const limit = Math.max(this.shutdownStepMs, exitAt - performance.now());
    await Promise.race([this.grpc.drain(), sleep(limit)]);
    await this.close();
  }

  /** Ends at once; open requests are cut off. */
  async close(): Promise<void> {
    this.health.stop();
    await Promise.all([this.grpc.close(), this.http.close(), this.metrics.close(), this.executor.close()]);
  }
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms).unref());
}
