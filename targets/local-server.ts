/** The embedded server as a child process that serves one variant at one time dilation. */
import { spawn, type ChildProcess } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { z } from "zod";

/** What local-triton prints on one line of standard output when it is ready. */
const readyLine = z.object({
  grpcPort: z.number().int(),
  httpPort: z.number().int(),
  metricsPort: z.number().int(),
});

export interface LocalServerOptions {
  readonly repository: string;
  /** Model that is loaded at the start; null: none. */
  readonly modelName: string | null;
  readonly executor: "simulated-t4" | "onnx";
  readonly timeDilation: number;
  /** Model milliseconds between updates of the GPU metrics. */
  readonly metricsIntervalMs: number;
}

/** Time for a start, which compiles the TypeScript sources on a slow machine. */
const START_TIMEOUT_MS = 60_000;
/** Triton's own drain takes about 2 s; after this a server that does not end is killed. */
const STOP_TIMEOUT_MS = 5_000;

export class LocalServer {
  private constructor(
    private readonly process: ChildProcess,
    readonly options: LocalServerOptions,
    readonly grpcAddress: string,
    readonly metricsUrl: string,
  ) {}

  /** @throws Error with the server's own words when it does not come up. */
  static async start(options: LocalServerOptions): Promise<LocalServer> {
    const child = spawn(
      process.execPath,
      [
        ...["--import", "tsx", join(__dirname, "../local-triton/main.ts")],
        ...["--model-repository", options.repository, "--model-control-mode", "explicit"],
        ...(options.modelName === null ? [] : ["--load-model", options.modelName]),
        ...["--executor", options.executor, "--time-dilation", String(options.timeDilation)],
        ...["--metrics-interval-ms", String(options.metricsIntervalMs)],
        ...["--grpc-port", "0", "--http-port", "0", "--metrics-port", "0", "--exit-with-parent"],
      ],
      { stdio: ["pipe", "pipe", "pipe"] },
    );
    const { grpcPort, metricsPort } = await readiness(child);
    return new LocalServer(
      child,
      options,
      `127.0.0.1:${grpcPort}`,
      `http://127.0.0.1:${metricsPort}/metrics`,
    );
  }

  get running(): boolean {
    return this.process.exitCode === null && this.process.signalCode === null;
  }

  async stop(): Promise<void> {
    if (!this.running) return;
    const exited = new Promise<void>((resolve) => this.process.once("exit", () => resolve()));
    this.process.kill("SIGTERM");
    const killer = setTimeout(() => this.process.kill("SIGKILL"), STOP_TIMEOUT_MS);
    await exited;
    clearTimeout(killer);
  }
}

function readiness(child: ChildProcess): Promise<z.infer<typeof readyLine>> {
  return new Promise((resolve, reject) => {
    let complaint = "";
    child.stderr!.setEncoding("utf8").on("data", (text: string) => {
      complaint = (complaint + text).slice(-2000);
    });
    const timer = setTimeout(() => {
      child.kill("SIGKILL");
      reject(
        new Error(`the local server was not ready after ${START_TIMEOUT_MS / 1000} s: ${complaint.trim()}`),
      );
    }, START_TIMEOUT_MS);
    child.once("error", reject);
    child.once("exit", (code, signal) => {
      clearTimeout(timer);
      reject(new Error(`the local server ended at its start (${code ?? signal}): ${complaint.trim()}`));
    });
    createInterface({ input: child.stdout! }).once("line", (line) => {
      clearTimeout(timer);
      try {
        resolve(readyLine.parse(JSON.parse(line)));
      } catch {
        reject(
          new Error(`the local server printed something unexpected at its start: ${line.slice(0, 200)}`),
        );
      }
    });
  });
}
