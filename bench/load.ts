/**
 * `npm run bench:load`: CPU per 602,112-byte request, highest rate, lateness and memory of load generators, against one server in one run:
 * this project's two transports, h2load, Python grpcio with a serialized request, Locust. 32 in flight over 4 connections each; rounds
 * alternate, so that a busy machine hits all alike; medians are reported. Figures of a shared machine are ratios only.
 *
 * h2load is Debian's nghttp2-client; grpcio and Locust come from a Python environment outside the checkout:
 *   python3 -m venv DIR && DIR/bin/pip install grpcio==1.66.2 locust==2.32.1      then: npm run bench:load -- --python DIR/bin/python
 */
import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Command } from "commander";
import { CONNECTIONS, IN_FLIGHT, payload } from "./load-work";

/** A line of the result file. */
interface ClientResult {
  readonly name: string;
  readonly cpuMsPerRequest: number;
  readonly rps: number;
  /** Null: the client follows no schedule, or does not say how late it is. */
  readonly latenessP99Ms: number | null;
  readonly peakRssMb: number;
}

type Figures = Omit<ClientResult, "name">;

interface Client {
  readonly name: string;
  /** Why it cannot run here; null: it can. */
  readonly missing: string | null;
  readonly run: () => Promise<Figures>;
}

const options = new Command("bench:load")
  .option("--requests <n>", "requests a round and client", Number, 2000)
  .option("--rounds <n>", "rounds", Number, 3)
  .option("--rate <n>", "rate of the paced part, requests per second", Number, 500)
  .option("--python <file>", "Python with grpcio and locust", "python3")
  .option("--json <file>", "writes the medians as JSON")
  .parse()
  .opts<{ requests: number; rounds: number; rate: number; python: string; json?: string }>();

const folder = mkdtempSync(join(tmpdir(), "bench-load-"));

/** Standard output and error of a command. @throws Error with its last words when it fails */
function run(
  file: string,
  args: readonly string[],
  env: Record<string, string> = {},
  onStart?: (child: ChildProcess) => void,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, { env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "pipe"] });
    let text = "";
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (chunk: Buffer) => (text += chunk.toString()));
    child.once("error", reject);
    child.once("exit", (code) =>
      code === 0 ? resolve(text) : reject(new Error(`${file} ended with ${code}: ${text.slice(-500)}`)),
    );
    onStart?.(child);
  });
}

function figuresIn(text: string): Figures {
  const line = text.split("\n").find((candidate) => candidate.startsWith("{"));
  if (line === undefined) throw new Error(`a client printed no figures: ${text.slice(-500)}`);
  return JSON.parse(line) as Figures;
}

function ours(transport: "lean" | "grpc-js", address: string): Client {
  const args = [
    "--import",
    "tsx",
    join(__dirname, "clients/ours.ts"),
    transport,
    address,
    String(options.requests),
    String(options.rate),
  ];
  return {
    name: `ours-${transport}`,
    missing: null,
    run: async () => figuresIn(await run(process.execPath, args)),
  };
}

function h2load(address: string): Client {
  const file = join(folder, "prefixed");
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(payload.length, 1);
  writeFileSync(file, Buffer.concat([prefix, payload]));
  const command = [
    ...[
      "h2load",
      "-n",
      String(options.requests),
      "-c",
      String(CONNECTIONS),
      "-m",
      String(IN_FLIGHT / CONNECTIONS),
      "-t",
      "1",
    ],
    ...["-d", file, "-H", "content-type: application/grpc", "-H", "te: trailers"],
    `http://${address}/inference.GRPCInferenceService/ModelInfer`,
  ];
  return {
    name: "h2load",
    missing: spawnSync("h2load", ["--version"]).error ? "apt-get install nghttp2-client" : null,
    run: async () => {
      // The shell's own clock sees all of the process, whose start is negligible.
      const script = 'TIMEFORMAT="CPU %U %S"; time "$@"';
      let peakRssMb = 0;
      let timer: NodeJS.Timeout | undefined;
      const text = await run("bash", ["-c", script, "bash", ...command], {}, ({ pid }) => {
        timer = setInterval(() => (peakRssMb = Math.max(peakRssMb, childRssMb(pid!))), 50);
      }).finally(() => clearInterval(timer));
      const [, user, system] = /CPU ([\d.]+) ([\d.]+)/.exec(text) ?? [];
      const [, perS] = /finished in [\d.]+m?s, ([\d.]+) req\/s/.exec(text) ?? [];
      if (!text.includes(`${options.requests} succeeded`)) throw new Error(`h2load: ${text.slice(-500)}`);
      const cpuMsPerRequest = (1000 * (Number(user) + Number(system))) / options.requests;
      return { cpuMsPerRequest, rps: Number(perS), latenessP99Ms: null, peakRssMb };
    },
  };
}

