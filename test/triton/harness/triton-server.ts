/** A real tritonserver as a child process on free loopback ports. */
import { spawn, type ChildProcess } from "node:child_process";
import { KserveClient } from "../../../kserve/client";
import { inRealTime } from "./real-time";
import { buildStandIns, tritonProgram } from "./stand-ins";
import { freePorts } from "../../free-ports";

export interface TritonServerOptions {
  readonly repository: string;
  /** Default `explicit`. */
  readonly modelControlMode?: "explicit" | "none" | "poll";
  /** Models loaded at the start in mode `explicit`. */
  readonly loadModels?: readonly string[];
  /** Devices that the GPU shim announces. Default 1. */
  readonly gpus?: number;
  /** Ports of HTTP, gRPC and metrics, to come back where another one was. Default: free ones. */
  readonly ports?: readonly number[];
  /** More options of tritonserver. */
  readonly args?: readonly string[];
}

const START_TIMEOUT_MS = 60_000;
const START_POLL_MS = 50;
/** Ports are chosen before the server opens them; somebody else may be faster. */
const ATTEMPTS = 3;
const KEPT_LOG_CHARACTERS = 100_000;

export class TritonServer {
  private constructor(
    private readonly child: ChildProcess,
    private readonly exited: Promise<number | null>,
    readonly ports: readonly number[],
    readonly grpcAddress: string,
    readonly httpUrl: string,
    readonly metricsUrl: string,
    private readonly readLog: () => string,
  ) {}

  /** Resolves when gRPC and metrics answer, that is after the models were loaded. @throws Error with the server's last words */
  static async start(options: TritonServerOptions): Promise<TritonServer> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await TritonServer.launch(options, options.ports ?? (await freePorts(3)));
      } catch (error) {
        const inUse = error instanceof Error && /in use|Address already/i.test(error.message);
        if (!inUse || attempt === ATTEMPTS) throw error;
      }
    }
  }

  private static async launch(options: TritonServerOptions, ports: readonly number[]): Promise<TritonServer> {
    const [http, grpc, metrics] = ports;
    const { backendFolder, gpuShim } = buildStandIns();
    const mode = options.modelControlMode ?? "explicit";
    const [program = "", ...words] = inRealTime(tritonProgram());
    const child = spawn(
      program,
      [
        ...words,
        ...[`--model-repository=${options.repository}`, `--backend-directory=${backendFolder}`],
        ...[
          `--model-control-mode=${mode}`,
          ...(options.loadModels ?? []).map((name) => `--load-model=${name}`),
        ],
        ...["--http-address=127.0.0.1", "--grpc-address=127.0.0.1", "--metrics-address=127.0.0.1"],
        ...[`--http-port=${http}`, `--grpc-port=${grpc}`, `--metrics-port=${metrics}`],
        ...(options.args ?? []),
      ],
      {
        stdio: ["ignore", "pipe", "pipe"],
        env: { ...process.env, LD_PRELOAD: gpuShim, STANDIN_GPUS: String(options.gpus ?? 1) },
      },
    );
    let log = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream
        .setEncoding("utf8")
        .on("data", (text: string) => (log = (log + text).slice(-KEPT_LOG_CHARACTERS)));
    }
    const exited = new Promise<number | null>((resolve) => {
      child.once("exit", (code) => resolve(code));
      child.once("error", () => resolve(null));
    });
    const server = new TritonServer(
      child,
      exited,
      ports,
      `127.0.0.1:${grpc}`,
      `http://127.0.0.1:${http}`,
      `http://127.0.0.1:${metrics}/metrics`,
      () => log,
    );
    await server.untilLive();
    return server;
  }

  get pid(): number {
    return this.child.pid ?? 0;
  }

  get log(): string {
    return this.readLog();
  }

  get running(): boolean {
    return this.child.exitCode === null && this.child.signalCode === null;
  }

  /** SIGTERM, as Kubernetes sends it; resolves with the exit code. */
  terminate(): Promise<number | null> {
    this.child.kill("SIGTERM");
    return this.exited;
  }

  /** Ends it at once. */
  async stop(): Promise<void> {
    if (this.running) this.child.kill("SIGKILL");
    await this.exited;
  }

  private async untilLive(): Promise<void> {
    const client = new KserveClient(this.grpcAddress);
    const until = performance.now() + START_TIMEOUT_MS;
    try {
      while (!((await isLive(client)) && (await answers(this.metricsUrl)))) {
        if (!this.running) throw new Error(`tritonserver ended at its start: ${this.log.slice(-2000)}`);
        if (performance.now() > until) {
          await this.stop();
          throw new Error(
            `tritonserver was not live after ${START_TIMEOUT_MS / 1000} s: ${this.log.slice(-2000)}`,
          );
        }
        await new Promise((resolve) => setTimeout(resolve, START_POLL_MS));
      }
    } finally {
      client.close();
    }
  }
}

function isLive(client: KserveClient): Promise<boolean> {
  return client.serverLive({ deadlineMs: 1000 }).catch(() => false);
}

/** The metrics' port is opened last. */
function answers(url: string): Promise<boolean> {
  return fetch(url).then(
    (response) => response.ok,
    () => false,
  );
}
