/**
 * `npm run bench:load`: CPU per 602,112-byte request, highest rate, lateness and memory of load generators, against one server in one run:
 * this project's two transports, h2load, Python grpcio with a serialized request, Locust, ghz, perf_analyzer. 32 in flight over 4 connections
 * each (perf_analyzer opens its own number), one image (h2load can send no more), and ours with a pool of images as a row of its own. Rounds alternate, so that a busy machine hits all alike; medians are reported, and for the ratio to
 * h2load the median over the rounds with its least and largest. Figures of a shared machine are ratios only.
 *
 * What is not there is left out, and said so. h2load is Debian's nghttp2-client; the others come from outside the checkout:
 *   python3 -m venv DIR && DIR/bin/pip install grpcio==1.66.2 locust==2.32.1       --python DIR/bin/python
 *   GOBIN=DIR go install github.com/bojand/ghz/cmd/ghz@v0.93.0                     --ghz DIR/ghz
 *   pip install perf-analyzer==2.60.0 (needs glibc 2.38)                           --perf-analyzer DIR/bin/perf_analyzer
 */
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Command } from "commander";
import { divideCores, onCores } from "./cores";
import { clientsOf, type Client, type ClientOptions, type Figures } from "./load-clients";
import { AWAKE_MS } from "./load-work";

/** A line of the result file. */
interface ClientResult extends Figures {
  readonly name: string;
}

const options = new Command("bench:load")
  .option("--requests <n>", "requests a round and client", Number, 2000)
  .option("--rounds <n>", "rounds", Number, 5)
  .option("--rate <n>", "rate of the paced part, requests per second; 0: there is none", Number, 500)
  .option("--only <names>", "clients, by name, with commas")
  .option("--python <file>", "Python with grpcio and locust", "python3")
  .option("--ghz <file>", "ghz", "ghz")
  .option("--perf-analyzer <file>", "perf_analyzer", "perf_analyzer")
  .option("--no-pin", "leave it to the scheduler where server and clients run")
  .option("--json <file>", "writes the medians as JSON")
  .parse()
  .opts<ClientOptions & { rounds: number; only?: string; pin: boolean; json?: string }>();

const REFERENCE = "h2load";

