/**
 * CPU of the load generator's transports: milliseconds (user + system, this process) per request of 602,112 bytes of tensor, against
 * one node:http2 sink in its own process. Flat out with 32 in flight over 4 connections; then paced through the send loop, where
 * lateness is reported. Rounds alternate, so that a busy machine hits both alike.
 * Run: npx tsx bench/transports.ts [requests a round, default 3000] [rounds, default 3] [paced rate per second, default 400]
 */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { createTransport } from "../loadgen/create-transport";
import type { LoadSpec } from "../loadgen/load-spec";
import { createPlan } from "../loadgen/schedule";
import { SendLoop } from "../loadgen/send-loop";
import type { Transport } from "../loadgen/transport";
import { processTime } from "../loadgen/wake-timer";

const [requests = 3000, rounds = 3, pacedPerS = 400] = process.argv.slice(2).map(Number);
const kinds: readonly LoadSpec["transport"][] = ["lean", "grpc-js"];
const inFlight = 32;
const payload = Buffer.alloc(602_112 + 100, 7);

async function cpuPerRequestMs(work: () => Promise<number>): Promise<{ cpuMs: number; perS: number }> {
  const cpuBefore = process.cpuUsage();
  const startedMs = performance.now();
  const count = await work();
  const { user, system } = process.cpuUsage(cpuBefore);
  return { cpuMs: (user + system) / 1000 / count, perS: (count * 1000) / (performance.now() - startedMs) };
}

async function flatOut(transport: Transport): Promise<number> {
  let left = requests;
  const client = async (): Promise<void> => {
    while (left-- > 0) {
      const { status, message } = await transport.infer(0, 30_000);
      if (status !== 0) throw new Error(`status ${status}: ${message}`);
    }
  };
  await Promise.all(Array.from({ length: inFlight }, client));
  return requests;
}

async function paced(transport: Transport, address: string): Promise<SendLoop> {
  const loop = new SendLoop({
    plan: createPlan({ kind: "poisson", ratePerS: pacedPerS }, 1, { index: 0, count: 1 }),
    time: processTime,
    send: async (deadlineMs) => ({ ...(await transport.infer(0, deadlineMs)), address, error: undefined }),
    warmupS: 0.5,
    measureS: 5,
    sloBoundMs: 100,
    deadlineMs: 5000,
    maxInFlight: 1000,
    timeDilation: 1,
  });
  await loop.run(performance.now() + 50);
  return loop;
}

async function main(): Promise<void> {
  const sink = spawn(process.execPath, ["--import", "tsx", join(__dirname, "http2-sink.ts")], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const port = await new Promise<string>((resolve) =>
    sink.stdout.once("data", (chunk: Buffer) => resolve(chunk.toString().trim())),
  );
  const address = `127.0.0.1:${port}`;
  for (let round = 1; round <= rounds; round++) {
    for (const kind of kinds) {
      const transport = createTransport(kind, { address, payloads: [payload], connections: 4 });
      await transport.connect();
      await flatOut(transport);
      const flat = await cpuPerRequestMs(() => flatOut(transport));
      let loop: SendLoop | undefined;
      const slow = await cpuPerRequestMs(async () => {
        loop = await paced(transport, address);
        return loop.measured.slo.total().planned + loop.warmup.slo.total().planned;
      });
      await transport.close();
      const { lateness, response } = loop!.measured;
      const ms = (us: number): string => (us / 1000).toFixed(2);
      console.log(
        `round ${round} ${kind.padEnd(8)} flat out ${flat.cpuMs.toFixed(3)} CPU ms/request, ${flat.perS.toFixed(0)}/s; ` +
          `paced ${pacedPerS}/s ${slow.cpuMs.toFixed(3)} CPU ms/request, lateness p50 ${ms(lateness.percentileUs(0.5))} ` +
          `p99 ${ms(lateness.percentileUs(0.99))} ms, response p99 ${ms(response.percentileUs(0.99))} ms`,
      );
    }
  }
  sink.stdin.end();
}

void main();
