/**
 * Process of the load controller: workers register over gRPC, the tune command calls over HTTP. Token in LOADGEN_TOKEN. SIGTERM or Ctrl-C:
 * a running measurement ends early, its result is kept and handed out; a second one ends the process without further waiting.
 */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Command, InvalidArgumentError } from "commander";
import { bothObservers } from "./both-observers";
import { ConsoleHub } from "./console/console-hub";
import { Controller } from "./controller";
import { controllerApi } from "./controller-api";
import { ControllerMetrics } from "./controller-metrics";
import { HistoryStore } from "./history/history-store";
import { RunRecorder } from "./history/run-recorder";
import { ServerMetrics } from "./history/server-metrics";
import { DEFAULT_GRACE_S, parseGraceS } from "./grace";
import { splitHostPort } from "./host-port";
import { plainAddress } from "./targets";

interface Arguments {
  readonly host: string;
  readonly port: number;
  readonly httpPort: number;
  readonly allowHost: readonly string[];
  readonly sloBoundMs: number;
  readonly target: readonly string[];
  readonly anyTarget: boolean;
  readonly metricsUrl: readonly string[];
  readonly maxRate: number;
  readonly maxInFlight: number;
  readonly stateDir?: string;
  readonly images: string;
  readonly graceS: number;
}

/** More than two workers pass of the smallest requests; whoever needs more says so. */
const DEFAULT_MAX_RATE_PER_S = 100_000;
/** Each is a small object in its worker until it is sent. */
const DEFAULT_MAX_IN_FLIGHT = 100_000;
/** So long after an interrupted measurement its result can still be fetched, milliseconds: callers ask once a second. */
const HAND_OVER_MS = 3000;

function parsePort(text: string): number {
  const port = Number(text);
  if (!/^\d+$/.test(text) || port > 65_535)
    throw new InvalidArgumentError("A port is a number from 0 (a free one) to 65535.");
  return port;
}

function parseMs(text: string): number {
  const ms = Number(text);
  if (!(ms > 0 && ms < Infinity))
    throw new InvalidArgumentError("A bound is a number of milliseconds above 0.");
  return ms;
}

function parseTarget(text: string, before: readonly string[]): readonly string[] {
  try {
    splitHostPort(plainAddress(text));
  } catch (error) {
    throw new InvalidArgumentError((error as Error).message);
  }
  return [...before, text];
}

