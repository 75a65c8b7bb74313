/**
 * What runs in a stack's pods, as processes on this machine: a real Triton, the load controller and one load worker. kwok's pods run
 * nothing; its port-forwards lead to these.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { Program, until } from "../../engine/cluster/program";
import { freePorts } from "../../free-ports";
import { TritonServer } from "./triton-server";

const checkout = resolve(__dirname, "..", "..", "..");
const tsx = pathToFileURL(require.resolve("tsx")).href;

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
  private controller: Program | undefined;
  private worker: Program | undefined;
  private readonly logs = mkdtempSync(join(tmpdir(), "pod-processes-"));

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
    rmSync(this.logs, { recursive: true, force: true });
  }

  private async startController(): Promise<void> {
    const { workers, http } = this.options.ports;
    const words = ["--port", String(workers), "--http-port", String(http), "--any-target"];
    const controller = this.run("controller", words);
    this.controller = controller;
    await until("the controller answers, or has ended", async () =>
      controller.running ? (await fetch(`http://127.0.0.1:${http}/healthz`)).ok : true,
    );
    if (!controller.running) throw new Error(`The controller ended at its start:\n${controller.logTail()}`);
  }

  private startWorker(): void {
    const { ports, podAddresses } = this.options;
    const words = ["--controller", `127.0.0.1:${ports.workers}`, "--name", "load-worker-1"];
    const preload = podAddresses === undefined ? [] : ["--require", join(__dirname, "as-in-pod.cjs")];
    const asInPod = { addresses: podAddresses, port: ports.triton[1], checkout };
    this.worker = this.run("worker", words, preload, { AS_IN_POD: JSON.stringify(asInPod) });
  }

  private untilConnected(): Promise<unknown> {
    return until("the worker is connected", async () => {
      const health = await (await fetch(`http://127.0.0.1:${this.options.ports.http}/healthz`)).json();
      return (health as { workers: number }).workers === 1;
    });
  }

  private run(
    name: "controller" | "worker",
    words: readonly string[],
    before: readonly string[] = [],
    variables: Readonly<Record<string, string>> = {},
  ): Program {
    const main = join(checkout, "loadgen", `${name}-main.ts`);
    const log = join(this.logs, `${name}.log`);
    const env = { ...process.env, LOADGEN_TOKEN: this.options.token, ...variables };
    return Program.start(name, process.execPath, [...before, "--import", tsx, main, ...words], log, env);
  }
}

function startTriton({ repository, ports }: PodProcessesOptions, model: string): Promise<TritonServer> {
  return TritonServer.start({ repository, loadModels: [model], ports: ports.triton });
}

async function ended(program: Program | undefined): Promise<void> {
  program?.kill();
  await program?.stop();
}