/** Peak memory of a process's only child, megabytes; 0 while there is none. */
function childRssMb(pid: number): number {
  try {
    const [child] = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ");
    const [, kB] = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${child}/status`, "utf8")) ?? [];
    return Number(kB ?? 0) / 1000;
  } catch {
    return 0; // it has not started, or has just ended
  }
}

function pythonClients(address: string): Client[] {
  const file = join(folder, "payload");
  writeFileSync(file, payload);
  const has = (module: string): string | null =>
    spawnSync(options.python, ["-c", `import ${module}`]).status === 0
      ? null
      : `no Python module ${module}: --python FILE`;
  const env = { BENCH_ADDRESS: address, BENCH_PAYLOAD: file, BENCH_REQUESTS: String(options.requests) };
  const locustArgs = [
    ...["-m", "locust", "-f", join(__dirname, "clients/locustfile.py"), "--headless", "--only-summary"],
    ...["-u", String(IN_FLIGHT), "-r", String(IN_FLIGHT), "-t", "5m"],
  ];
  return [
    {
      name: "grpcio",
      missing: has("grpc"),
      run: async () =>
        figuresIn(
          await run(options.python, [
            join(__dirname, "clients/grpcio_client.py"),
            address,
            file,
            String(options.requests),
          ]),
        ),
    },
    {
      name: "locust",
      missing: has("locust"),
      run: async () => figuresIn(await run(options.python, locustArgs, env)),
    },
  ];
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((one, other) => one - other);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

function mediansOf(name: string, rounds: readonly Figures[]): ClientResult {
  const lateness = rounds.flatMap(({ latenessP99Ms }) => (latenessP99Ms === null ? [] : [latenessP99Ms]));
  return {
    name,
    cpuMsPerRequest: median(rounds.map(({ cpuMsPerRequest }) => cpuMsPerRequest)),
    rps: median(rounds.map(({ rps }) => rps)),
    latenessP99Ms: lateness.length === 0 ? null : median(lateness),
    peakRssMb: Math.max(...rounds.map(({ peakRssMb }) => peakRssMb)),
  };
}

function table(clients: readonly ClientResult[]): string {
  const reference = clients.find(({ name }) => name === "h2load") ?? clients[0]!;
  const rows = clients.map(({ name, cpuMsPerRequest, rps, latenessP99Ms, peakRssMb }) => [
    name,
    cpuMsPerRequest.toFixed(3),
    (cpuMsPerRequest / reference.cpuMsPerRequest).toFixed(2),
    rps.toFixed(0),
    (1000 / cpuMsPerRequest).toFixed(0),
    latenessP99Ms === null ? "-" : latenessP99Ms.toFixed(2),
    peakRssMb.toFixed(0),
  ]);
  const head = [
    "client",
    "CPU ms/request",
    `x ${reference.name}`,
    "requests/s",
    "per core",
    `lateness p99 ms at ${options.rate}/s`,
    "peak RSS MB",
  ];
  return [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |\n`).join("");
}

async function main(): Promise<void> {
  const sink = spawn(process.execPath, ["--import", "tsx", join(dirname(__filename), "http2-sink.ts")], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  try {
    const port = await new Promise<string>((resolve) =>
      sink.stdout.once("data", (chunk: Buffer) => resolve(chunk.toString().trim())),
    );
    const address = `127.0.0.1:${port}`;
    const clients = [
      ours("lean", address),
      ours("grpc-js", address),
      h2load(address),
      ...pythonClients(address),
    ];
    for (const { name, missing } of clients)
      if (missing !== null) process.stderr.write(`${name} is left out: ${missing}\n`);
    const able = clients.filter(({ missing }) => missing === null);
    const rounds = new Map(able.map(({ name }) => [name, [] as Figures[]]));
    for (let round = 1; round <= options.rounds; round++)
      for (const client of able) {
        const figures = await client.run();
        rounds.get(client.name)!.push(figures);
        process.stderr.write(
          `round ${round} ${client.name}: ${figures.cpuMsPerRequest.toFixed(3)} CPU ms/request, ${figures.rps.toFixed(0)}/s\n`,
        );
      }
    const results = able.map(({ name }) => mediansOf(name, rounds.get(name)!));
    process.stdout.write(table(results));
    if (options.json !== undefined)
      writeFileSync(options.json, `${JSON.stringify({ clients: results }, null, 2)}\n`);
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
