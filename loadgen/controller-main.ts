/** Process of the load controller: workers register over gRPC, the tune command calls over HTTP. Token in LOADGEN_TOKEN. */
import { Command, InvalidArgumentError } from "commander";
import { Controller } from "./controller";
import { controllerApi } from "./controller-api";
import { ControllerMetrics } from "./controller-metrics";

interface Arguments {
  readonly host: string;
  readonly port: number;
  readonly httpPort: number;
  readonly allowHost: readonly string[];
  readonly sloBoundMs: number;
}

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

async function main(): Promise<void> {
  const options = new Command("controller")
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
    .parse()
    .opts<Arguments>();
  const token = process.env["LOADGEN_TOKEN"] ?? "";
  if (token === "") {
    process.stderr.write(
      "LOADGEN_TOKEN is not set: give the controller a token, and its workers the same one\n",
    );
    process.exit(2);
  }
  const metrics = new ControllerMetrics({ sloBoundMs: options.sloBoundMs });
  const controller = await Controller.listen({
    token,
    observer: metrics,
    host: options.host,
    port: options.port,
    onRegister: ({ name }) => process.stderr.write(`worker ${name} registered\n`),
  });
  const api = controllerApi({ controller, metrics, token, allowedHosts: options.allowHost });
  await api.listen({ host: options.host, port: options.httpPort });
  const http = api.server.address();
  const httpPort = typeof http === "object" && http !== null ? http.port : options.httpPort;
  process.stdout.write(`${JSON.stringify({ ready: true, port: controller.port, httpPort })}\n`);
  const end = (): void => {
    void Promise.all([api.close(), controller.close()]).then(() => process.exit(0));
  };
  process.on("SIGTERM", end);
  process.on("SIGINT", end);
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(1);
});
