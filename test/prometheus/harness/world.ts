/**
 * Everything that Prometheus reads, for real: a Kubernetes API with pods, behind them a real Triton, local-triton (which has a GPU to
 * report) and the load controller with a worker. The pods' addresses and ports are those of the processes, so that Prometheus finds
 * and reads them by the very configuration that the stack deploys.
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { WorkerInfo } from "../../../loadgen/controller";
import type { MeasurementState } from "../../../loadgen/controller-api";
import type { LoadResult, LoadSpec } from "../../../loadgen/load-spec";
import { ruleGroups } from "../../../monitoring/rules";
import type { PrometheusConfig } from "../../../monitoring/prometheus-config";
import type { RulesInput } from "../../../monitoring/rule-types";
import { parseConfig } from "../../../stack/config";
import { prometheusFiles } from "../../../stack/sections/monitoring";
import { parsePrometheusText } from "../../../tuning/prometheus-text";
import { MetricsPoller, windowOf } from "../../../tuning/server-window";
import type { ServerWindow } from "../../../tuning/trial";
import { startCluster, type Cluster } from "../../engine/cluster/cluster";
import { Program, until } from "../../engine/cluster/program";
import { freePorts } from "../../free-ports";
import { writeModel, type TestModel } from "../../local-triton/support";
import { imageFolder } from "../../loadgen/support/spec";
import { TritonServer } from "../../triton/harness/triton-server";
import { Prometheus } from "./prometheus";

const checkout = resolve(__dirname, "..", "..", "..");
const token = "only for tests";
const dims = [32, 32, 3];
/** Bytes of a request's tensor. */
export const requestBytes = 4 * 32 * 32 * 3;

/** Objective of the world. */
export const slo = { percentile: 95, boundMs: 100 } as const;
export const scrapeIntervalS = 1;

/** Alerts' windows and waiting times are shortened: 15 minutes are 7.2 s, an hour is 28.8 s. */
export const rulesInput: RulesInput = {
  scrapeIntervalS,
  sloPercentile: slo.percentile,
  sloBoundMs: slo.boundMs,
  servers: 2,
  loadWorkers: 1,
  timeScale: 0.008,
};

/** A trial's own numbers: of the load, of both servers together, and of each. */
export interface Trial {
  readonly load: LoadResult;
  readonly server: ServerWindow;
  readonly servers: { readonly real: ServerWindow; readonly local: ServerWindow };
}

export type TrialChange = Partial<LoadSpec> & Pick<LoadSpec, "modelName" | "shape" | "measureS">;

export class World {
  /** Results of all measurements so far. */
  readonly results: LoadResult[] = [];
  private tritonServer: TritonServer | undefined;
  private readonly programs = new Map<string, Program>();
  private sequence = 0;

  private constructor(
    private readonly folder: string,
    private readonly modelNames: readonly string[],
    private readonly images: string,
    private readonly cluster: Cluster,
    private readonly ports: {
      readonly real: readonly number[];
      readonly local: readonly number[];
      readonly load: readonly number[];
    },
    readonly startedS: number,
  ) {}

  prometheus!: Prometheus;

  /** @param models what both servers serve; their parameters mean the same service times to both */
  static async start(models: readonly TestModel[]): Promise<World> {
    const folder = mkdtempSync(join(tmpdir(), "prometheus-world-"));
    const repository = join(folder, "models");
    for (const model of models) writeModel(repository, { ...model, dims, classes: 10 });
    const free = await freePorts(8);
    const ports = { real: free.slice(0, 3), local: free.slice(3, 6), load: free.slice(6) };
    const cluster = await startCluster(join(folder, "cluster"));
    const names = models.map(({ name }) => name ?? "");
    const world = new World(folder, names, await imageFolder(2), cluster, ports, Date.now() / 1000);
    try {
      await world.deploy();
    } catch (error) {
      await world.stop();
      throw error;
    }
    return world;
  }

  get addresses(): { readonly real: string; readonly local: string } {
    return { real: `127.0.0.1:${this.ports.real[1]}`, local: `127.0.0.1:${this.ports.local[1]}` };
  }

  get metricsUrls(): { readonly real: string; readonly local: string; readonly load: string } {
    const url = (port: number | undefined) => `http://127.0.0.1:${port}/metrics`;
    return { real: url(this.ports.real[2]), local: url(this.ports.local[2]), load: url(this.ports.load[1]) };
  }

