/**
 * Client process of bench/load.ts: one transport, flat out and then paced. Arguments: transport, number of images, host:port, requests,
 * paced rate, process id of the server.
 */
import { createTransport } from "../../loadgen/create-transport";
import { busyWaitedMs } from "../../loadgen/wake-timer";
import { cpuOfMs } from "../cores";
import type { Figures } from "../load-clients";
import {
  AWAKE_MS,
  CONNECTIONS,
  cpuPerRequestMs,
  flatOut,
  nothing,
  paced,
  payload,
  WARMUP_REQUESTS,
} from "../load-work";

async function main(): Promise<void> {
  const [kind, images, address = "", requestsText, rateText, serverPid] = process.argv.slice(2);
  const payloads = Array.from({ length: Number(images) }, () => Buffer.from(payload));
  const requests = Number(requestsText);
  const transport = createTransport(kind === "lean" ? "lean" : "grpc-js", {
    ...{ address, payloads, connections: CONNECTIONS },
  });
  await transport.connect();
  await flatOut(transport, WARMUP_REQUESTS, payloads.length);
  const serverBeforeMs = cpuOfMs(Number(serverPid));
  const { cpuMs, systemMs, perS } = await cpuPerRequestMs(() =>
    flatOut(transport, requests, payloads.length),
  );
  const serverMs = cpuOfMs(Number(serverPid)) - serverBeforeMs;
  const { maxRSS } = process.resourceUsage();
  const ratePerS = Number(rateText);
  const latenessP99Ms = async (sender: typeof nothing, busyWaitMs: number): Promise<number | null> => {
    if (ratePerS === 0) return null;
    const { measured } = await paced(sender, address, ratePerS, busyWaitMs, payloads.length);
    return measured.lateness.percentileUs(0.99) / 1000;
  };
  const awake = async (): Promise<Pick<Figures, "latenessAwakeP99Ms" | "awakeShare">> => {
    const from = { atMs: performance.now(), waitedMs: busyWaitedMs() };
    const latenessAwakeP99Ms = await latenessP99Ms(transport, AWAKE_MS);
    const awakeShare = (busyWaitedMs() - from.waitedMs) / (performance.now() - from.atMs);
    return { latenessAwakeP99Ms, awakeShare: latenessAwakeP99Ms === null ? null : awakeShare };
  };
  const figures: Figures = {
    cpuMsPerRequest: cpuMs,
    systemMsPerRequest: systemMs,
    serverMsPerRequest: serverMs / requests,
    rps: perS,
    latenessP99Ms: await latenessP99Ms(transport, 0),
    ...(await awake()),
    latenessOfNothingP99Ms: await latenessP99Ms(nothing, AWAKE_MS),
    peakRssMb: maxRSS / 1000,
  };
  await transport.close();
  process.stdout.write(`${JSON.stringify(figures)}\n`);
}

void main().then(() => process.exit(0));
