/** The clients of bench/load.ts: each does the same work in a process of its own, and says what it cost. */
import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { withGrpcPrefix } from "../http2/grpc-prefix";
import { cpuOfMs, onCores, type Cores } from "./cores";
import { CONNECTIONS, IN_FLIGHT, payload, request } from "./load-work";

export interface Figures {
  /** User and system time flat out, without what the start and the warm-up took. Nothing waits awake meanwhile. */
  readonly cpuMsPerRequest: number;
  readonly systemMsPerRequest: number;
  /** What a request cost the server meanwhile; null: not known. On one host the kernel bills work of the receiving side to either. */
  readonly serverMsPerRequest: number | null;
  readonly rps: number;
  /** Null: the client follows no schedule, or does not say how late it is. */
  readonly latenessP99Ms: number | null;
  /** The same with busy waiting; null: it has none. */
  readonly latenessAwakeP99Ms: number | null;
  /** What the busy waiting of that took, cores; null: it has none. */
  readonly awakeShare: number | null;
  /** The same with busy waiting and requests that do nothing: the least that the machine allows. */
  readonly latenessOfNothingP99Ms: number | null;
  readonly peakRssMb: number;
}

export interface Client {
  readonly name: string;
  /** Why it cannot run here; null: it can. */
  readonly missing: string | null;
  readonly run: () => Promise<Figures>;
}

export interface ClientOptions {
  readonly requests: number;
  /** Rate of the paced part, requests per second; 0: there is none. */
  readonly rate: number;
  readonly python: string;
  readonly ghz: string;
  readonly perfAnalyzer: string;
}

/** Where the clients find the server, and where they run. */
export interface Bench {
  readonly address: string;
  readonly serverPid: number;
  /** Null: anywhere. */
  readonly cores: Cores | null;
}

/** Images of the pool that rotates: together far more than a processor's cache, as in a real load. */
const POOL_IMAGES = 64;

/** What a client does not measure. */
const unknownFigures = {
  serverMsPerRequest: null,
  latenessP99Ms: null,
  latenessAwakeP99Ms: null,
  awakeShare: null,
  latenessOfNothingP99Ms: null,
} satisfies Partial<Figures>;

const METHOD = "inference.GRPCInferenceService/ModelInfer";

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

/** Of a client that measures itself. */
function figuresIn(text: string): Figures {
  const line = text.split("\n").find((candidate) => candidate.startsWith("{"));
  if (line === undefined) throw new Error(`a client printed no figures: ${text.slice(-500)}`);
  return { ...unknownFigures, ...(JSON.parse(line) as Figures) };
}

function ours(
  name: string,
  transport: "lean" | "grpc-js",
  images: number,
  { address, serverPid, cores }: Bench,
  { requests, rate }: ClientOptions,
): Client {
  const script = join(__dirname, "clients/ours.ts");
  const args = [transport, images, address, requests, rate, serverPid].map(String);
  const command = onCores(cores?.clients, [process.execPath, "--import", "tsx", script, ...args]);
  return { name, missing: null, run: async () => figuresIn(await run(command[0]!, command.slice(1))) };
}

interface Timed {
  readonly userS: number;
  readonly systemS: number;
  readonly peakRssMb: number;
  readonly output: string;
}