  /** Runs one measurement through the controller's API, with the servers' own figures of its window. */
  async trial(change: TrialChange, whileRunning?: () => Promise<unknown>): Promise<Trial> {
    const spec = this.spec(change);
    const read = (url: string) => async () => (await fetch(url)).text();
    const urls = [this.metricsUrls.real, this.metricsUrls.local];
    const pollers = [urls, ...urls.map((url) => [url])].map(
      (each) => new MetricsPoller(each.map(read), spec.modelName, 500),
    );
    await Promise.all(pollers.map((poller) => poller.start()));
    await this.call(`/measurements/${spec.id}`, { method: "PUT", body: JSON.stringify(spec) });
    const ended = until(
      `measurement ${spec.id} has ended`,
      async () => {
        const state = (await this.call(`/measurements/${spec.id}`)) as MeasurementState;
        return state.state === "running" ? undefined : state;
      },
      (spec.warmupS + spec.measureS) * 1000 + 60_000,
      200,
    );
    // Whatever becomes of the test, the controller has counted this measurement.
    const [watched] = await Promise.allSettled([whileRunning?.()]);
    const state = await ended;
    const polls = await Promise.all(pollers.map((poller) => poller.stop()));
    if (state.state !== "finished") throw new Error(`measurement ${spec.id}: ${JSON.stringify(state)}`);
    this.results.push(state.result);
    if (watched.status === "rejected") throw watched.reason;
    const { measuredFromUnixMs, measuredToUnixMs } = state.result;
    const [server, real, local] = polls.map((each) =>
      windowOf(each, measuredFromUnixMs, measuredToUnixMs, 1000, null),
    );
    return { load: state.result, server: server!, servers: { real: real!, local: local! } };
  }

  /** A gauge of the server with a GPU. */
  async gpuGauge(metric: string): Promise<number> {
    const samples = parsePrometheusText(await (await fetch(this.metricsUrls.local)).text());
    return samples.find(({ name }) => name === metric)?.value ?? NaN;
  }

  /** Stops the real Triton's process; its pod stays. */
  async stopTriton(): Promise<void> {
    await this.tritonServer?.stop();
  }

  /** Starts it again where it was. */
  async startTriton(): Promise<void> {
    this.tritonServer = await TritonServer.start({
      repository: join(this.folder, "models"),
      loadModels: this.modelNames,
      ports: this.ports.real,
    });
  }

  /** Sends a signal to the load worker's process. */
  async signalWorker(signal: "SIGSTOP" | "SIGCONT"): Promise<void> {
    const [worker] = (await this.call("/workers")) as WorkerInfo[];
    if (worker === undefined) throw new Error("no load worker is registered");
    process.kill(worker.pid, signal);
  }

  async stopWorker(): Promise<void> {
    await this.programs.get("worker")?.stop(1000);
  }

  async startWorker(): Promise<void> {
    this.startTs("worker", "loadgen/worker-main.ts", [
      ...["--controller", `127.0.0.1:${this.ports.load[0]}`, "--name", "load-worker-1"],
    ]);
    await until("the worker is registered", async () => {
      const { workers } = (await this.call("/healthz")) as { workers: number };
      return workers === 1;
    });
  }

  /** Resolves when an alert fires with these labels; @throws Error with what fires instead */
  async untilFiring(alertname: string, labels: Readonly<Record<string, string>> = {}, timeoutMs = 30_000) {
    return until(
      `${alertname} fires with ${JSON.stringify(labels)}`,
      async () => {
        const alerts = await this.prometheus.alerts();
        const found = alerts.find(
          (alert) =>
            alert.state === "firing" &&
            alert.labels["alertname"] === alertname &&
            Object.entries(labels).every(([key, value]) => alert.labels[key] === value),
        );
        if (found !== undefined) return found;
        const states = alerts.map(({ labels: { alertname: name }, state }) => `${name} ${state}`);
        throw new Error(`there are: ${states.join(", ") || "no alerts"}`);
      },
      timeoutMs,
      250,
    );
  }

  async untilResolved(alertnames: readonly string[], timeoutMs = 45_000): Promise<void> {
    await until(
      `${alertnames.join(", ")} are over`,
      async () => {
        const names = (await this.prometheus.alerts()).map(({ labels }) => labels["alertname"] ?? "");
        const left = names.filter((name) => alertnames.includes(name));
        if (left.length > 0) throw new Error(`left: ${left.join(", ")}`);
        return true;
      },
      timeoutMs,
      250,
    );
  }

  async stop(): Promise<void> {
    await this.prometheus?.stop();
    await Promise.all([...this.programs.values()].map((program) => program.stop(1000)));
    await this.tritonServer?.stop();
    await this.cluster.stop();
    for (const folder of [this.folder, this.images]) rmSync(folder, { recursive: true, force: true });
  }

  private spec(change: TrialChange): LoadSpec {
    this.sequence++;
    return {
      id: `trial-${this.sequence}`,
      addresses: [this.addresses.real, this.addresses.local],
      inputName: "input",
      outputName: "probabilities",
      inputType: "FP32",
      inputDims: dims,
      imageFolder: this.images,
      knownAnswers: null,
      scoreTolerance: 0,
      checkEvery: 0,
      seed: this.sequence,
      warmupS: 1,
      sloBoundMs: slo.boundMs,
      deadlineMs: 30_000,
      maxInFlight: 5000,
      connectionsPerAddress: 1,
      transport: "lean",
      timeDilation: 1,
      subject: { variant: change.modelName, trial: `test ${this.sequence}` },
      ...change,
    };
  }

  private async call(path: string, init: RequestInit = {}): Promise<unknown> {
    const response = await fetch(`http://127.0.0.1:${this.ports.load[1]}${path}`, {
      ...init,
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    });
    return response.json();
  }

