/**
 * The local Triton-compatible server as a process. Prints one line of JSON with its ports when it is ready; everything else goes
 * to stderr. Exit codes: 0 ended by SIGTERM, SIGINT or the parent's end; 1 could not start; 2 wrong options.
 */
import { Command, InvalidArgumentError, Option } from "commander";
import type { ModelControlMode } from "./models/model-store";
import { watchParent } from "./parent-watch";
import { type ExecutorName, executorNames } from "./create-executor";
import { LocalTriton } from "./server";

interface CliOptions {
  readonly modelRepository: string;
  readonly host: string;
  readonly grpcPort: number;
  readonly httpPort: number;
  readonly metricsPort: number;
  readonly modelControlMode: ModelControlMode;
  readonly loadModel: readonly string[];
  readonly executor: ExecutorName;
  readonly timeDilation: number;
  readonly loadTimeMs: number;
  readonly metricsIntervalMs: number;
  readonly cpuThreads?: number;
  readonly exitWithParent: boolean;
}

function port(text: string): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || value > 65_535) {
    throw new InvalidArgumentError("A port is a number from 0 (a free one) to 65535.");
  }
  return value;
}

function atLeast(minimum: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (text.trim() === "" || !(value >= minimum) || !Number.isFinite(value)) {
      throw new InvalidArgumentError(`It must be a number >= ${minimum}.`);
    }
    return value;
  };
}

function parseOptions(): CliOptions {
  const command = new Command("local-triton")
    .description(
      "A Triton-compatible inference server (KServe v2) with a simulated NVIDIA T4, or ONNX Runtime on the CPU.",
    )
    .requiredOption("--model-repository <dir>", "folder of the model repository")
    .option("--host <address>", "address to listen on", "127.0.0.1")
    .option("--grpc-port <port>", "gRPC port; 0: a free one", port, 8001)
    .option("--http-port <port>", "HTTP port; 0: a free one", port, 8000)
    .option("--metrics-port <port>", "port of /metrics; 0: a free one", port, 8002)
    .addOption(
      new Option("--model-control-mode <mode>", "who loads models: the repository API, or all at the start")
        .choices(["explicit", "none"])
        .default("none"),
    )
    .option(
      "--load-model <name>",
      "model to load at the start in mode explicit, repeatable; *: all",
      (name: string, names: readonly string[]) => [...names, name],
      [],
    )
    .addOption(
      new Option("--executor <name>", "what executes models")
        .choices([...executorNames])
        .default("simulated-t4"),
    )
    .option("--time-dilation <factor>", "wall seconds per model second", atLeast(1), 1)
    .option("--load-time-ms <ms>", "model time that loading a model takes", atLeast(0), 500)
    .option("--metrics-interval-ms <ms>", "model time between updates of the GPU metrics", atLeast(10), 2000)
    .option(
      "--cpu-threads <n>",
      "threads that an ONNX model's instances share; default: all cores but one",
      atLeast(1),
    )
    .option("--exit-with-parent", "end when the parent process ends", false)
    .exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : 2));
  return command.parse().opts<CliOptions>();
}

async function main(): Promise<void> {
  const options = parseOptions();
  if (options.exitWithParent) watchParent(() => process.exit(0));
  const server = await LocalTriton.start({
    ...options,
    loadModels: options.loadModel,
    log: (line) => process.stderr.write(`${line}\n`),
  });
  let ending = false;
  const end = (): void => {
    // A second signal does not wait for requests.
    if (ending) process.exit(0);
    ending = true;
    void server.shutdown().then(() => process.exit(0));
  };
  process.on("SIGTERM", end);
  process.on("SIGINT", end);
  const { grpc: grpcPort, http: httpPort, metrics: metricsPort } = server.ports;
  const ready = {
    ready: true,
    grpcPort,
    httpPort,
    metricsPort,
    pid: process.pid,
    executor: options.executor,
  };
  process.stdout.write(`${JSON.stringify({ ...ready, timeDilation: options.timeDilation })}\n`);
}

main().catch((error: unknown) => {
  process.stderr.write(`local-triton: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(1);
});