function median(values: readonly number[]): number {
  const sorted = [...values].sort((one, other) => one - other);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** Median of what the rounds know; null when they know nothing. */
function medianKnown(values: readonly (number | null)[]): number | null {
  const known = values.filter((value) => value !== null && !Number.isNaN(value)) as number[];
  return known.length === 0 ? null : median(known);
}

function mediansOf(name: string, rounds: readonly Figures[]): ClientResult {
  return {
    name,
    cpuMsPerRequest: median(rounds.map(({ cpuMsPerRequest }) => cpuMsPerRequest)),
    systemMsPerRequest: median(rounds.map(({ systemMsPerRequest }) => systemMsPerRequest)),
    serverMsPerRequest: medianKnown(rounds.map(({ serverMsPerRequest }) => serverMsPerRequest)),
    rps: median(rounds.map(({ rps }) => rps)),
    latenessP99Ms: medianKnown(rounds.map(({ latenessP99Ms }) => latenessP99Ms)),
    latenessAwakeP99Ms: medianKnown(rounds.map(({ latenessAwakeP99Ms }) => latenessAwakeP99Ms)),
    awakeShare: medianKnown(rounds.map(({ awakeShare }) => awakeShare)),
    latenessOfNothingP99Ms: medianKnown(rounds.map(({ latenessOfNothingP99Ms }) => latenessOfNothingP99Ms)),
    peakRssMb: Math.max(...rounds.map(({ peakRssMb }) => peakRssMb)),
  };
}

/** Median, least and largest ratio over the rounds. */
function ratioTo(reference: readonly Figures[] | undefined, rounds: readonly Figures[]): string {
  if (reference === undefined) return "-";
  const ratios = rounds.map(({ cpuMsPerRequest }, i) => cpuMsPerRequest / reference[i]!.cpuMsPerRequest);
  return `${median(ratios).toFixed(2)} (${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)})`;
}

function table(measured: ReadonlyMap<string, readonly Figures[]>): string {
  const figure = (value: number | null, digits: number): string =>
    value === null ? "-" : value.toFixed(digits);
  const rows = [...measured].map(([name, rounds]) => {
    const medians = mediansOf(name, rounds);
    const { cpuMsPerRequest, systemMsPerRequest, serverMsPerRequest, rps, peakRssMb } = medians;
    return [
      ...[name, figure(cpuMsPerRequest, 3), figure(cpuMsPerRequest - systemMsPerRequest, 3)],
      ...[figure(systemMsPerRequest, 3), figure(serverMsPerRequest, 3)],
      ...[ratioTo(measured.get(REFERENCE), rounds), figure(rps, 0), figure(1000 / cpuMsPerRequest, 0)],
      ...[figure(medians.latenessP99Ms, 2), figure(medians.latenessAwakeP99Ms, 2)],
      ...[figure(medians.awakeShare, 2), figure(medians.latenessOfNothingP99Ms, 2), figure(peakRssMb, 0)],
    ];
  });
  const head = [
    ...["client", "CPU ms/request", "user", "system", "server's CPU", `x ${REFERENCE} (range)`],
    ...["requests/s", "per core", `lateness p99 ms at ${options.rate}/s`, `awake ${AWAKE_MS} ms`],
    ...["cores awake", "awake, sending nothing", "peak RSS MB"],
  ];
  return [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |\n`).join("");
}

async function measure(clients: readonly Client[]): Promise<Map<string, Figures[]>> {
  const measured = new Map(clients.map(({ name }) => [name, [] as Figures[]]));
  for (let round = 1; round <= options.rounds; round++)
    for (const client of clients) {
      const figures = await client.run();
      measured.get(client.name)!.push(figures);
      process.stderr.write(
        `round ${round} ${client.name}: ${figures.cpuMsPerRequest.toFixed(3)} CPU ms/request, ${figures.rps.toFixed(0)}/s\n`,
      );
    }
  return measured;
}

function selected(clients: readonly Client[]): Client[] {
  const names = options.only?.split(",");
  const unknown = names?.find((name) => clients.every((client) => client.name !== name));
  if (unknown !== undefined)
    throw new Error(
      `--only: there is no client ${unknown}; there are ${clients.map(({ name }) => name).join(", ")}`,
    );
  const asked = clients.filter(({ name }) => names?.includes(name) ?? true);
  for (const { name, missing } of asked)
    if (missing !== null) process.stderr.write(`${name} is left out: ${missing}\n`);
  return asked.filter(({ missing }) => missing === null);
}

async function main(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "bench-load-"));
  const cores = options.pin ? divideCores() : null;
  process.stderr.write(
    cores === null
      ? "server and clients share the cores: the ratios wander with where the scheduler puts them\n"
      : `server on core ${cores.server.join()}, clients on ${cores.clients.join()}\n`,
  );
  const server = [process.execPath, "--import", "tsx", join(__dirname, "http2-sink.ts")];
  const [file = "", ...args] = onCores(cores?.server, server);
  const sink = spawn(file, args, {
    stdio: ["pipe", "pipe", "inherit"],
  });
  try {
    const port = await new Promise<string>((resolve) =>
      sink.stdout.once("data", (chunk: Buffer) => resolve(chunk.toString().trim())),
    );
    // taskset becomes the command that it starts: the id stays
    const bench = { address: `127.0.0.1:${port}`, serverPid: sink.pid!, cores };
    const measured = await measure(selected(clientsOf(bench, folder, options)));
    process.stdout.write(table(measured));
    process.stdout.write(
      "CPU is that of sending flat out, where nothing waits awake; what busy waiting takes at the paced rate stands apart (cores awake).\n",
    );
    const clients = [...measured].map(([name, rounds]) => mediansOf(name, rounds));
    if (options.json !== undefined) writeFileSync(options.json, `${JSON.stringify({ clients }, null, 2)}\n`);
  } finally {
    sink.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  }
}

main().then(
  () => process.exit(0),
  (error: unknown) => {
    process.stderr.write(`bench:load: ${error instanceof Error ? error.message : String(error)}\n`);
    process.exit(1);
  },
);