  private startTs(name: string, file: string, words: readonly string[]): void {
    mkdirSync(join(this.folder, "logs"), { recursive: true });
    const program = Program.start(
      name,
      process.execPath,
      ["--import", "tsx", join(checkout, file), ...words],
      join(this.folder, "logs", `${name}.log`),
      { ...process.env, LOADGEN_TOKEN: token },
    );
    this.programs.set(name, program);
  }

  private async deploy(): Promise<void> {
    const { local, load } = this.ports;
    this.startTs("local-triton", "local-triton/main.ts", [
      ...["--model-repository", join(this.folder, "models"), "--model-control-mode", "explicit"],
      ...this.modelNames.flatMap((name) => ["--load-model", name]),
      ...[
        "--http-port",
        String(local[0]),
        "--grpc-port",
        String(local[1]),
        "--metrics-port",
        String(local[2]),
      ],
      ...["--metrics-interval-ms", "1000", "--load-time-ms", "0"],
    ]);
    this.startTs("controller", "loadgen/controller-main.ts", [
      ...["--port", String(load[0]), "--http-port", String(load[1]), "--slo-bound-ms", String(slo.boundMs)],
      "--any-target",
    ]);
    await this.startTriton();
    for (const url of Object.values(this.metricsUrls))
      await until(
        `${url} answers`,
        async () => {
          const ended = [...this.programs.values()].find(({ running }) => !running);
          if (ended !== undefined) throw new Error(`${ended.name} has ended:\n${ended.logTail()}`);
          return (await fetch(url)).ok;
        },
        60_000,
      );
    await this.startWorker();
    await this.addPods();
    this.prometheus = await Prometheus.start(join(this.folder, "prometheus"), this.prometheusFiles());
    await until(
      "Prometheus has read every pod",
      async () => {
        const targets = await this.prometheus.targets();
        const down = targets.filter(({ health }) => health !== "up");
        if (targets.length === 5 && down.length === 0) return true;
        throw new Error(targets.map((target) => JSON.stringify(target)).join("\n") || "no targets");
      },
      60_000,
    );
  }

  /** The deployed files, with a way to the API server that does not need a pod, and with shortened rules. */
  private prometheusFiles(): Readonly<Record<string, string>> {
    const config = parseConfig({ project: "my-project", scrapeIntervalS: String(scrapeIntervalS) });
    const main = JSON.parse(prometheusFiles(config)["prometheus.yml"]!) as PrometheusConfig;
    const scrape_configs = main.scrape_configs.map((scrape) => ({
      ...scrape,
      kubernetes_sd_configs: scrape.kubernetes_sd_configs.map((discovery) => ({
        ...discovery,
        kubeconfig_file: this.cluster.kubeconfig,
      })),
    }));
    return {
      "prometheus.yml": JSON.stringify({ ...main, scrape_configs }),
      "rules.yml": JSON.stringify({ groups: ruleGroups(rulesInput) }),
    };
  }

  private async addPods(): Promise<void> {
    const { api } = this.cluster;
    const size = { cpu: "16", memory: "64Gi", pods: "20" };
    await api.create("/api/v1/nodes", {
      metadata: { name: "node-1" },
      status: { capacity: size, allocatable: size },
    });
    for (const name of ["triton", "load"]) {
      await api.create("/api/v1/namespaces", { metadata: { name } });
      await until(`namespace ${name} has its service account`, () =>
        api.get(`/api/v1/namespaces/${name}/serviceaccounts/default`),
      );
    }
    const triton = (ports: readonly number[]) => ({ http: ports[0]!, grpc: ports[1]!, metrics: ports[2]! });
    await this.addPod("triton", "triton-real", "triton", triton(this.ports.real));
    await this.addPod("triton", "triton-local", "triton", triton(this.ports.local));
    // Not to be read: another program in the same namespace.
    await this.addPod("triton", "other", "other", { metrics: 9 });
    await this.addPod("load", "load-controller-1", "load-controller", {
      http: this.ports.load[1]!,
      workers: this.ports.load[0]!,
    });
  }

  private async addPod(
    namespace: string,
    name: string,
    app: string,
    ports: Readonly<Record<string, number>>,
  ): Promise<void> {
    const { api } = this.cluster;
    const path = `/api/v1/namespaces/${namespace}/pods`;
    const containerPorts = Object.entries(ports).map(([portName, containerPort]) => ({
      name: portName,
      containerPort,
    }));
    await api.create(path, {
      metadata: { name, labels: { app } },
      spec: {
        containers: [{ name: "main", image: "none:1", ports: containerPorts }],
        nodeName: "node-1",
        tolerations: [{ operator: "Exists" }],
      },
    });
    await until(
      `${name} runs`,
      async () => (await api.get(`${path}/${name}`))?.status?.["phase"] === "Running",
    );
    await api.patch(`${path}/${name}/status`, {
      status: { podIP: "127.0.0.1", podIPs: [{ ip: "127.0.0.1" }] },
    });
  }
}