function parseUrl(text: string, before: readonly string[]): readonly string[] {
  if (!/^https?:\/\//.test(text) || !URL.canParse(text))
    throw new InvalidArgumentError("Give a URL, e.g. http://triton:8002/metrics.");
  return [...before, text];
}

function parseLimit(text: string): number {
  const limit = Number(text);
  if (!(limit > 0)) throw new InvalidArgumentError("A limit is a number above 0.");
  return limit;
}

async function main(): Promise<void> {
  const command = new Command("controller")
    .description(
      "Runs measurements over all registered load workers. The shared token comes in the environment variable LOADGEN_TOKEN.",
    )
    .option("--host <address>", "address to listen on", "127.0.0.1")
    .option("--port <port>", "gRPC port for workers; 0: a free one", parsePort, 8081)
    .option(
      "--http-port <port>",
      "HTTP port of the API, /healthz and /metrics; 0: a free one",
      parsePort,
      8080,
    )
    .option(
      "--allow-host <name>",
      "name under which callers may reach it, repeatable",
      (name: string, names: readonly string[]) => [...names, name],
      [],
    )
    .option(
      "--slo-bound-ms <ms>",
      "bound of the service level objective: a bucket of the response times in /metrics ends there",
      parseMs,
      100,
    )
    .option(
      "--target <host:port>",
      "server that may be loaded, or dns:///NAME:PORT for all its replicas; repeatable",
      parseTarget,
      [],
    )
    .option(
      "--any-target",
      "whoever has the token may load any server that it names; the console offers none then",
      false,
    )
    .option(
      "--metrics-url <url>",
      "metrics of a target, which the console shows beside the load; repeatable",
      parseUrl,
      [],
    )
    .option(
      "--max-rate <n>",
      "hard limit on the offered requests per second",
      parseLimit,
      DEFAULT_MAX_RATE_PER_S,
    )
    .option(
      "--max-in-flight <n>",
      "hard limit on the requests in flight of a measurement",
      parseLimit,
      DEFAULT_MAX_IN_FLIGHT,
    )
    .option(
      "--state-dir <dir>",
      "keeps the history of measurements over restarts; without it, it ends with the process",
    )
    .option(
      "--images <dir>",
      "folder of images in the workers' file system, for loads that the console starts",
      join(__dirname, "../model-repo/images"),
    )
    .option(
      "--grace-s <s>",
      "longest wait for the answers of a running measurement after SIGTERM, seconds",
      parseGraceS,
      DEFAULT_GRACE_S,
    )
    .parse();
  const options = command.opts<Arguments>();
  if (options.anyTarget === options.target.length > 0)
    command.error(
      "error: name each server that may be loaded with --target HOST:PORT, or allow every one with --any-target",
      { exitCode: 2 },
    );
  const token = process.env["LOADGEN_TOKEN"] ?? "";
  if (token === "") {
    process.stderr.write(
      "LOADGEN_TOKEN is not set: give the controller a token, and its workers the same one\n",
    );
    process.exit(2);
  }
  const metrics = new ControllerMetrics({ sloBoundMs: options.sloBoundMs });
  const store = new HistoryStore(options.stateDir ?? mkdtempSync(join(tmpdir(), "load-controller-")));
  const servers = new ServerMetrics(options.metricsUrl);
  const hub = new ConsoleHub(store, () => controller);
  const recorder = new RunRecorder({
    listener: {
      started: (spec) => {
        servers.start();
        hub.started(spec);
      },
      second: (spec, recorded) => hub.second(spec, recorded),
      changed: (spec, change) => hub.changed(spec, change),
      ended: (spec, result) => {
        servers.stop();
        hub.ended(spec, result);
      },
    },
    workers: () => {
      const workers = controller.workers();
      const inFlight = workers.reduce((sum, { heartbeat }) => sum + (heartbeat?.inFlight ?? 0), 0);
      return { count: workers.length, inFlight };
    },
    server: () => servers.reading(),
  });
  const controller: Controller = await Controller.listen({
    token,
    observer: bothObservers(metrics, recorder),
    limits: {
      targets: options.anyTarget ? null : options.target,
      maxRatePerS: options.maxRate,
      maxInFlight: options.maxInFlight,
    },
    host: options.host,
    port: options.port,
    onRegister: ({ name }) => process.stderr.write(`worker ${name} registered\n`),
  });
  const { allowHost: allowedHosts, images: imageFolder } = options;
  const api = controllerApi({ controller, metrics, hub, store, token, allowedHosts, imageFolder });
  await api.listen({ host: options.host, port: options.httpPort });
  const http = api.server.address();
  const httpPort = typeof http === "object" && http !== null ? http.port : options.httpPort;
  process.stdout.write(`${JSON.stringify({ ready: true, port: controller.port, httpPort })}\n`);
  const end = async (signal: string): Promise<void> => {
    const isAgain = controller.isEnding;
    const hadRun = await controller.end(
      `the load controller had to end (${signal})`,
      isAgain ? 0 : options.graceS * 1000,
    );
    if (hadRun && !isAgain) await new Promise((resolve) => setTimeout(resolve, HAND_OVER_MS));
    hub.close();
    await Promise.all([api.close(), controller.close()]);
    process.exit(0);
  };
  for (const signal of ["SIGTERM", "SIGINT"]) process.on(signal, () => void end(signal));
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(1);
});
