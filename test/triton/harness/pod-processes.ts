/**
 * What runs in a stack's pods, as processes on this machine: a real Triton, the load controller and one load worker. kwok's pods run
 * nothing; its port-forwards lead to these.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { join, resolve } from "node:path";
import { until } from "../../engine/cluster/program";
import { freePorts } from "../../free-ports";
import { TritonServer } from "./triton-server";

const checkout = resolve(__dirname, "..", "..", "..");

export interface PodPorts {
  /** HTTP, gRPC and metrics of Triton. */
  readonly triton: readonly number[];
  /** Of the controller: for workers, and its HTTP API. */
  readonly workers: number;
  readonly http: number;
}

export interface PodProcessesOptions {
  readonly ports: PodPorts;
  readonly repository: string;
  /** Model that Triton loads at its start. */
  readonly model: string;
  /** Secret of controller and workers. */
  readonly token: string;
  /** Beginning of the addresses of kwok's pods: where the worker is told to load those, it loads this Triton. Default: no such address. */
  readonly podAddresses?: string;
}

/** Ports that are free now; port-forwards need them before anything runs. */
export async function podPorts(): Promise<PodPorts> {
  const [http, grpc, metrics, workers, controller] = await freePorts(5);
  return { triton: [http!, grpc!, metrics!], workers: workers!, http: controller! };
}

export class PodProcesses {
  private controller: ChildProcess | undefined;
  private worker: ChildProcess | undefined;

  private constructor(
    private readonly options: PodProcessesOptions,
    private server: TritonServer,
  ) {}

  static async start(options: PodProcessesOptions): Promise<PodProcesses> {
    const processes = new PodProcesses(options, await startTriton(options, options.model));
    await processes.startController();
    processes.startWorker();
    await processes.untilConnected();
    return processes;
  }

  get triton(): TritonServer {
    return this.server;
  }

  /** Triton's pod is replaced: the new one loads what the stack says. */
  async replaceTriton(model: string = this.options.model): Promise<void> {
    await this.server.stop();
    this.server = await startTriton(this.options, model);
  }

  /** The controller's pod is replaced: it forgets what it did, and the worker comes back to it. */
  async replaceController(): Promise<void> {
    await ended(this.controller);
    await this.startController();
  }

  /** The worker is evicted, and another one starts elsewhere. */
  async replaceWorker(): Promise<void> {
    await ended(this.worker);
    this.startWorker();
    await this.untilConnected();
  }

  async stop(): Promise<void> {
    await Promise.all([ended(this.worker), ended(this.controller), this.server.stop()]);
  }

  private async startController(): Promise<void> {
    const { workers, http } = this.options.ports;
    const words = ["--port", String(workers), "--http-port", String(http)];
    this.controller = this.spawn("loadgen/controller-main.ts", words);
    await until("the controller answers", async () => (await fetch(`http://127.0.0.1:${http}/healthz`)).ok);
  }

  private startWorker(): void {
    const { ports, podAddresses } = this.options;
    const words = ["--controller", `127.0.0.1:${ports.workers}`, "--name", "load-worker-1"];
    const preload = podAddresses === undefined ? [] : ["--require", join(__dirname, "as-in-pod.cjs")];
    const asInPod = { addresses: podAddresses, port: ports.triton[1], checkout };
    this.worker = this.spawn("loadgen/worker-main.ts", words, preload, {
      AS_IN_POD: JSON.stringify(asInPod),
    });
  }

  private untilConnected(): Promise<unknown> {
    return until("the worker is connected", async () => {
      const health = await (await fetch(`http://127.0.0.1:${this.options.ports.http}/healthz`)).json();
      return (health as { workers: number }).workers === 1;
    });
  }

  private spawn(
    file: string,
    words: readonly string[],
    before: readonly string[] = [],
    variables: Readonly<Record<string, string>> = {},
  ): ChildProcess {
    const child = spawn(process.execPath, [...before, "--import", "tsx", join(checkout, file), ...words], {
      cwd: checkout,
      stdio: "ignore",
      env: { ...process.env, LOADGEN_TOKEN: this.options.token, ...variables },
    });
    process.once("exit", () => child.kill("SIGKILL"));
    return child;
  }
}

function startTriton({ repository, ports }: PodProcessesOptions, model: string): Promise<TritonServer> {
  return TritonServer.start({ repository, loadModels: [model], ports: ports.triton });
}

async function ended(child: ChildProcess | undefined): Promise<void> {
  if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const exit = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGKILL");
  await exit;
}
