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
import type { SendLoop } from "../loadgen/send-loop";
import { CONNECTIONS, cpuPerRequestMs, flatOut, paced, payload } from "./load-work";

const [requests = 3000, rounds = 3, pacedPerS = 400] = process.argv.slice(2).map(Number);
const kinds: readonly LoadSpec["transport"][] = ["lean", "grpc-js"];

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
      const transport = createTransport(kind, { address, payloads: [payload], connections: CONNECTIONS });
      await transport.connect();
      await flatOut(transport, requests);
      const flat = await cpuPerRequestMs(() => flatOut(transport, requests));
      let loop: SendLoop | undefined;
      const slow = await cpuPerRequestMs(async () => {
        loop = await paced(transport, address, pacedPerS, 0);
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
