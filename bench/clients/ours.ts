/** Client process of bench/load.ts: one transport, flat out and then paced. Arguments: transport, host:port, requests, paced rate. */
import { createTransport } from "../../loadgen/create-transport";
import type { Figures } from "../load-clients";
import { CONNECTIONS, cpuPerRequestMs, flatOut, paced, payload, WARMUP_REQUESTS } from "../load-work";

async function main(): Promise<void> {
  const [kind = "lean", address = "", requests = "2000", ratePerS = "500"] = process.argv.slice(2);
  const transport = createTransport(kind === "lean" ? "lean" : "grpc-js", {
    ...{ address, payloads: [payload], connections: CONNECTIONS },
  });
  await transport.connect();
  await flatOut(transport, WARMUP_REQUESTS);
  const { cpuMs, systemMs, perS } = await cpuPerRequestMs(() => flatOut(transport, Number(requests)));
  const { maxRSS } = process.resourceUsage();
  const { lateness } = (await paced(transport, address, Number(ratePerS))).measured;
  const latenessP99Ms = lateness.percentileUs(0.99) / 1000;
  await transport.close();
  const figures: Figures = {
    cpuMsPerRequest: cpuMs,
    systemMsPerRequest: systemMs,
    rps: perS,
    latenessP99Ms,
    peakRssMb: maxRSS / 1000,
  };
  process.stdout.write(`${JSON.stringify(figures)}\n`);
}

void main().then(() => process.exit(0));
