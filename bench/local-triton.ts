/**
 * CPU of the local server: milliseconds (user + system of its process) per ModelInfer of one FP32 image of 224 x 224 x 3, beside a
 * node:http2 server that reads the same bytes and does nothing. The client is the lean transport; rounds alternate, so that a
 * busy machine hits both alike. Linux only (CPU times come from /proc).
 * Run: npx tsx bench/local-triton.ts [requests a round, default 3000] [rounds, default 3] [in flight, default 32]
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { encodeInferRequest } from "../kserve/wire";
import { createTransport } from "../loadgen/create-transport";
import { findVariant } from "../model-repo/catalogue";
import { writeRepository } from "../model-repo/write-repository";

const [requests = 3000, rounds = 3, inFlight = 32] = process.argv.slice(2).map(Number);
const modelName = "tftrt_int8_bs16_count4";
/** Clock ticks a second in /proc/<pid>/stat: fixed in Linux's user interface. */
const TICKS_PER_S = 100;

const raw = Buffer.alloc(602_112);
for (let i = 0; i < raw.length / 4; i++) raw.writeFloatLE((i * 7) % 256, i * 4);
const payload = encodeInferRequest({
  modelName,
  inputName: "input",
  datatype: "FP32",
  shape: [1, 224, 224, 3],
  raw,
  outputName: "probabilities",
  classCount: 1,
});

interface Server {
  readonly name: string;
  readonly child: ChildProcess;
  readonly port: number;
}

function start(name: string, script: string, args: readonly string[]): Promise<Server> {
  const child = spawn(process.execPath, ["--import", "tsx", join(__dirname, script), ...args], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  return new Promise((resolve, reject) => {
    child.once("exit", (code) => reject(new Error(`${name} ended with ${code}`)));
    child.stdout.once("data", (chunk: Buffer) => {
      const line = JSON.parse(chunk.toString()) as number | { grpcPort: number };
      resolve({ name, child, port: typeof line === "number" ? line : line.grpcPort });
    });
  });
}

/** CPU of a process so far, milliseconds. */
function cpuMs(pid: number): { userMs: number; systemMs: number } {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]!.split(" ");
  return {
    userMs: (Number(fields[11]) / TICKS_PER_S) * 1000,
    systemMs: (Number(fields[12]) / TICKS_PER_S) * 1000,
  };
}

async function round({ name, child, port }: Server, counted: boolean): Promise<void> {
  const transport = createTransport("lean", {
    address: `127.0.0.1:${port}`,
    payloads: [payload],
    connections: 4,
  });
  await transport.connect();
  const before = cpuMs(child.pid!);
  const startedMs = performance.now();
  let left = requests;
  const client = async (): Promise<void> => {
    while (left-- > 0) {
      const { status, message } = await transport.infer(0, 30_000);
      if (status !== 0) throw new Error(`${name}: status ${status}: ${message}`);
    }
  };
  await Promise.all(Array.from({ length: inFlight }, client));
  const perS = (requests * 1000) / (performance.now() - startedMs);
  const after = cpuMs(child.pid!);
  await transport.close();
  if (!counted) return;
  const perRequest = (ms: number): string => (ms / requests).toFixed(3);
  const user = after.userMs - before.userMs;
  const system = after.systemMs - before.systemMs;
  process.stdout.write(
    `${name.padEnd(16)} ${perRequest(user + system)} ms/request (user ${perRequest(user)}, system ${perRequest(system)}), ${perS.toFixed(0)}/s\n`,
  );
}

async function main(): Promise<void> {
  const repository = mkdtempSync(join(tmpdir(), "local-triton-bench-"));
  const servers: Server[] = [];
  try {
    await writeRepository([findVariant(modelName)], repository);
    const ports = ["--grpc-port", "0", "--http-port", "0", "--metrics-port", "0"];
    const model = ["--model-repository", repository, "--model-control-mode", "none", "--exit-with-parent"];
    servers.push(await start("local-triton", "../local-triton/main.ts", [...model, ...ports]));
    servers.push(await start("node:http2 sink", "http2-sink.ts", []));
    for (let i = 0; i <= rounds; i++) for (const server of servers) await round(server, i > 0);
  } finally {
    for (const { child } of servers) child.kill("SIGKILL");
    rmSync(repository, { recursive: true, force: true });
  }
}

void main().then(() => process.exit(0));
