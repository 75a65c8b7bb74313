/** Controller in this process and worker processes on this machine: the load generator that needs no set-up. */
import { spawn, type ChildProcess } from "node:child_process";
import { randomBytes } from "node:crypto";
import { extname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { Controller } from "./controller";
import type { MeasurementObserver } from "./controller-run";
import type { LoadClient, LoadProgress, LoadResult, LoadSpec } from "./load-spec";
import { MAX_BUSY_WAIT_MS } from "./wake-timer";

/** A worker process has this long to come up, milliseconds. */
const START_TIMEOUT_MS = 30_000;
/** What is kept of a worker's standard error, characters. */
const KEPT_ERROR_TEXT = 2000;

export interface LocalClusterOptions {
  /** Worker processes, >= 1. */
  readonly workers: number;
  /** The workers wait awake for each planned send this long, milliseconds, 0 to MAX_BUSY_WAIT_MS; each takes a core for it. Default 0: they sleep. */
  readonly busyWaitMs?: number;
  /** Sees the measurements; called once with the controller, before anything is measured. */
  readonly observe?: (controller: () => Controller) => MeasurementObserver;
}

/** Starts controller and workers; resolves when all workers are registered. @throws Error with a worker's last words */
export async function startLocalCluster(options: LocalClusterOptions): Promise<LocalCluster> {
  const { workers, busyWaitMs = 0 } = options;
  if (!Number.isSafeInteger(workers) || workers < 1)
    throw new RangeError(`a load generator needs at least one worker, got ${workers}`);
  if (!(busyWaitMs >= 0 && busyWaitMs <= MAX_BUSY_WAIT_MS))
    throw new RangeError(`load workers wait awake 0 to ${MAX_BUSY_WAIT_MS} ms, got ${busyWaitMs}`);
  const token = randomBytes(32).toString("hex");
  const registered = new Set<number>();
  const observer = options.observe?.(() => controller);
  const controller: Controller = await Controller.listen({
    token,
    onRegister: ({ pid }) => registered.add(pid),
    ...(observer === undefined ? {} : { observer }),
  });
  const cluster = new LocalCluster(controller, token, { workers, busyWaitMs }, registered);
  try {
    await cluster.ready();
  } catch (error) {
    await cluster.close();
    throw error;
  }
  return cluster;
}

export class LocalCluster implements LoadClient {
  private readonly processes = new Map<number, ChildProcess>();
  private lastWords = "";
  /** Rejects when a worker cannot be started. */
  private readonly failed: Promise<never>;
  private fail: (error: Error) => void = () => undefined;
  private closing = false;
  private readonly killAll = (): void => {
    for (const child of this.processes.values()) child.kill("SIGKILL");
  };

  /** Use startLocalCluster. */
  constructor(
    readonly controller: Controller,
    private readonly token: string,
    private readonly options: Required<Pick<LocalClusterOptions, "workers" | "busyWaitMs">>,
    /** Process ids of workers that have registered at some time. */
    private readonly registered: ReadonlySet<number>,
  ) {
    this.failed = new Promise((_, reject) => (this.fail = reject));
    this.failed.catch(() => undefined);
    process.on("exit", this.killAll);
    for (let index = 0; index < options.workers; index++) this.spawnWorker(index);
  }

  /** Process ids of the workers. */
  get pids(): number[] {
    return [...this.processes.values()].flatMap(({ pid }) => (pid === undefined ? [] : [pid]));
  }

  /** Resolves when all workers are registered. @throws Error with a worker's last words */
  async ready(): Promise<void> {
    try {
      await Promise.race([
        this.failed,
        this.controller.waitForWorkers(this.options.workers, START_TIMEOUT_MS),
      ]);
    } catch (error) {
      const words = this.lastWords.trim();
      throw new Error(`${(error as Error).message}${words === "" ? "" : `; its last words:\n${words}`}`);
    }
  }

  /** Waits until all workers are there (a dead one is started again), then runs the measurement. */
  async run(
    spec: LoadSpec,
    onProgress?: (progress: LoadProgress) => void,
    signal?: AbortSignal,
  ): Promise<LoadResult> {
    await this.ready();
    return this.controller.run(spec, onProgress, signal);
  }

  async close(): Promise<void> {
    if (this.closing) return;
    this.closing = true;
    await this.controller.close();
    const gone = [...this.processes.values()].map(
      (child) => new Promise<void>((resolve) => child.once("exit", () => resolve())),
    );
    this.killAll();
    await Promise.all(gone);
    process.off("exit", this.killAll);
  }

  private spawnWorker(index: number): void {
    const extension = extname(__filename);
    // From sources, workers run with the same loader as this process's package has.
    const loader = extension === ".ts" ? ["--import", pathToFileURL(require.resolve("tsx")).href] : [];
    const child = spawn(
      process.execPath,
      [
        ...loader,
        join(__dirname, `worker-main${extension}`),
        ...["--controller", `127.0.0.1:${this.controller.port}`],
        ...["--name", `local-${index + 1}`],
        ...["--busy-wait-ms", String(this.options.busyWaitMs)],
        "--exit-with-stdin",
      ],
      { stdio: ["pipe", "ignore", "pipe"], env: { ...process.env, LOADGEN_TOKEN: this.token } },
    );
    this.processes.set(index, child);
    child.stderr?.on("data", (chunk: Buffer) => {
      this.lastWords = (this.lastWords + chunk.toString("utf8")).slice(-KEPT_ERROR_TEXT);
    });
    child.stdin?.on("error", () => undefined);
    child.on("error", (error) => this.fail(new Error(`a load worker cannot be started: ${error.message}`)));
    child.on("exit", (code, signal) => {
      this.processes.delete(index);
      if (this.closing || this.controller.isEnding) return;
      // One that worked and died (out of memory, killed) is replaced; one that cannot even start would only die again.
      if (child.pid !== undefined && this.registered.has(child.pid)) this.spawnWorker(index);
      else this.fail(new Error(`a load worker ended with ${signal ?? `code ${code}`} before it was ready`));
    });
  }
}
