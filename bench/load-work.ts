/** The work that every client of the load benches does: requests of 602,112 bytes of tensor, flat out or paced. */
import { encodeInferRequest } from "../kserve/wire";
import { createPlan } from "../loadgen/schedule";
import { SendLoop } from "../loadgen/send-loop";
import type { Transport } from "../loadgen/transport";
import { processTime } from "../loadgen/wake-timer";

/** The request that every client sends: one image of the documents' size. */
export const request = {
  modelName: "bench",
  inputName: "input",
  datatype: "FP32",
  shape: [1, 224, 224, 3],
  raw: Buffer.alloc(602_112, 7),
  outputName: "output",
};
export const payload = encodeInferRequest(request);

/** A gRPC message as it stands in the body: uncompressed, its length in front. */
export function prefixed(message: Buffer): Buffer {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(message.length, 1);
  return Buffer.concat([prefix, message]);
}
export const IN_FLIGHT = 32;
export const CONNECTIONS = 4;
/** A load generator runs for minutes: what is measured is its steady state, after compilers have settled. */
export const WARMUP_REQUESTS = 4000;

/** CPU (user + system, this process) per request, the system's part of it, and requests per second. */
export async function cpuPerRequestMs(
  work: () => Promise<number>,
): Promise<{ cpuMs: number; systemMs: number; perS: number }> {
  const cpuBefore = process.cpuUsage();
  const startedMs = performance.now();
  const count = await work();
  const { user, system } = process.cpuUsage(cpuBefore);
  return {
    cpuMs: (user + system) / 1000 / count,
    systemMs: system / 1000 / count,
    perS: (count * 1000) / (performance.now() - startedMs),
  };
}

/** Always IN_FLIGHT requests, until so many were answered. @throws Error for any other answer than OK */
export async function flatOut(transport: Transport, requests: number): Promise<number> {
  let left = requests;
  const client = async (): Promise<void> => {
    while (left-- > 0) {
      const { status, message } = await transport.infer(0, 30_000);
      if (status !== 0) throw new Error(`status ${status}: ${message}`);
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, client));
  return requests;
}

/** A Poisson load of this rate for five seconds, through the send loop. */
export async function paced(transport: Transport, address: string, ratePerS: number): Promise<SendLoop> {
  const loop = new SendLoop({
    plan: createPlan({ kind: "poisson", ratePerS }, 1, { index: 0, count: 1 }),
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
