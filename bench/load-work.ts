/** The work that every client of the load benches does: requests of 602,112 bytes of tensor, flat out or paced. */
import { encodeInferRequest } from "../kserve/wire";
import { createPlan } from "../loadgen/schedule";
import { SendLoop } from "../loadgen/send-loop";
import type { Transport } from "../loadgen/transport";
import { createProcessTime } from "../loadgen/wake-timer";

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

export const IN_FLIGHT = 32;
export const CONNECTIONS = 4;
/**
 * A load generator runs for minutes: what is measured is its steady state. A request costs twice as much at the start, and what it will cost
 * for good after some 15,000, when V8 has compiled, and compiled again, all that it runs through.
 */
export const WARMUP_REQUESTS = 20_000;

/** Busy waiting of the paced part that has some, milliseconds. */
export const AWAKE_MS = 2;

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

/**
 * Always IN_FLIGHT requests, until so many were answered; they rotate over the transport's payloads.
 * @throws Error for any other answer than OK
 */
export async function flatOut(transport: Transport, requests: number, payloads = 1): Promise<number> {
  let left = requests;
  const client = async (): Promise<void> => {
    while (left-- > 0) {
      const { status, message } = await transport.infer(left % payloads, 30_000);
      if (status !== 0) throw new Error(`status ${status}: ${message}`);
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, client));
  return requests;
}

/** Sends nothing and is answered at once: what is late with it is late because of the machine, or of the send loop. */
export const nothing: Pick<Transport, "infer"> = {
  infer: () => Promise.resolve({ status: 0, message: "", serviceTimeUs: 1, reply: undefined }),
};

/**
 * A Poisson load of this rate for six seconds, through the send loop; the requests rotate over the payloads.
 * @param busyWaitMs how long the loop waits awake for a planned send, milliseconds
 */
export async function paced(
  transport: Pick<Transport, "infer">,
  address: string,
  ratePerS: number,
  busyWaitMs: number,
  payloads = 1,
): Promise<SendLoop> {
  let sent = 0;
  const loop = new SendLoop({
    plan: createPlan({ kind: "poisson", ratePerS }, 1, { index: 0, count: 1 }),
    time: createProcessTime(busyWaitMs),
    send: async (deadlineMs) => ({
      ...(await transport.infer(sent++ % payloads, deadlineMs)),
      address,
      error: undefined,
    }),
    warmupS: 0.5,
    measureS: 6,
    sloBoundMs: 100,
    deadlineMs: 5000,
    maxInFlight: 1000,
    timeDilation: 1,
  });
  await loop.run(performance.now() + 50);
  return loop;
}