/** A whole process by the shell's clock. */
async function timed(cores: Cores | null, bare: readonly string[]): Promise<Timed> {
  const command = onCores(cores?.clients, bare);
  const script = 'TIMEFORMAT="CPU %U %S"; time "$@"';
  let peakRssMb = 0;
  let timer: NodeJS.Timeout | undefined;
  const output = await run("bash", ["-c", script, "bash", ...command], {}, ({ pid }) => {
    timer = setInterval(() => (peakRssMb = Math.max(peakRssMb, childRssMb(pid!))), 50);
  }).finally(() => clearInterval(timer));
  const [, user, system] = /CPU ([\d.]+) ([\d.]+)/.exec(output) ?? [];
  return { userS: Number(user), systemS: Number(system), peakRssMb, output };
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

/**
 * A client that measures nothing of itself: what a run of so few requests costs, its start, is taken off.
 * @param command for so many requests
 * @param rpsIn reads the rate from its output; undefined when not all requests were answered well
 */
function foreign(
  name: string,
  missing: string | null,
  { serverPid, cores }: Bench,
  { requests }: ClientOptions,
  command: (requests: number) => readonly string[],
  rpsIn: (output: string, requests: number) => number | undefined,
): Client {
  return {
    name,
    missing,
    run: async () => {
      const all = requests + IN_FLIGHT;
      const start = await timed(cores, command(IN_FLIGHT));
      const serverBeforeMs = cpuOfMs(serverPid);
      const { userS, systemS, peakRssMb, output } = await timed(cores, command(all));
      const serverMsPerRequest = (cpuOfMs(serverPid) - serverBeforeMs) / all;
      const rps = rpsIn(output, all);
      if (rps === undefined) throw new Error(`${name} failed: ${output.slice(-500)}`);
      const systemMsPerRequest = (1000 * (systemS - start.systemS)) / requests;
      const userMsPerRequest = (1000 * (userS - start.userS)) / requests;
      const cpuMsPerRequest = userMsPerRequest + systemMsPerRequest;
      const own = { cpuMsPerRequest, systemMsPerRequest, serverMsPerRequest, rps, peakRssMb };
      return { ...unknownFigures, ...own };
    },
  };
}

function h2load(bench: Bench, folder: string, options: ClientOptions): Client {
  const file = join(folder, "prefixed");
  writeFileSync(file, withGrpcPrefix(payload));
  const load = ["-c", String(CONNECTIONS), "-m", String(IN_FLIGHT / CONNECTIONS), "-t", "1", "-d", file];
  const headers = ["-H", "content-type: application/grpc", "-H", "te: trailers"];
  const missing = spawnSync("h2load", ["--version"]).error ? "apt-get install nghttp2-client" : null;
  return foreign(
    "h2load",
    missing,
    bench,
    options,
    (requests) => [
      "h2load",
      "-n",
      String(requests),
      ...load,
      ...headers,
      `http://${bench.address}/${METHOD}`,
    ],
    (output, requests) => {
      const [, perS] = /finished in [\d.]+m?s, ([\d.]+) req\/s/.exec(output) ?? [];
      return output.includes(`${requests} succeeded`) ? Number(perS) : undefined;
    },
  );
}

function ghz(bench: Bench, payloadFile: string, options: ClientOptions): Client {
  const protos = join(__dirname, "../kserve/proto");
  const what = [
    ...["--insecure", "--proto", join(protos, "grpc_service.proto"), "--import-paths", protos],
    ...["--call", METHOD.replace("/", "."), "--binary-file", payloadFile, "--timeout", "30s"],
    ...["--concurrency", String(IN_FLIGHT), "--connections", String(CONNECTIONS)],
  ];
  const missing = spawnSync(options.ghz, ["--version"]).error ? "--ghz FILE" : null;
  return foreign(
    "ghz",
    missing,
    bench,
    options,
    (requests) => [options.ghz, ...what, "--total", String(requests), bench.address],
    (output, requests) => {
      const [, perS] = /Requests\/sec:\s+([\d.]+)/.exec(output) ?? [];
      return new RegExp(`\\[OK\\]\\s+${requests} responses`).test(output) ? Number(perS) : undefined;
    },
  );
}

function perfAnalyzer(bench: Bench, options: ClientOptions): Client {
  const what = [
    "-m",
    request.modelName,
    "-u",
    bench.address,
    "-i",
    "grpc",
    "--concurrency-range",
    String(IN_FLIGHT),
  ];
  const missing = spawnSync(options.perfAnalyzer, ["--version"]).error ? "--perf-analyzer FILE" : null;
  return foreign(
    "perf_analyzer",
    missing,
    bench,
    options,
    (requests) => [options.perfAnalyzer, ...what, "--request-count", String(requests)],
    (output) => {
      const [, perS] = /Throughput: ([\d.]+) infer\/sec/.exec(output) ?? [];
      return perS === undefined ? undefined : Number(perS);
    },
  );
}

function pythonClients(
  { address, cores }: Bench,
  payloadFile: string,
  { python, requests }: ClientOptions,
): Client[] {
  const has = (module: string): string | null =>
    spawnSync(python, ["-c", `import ${module}`]).status === 0
      ? null
      : `no Python module ${module}: --python FILE`;
  const env = { BENCH_ADDRESS: address, BENCH_PAYLOAD: payloadFile, BENCH_REQUESTS: String(requests) };
  const grpcioArgs = [join(__dirname, "clients/grpcio_client.py"), address, payloadFile, String(requests)];
  const locustArgs = [
    ...["-m", "locust", "-f", join(__dirname, "clients/locustfile.py"), "--headless", "--only-summary"],
    ...["-u", String(IN_FLIGHT), "-r", String(IN_FLIGHT), "-t", "5m"],
  ];
  const client = (name: string, missing: string | null, args: readonly string[]): Client => {
    const command = onCores(cores?.clients, [python, ...args]);
    return { name, missing, run: async () => figuresIn(await run(command[0]!, command.slice(1), env)) };
  };
  return [client("grpcio", has("grpc"), grpcioArgs), client("locust", has("locust"), locustArgs)];
}

/** @param folder for the files that clients read */
export function clientsOf(bench: Bench, folder: string, options: ClientOptions): Client[] {
  const payloadFile = join(folder, "payload");
  writeFileSync(payloadFile, payload);
  return [
    ours("ours-lean", "lean", 1, bench, options),
    h2load(bench, folder, options),
    ours(`ours-lean-${POOL_IMAGES}-images`, "lean", POOL_IMAGES, bench, options),
    ours("ours-grpc-js", "grpc-js", 1, bench, options),
    ...pythonClients(bench, payloadFile, options),
    ghz(bench, payloadFile, options),
    perfAnalyzer(bench, options),
  ];
}
