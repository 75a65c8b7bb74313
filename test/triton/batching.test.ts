import { describe, expect, it } from "vitest";
import type { ModelConfig } from "../../model-repo/config-types";
import { simulate } from "../../serving-model/simulate";
import recorded from "../local-triton/fixtures/batching.json";
import { inferSmall, sleep, testConfig, type TestModel } from "../local-triton/support";
import { startLocalSubject, startTritonSubject, type Subject } from "./harness/subjects";

async function batchesOf({ client }: Subject, name = "sim"): Promise<Map<number, number>> {
  const [stats] = await client.modelStatistics(name);
  return new Map(stats!.batch_stats.map((batch) => [batch.batch_size, batch.compute_infer!.count]));
}

function meanOf(batches: ReadonlyMap<number, number>): number {
  let images = 0;
  let executions = 0;
  for (const [size, count] of batches) {
    images += size * count;
    executions += count;
  }
  return images / executions;
}

/** Total variation distance of two distributions of batch sizes, by executions: 0 equal, 1 nothing in common. */
function distance(one: ReadonlyMap<number, number>, other: ReadonlyMap<number, number>): number {
  const total = (batches: ReadonlyMap<number, number>) => [...batches.values()].reduce((a, b) => a + b, 0);
  const sizes = new Set([...one.keys(), ...other.keys()]);
  let sum = 0;
  for (const size of sizes)
    sum += Math.abs((one.get(size) ?? 0) / total(one) - (other.get(size) ?? 0) / total(other));
  return sum / 2;
}

/** Seeded exponential gaps, milliseconds. */
function* gaps(meanMs: number, seed: number): Generator<number> {
  for (let state = seed; ;) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    yield -Math.log(1 - state / 2 ** 32) * meanMs;
  }
}

const SECONDS = 8;

/** The same Poisson arrivals to all servers at the same moments. Returns when they were sent, microseconds from the first. */
async function load(
  servers: readonly Subject[],
  ratePerS: number,
  seconds = SECONDS,
): Promise<Float64Array<ArrayBuffer>> {
  const pending: Promise<unknown>[] = [];
  const sentUs: number[] = [];
  const from = performance.now();
  let plannedMs = 0;
  for (const gapMs of gaps(1000 / ratePerS, 7)) {
    plannedMs += gapMs;
    if (plannedMs > seconds * 1000) break;
    const waitMs = from + plannedMs - performance.now();
    if (waitMs > 1) await sleep(waitMs);
    sentUs.push((performance.now() - from) * 1000);
    for (const { client } of servers) pending.push(inferSmall(client, pending.length));
  }
  await Promise.all(pending);
  return Float64Array.from(sentUs);
}

/** Loads below, near and above what one image at a time could pass, with and without preferred sizes and delay. */
const LOADS: readonly (readonly [name: string, ratePerS: number, model: TestModel])[] = [
  [
    "a delay without preferred sizes",
    60,
    {
      gpuMsPerBatch: 20,
      gpuMsPerImage: 2,
      config: { max_batch_size: 8, dynamic_batching: { max_queue_delay_microseconds: 30_000 } },
    },
  ],
  [
    "the largest size preferred, as the documents do, two instances on one device",
    120,
    {
      gpuMsPerBatch: 25,
      gpuMsPerImage: 1,
      hostMsPerImage: 2,
      config: {
        max_batch_size: 8,
        dynamic_batching: { preferred_batch_size: [8], max_queue_delay_microseconds: 20_000 },
        instance_group: [{ count: 2, kind: "KIND_GPU" }],
      },
    },
  ],
  [
    "no delay: what waits goes as soon as the instance is free",
    80,
    {
      gpuMsPerBatch: 30,
      gpuMsPerImage: 1,
      config: { max_batch_size: 16, dynamic_batching: { max_queue_delay_microseconds: 0 } },
    },
  ],
];

describe("batch sizes under load", () => {
  it.each(LOADS)("%s: local-triton's distribution is Triton's", async (_name, ratePerS, model) => {
    const servers = await Promise.all([startTritonSubject([model]), startLocalSubject([model])]);
    await load(servers, ratePerS);
    const [real, ours] = await Promise.all(servers.map((server) => batchesOf(server)));
    const shown = JSON.stringify({ real: [...real!], ours: [...ours!] });
    expect(meanOf(ours!) / meanOf(real!), shown).toBeCloseTo(1, 1);
    expect(distance(ours!, real!), shown).toBeLessThan(0.15);
    // A comparison of two servers that never batch would say nothing.
    expect(meanOf(real!), shown).toBeGreaterThan(1.5);
  });
});

describe("batch sizes near the limit", () => {
  it("are those of Triton's payload scheduler in simulation, not those of an instance that takes what is queued", async () => {
    const model = {
      hostMsPerImage: 1,
      gpuMsPerBatch: 40,
      gpuMsPerImage: 6,
      config: { max_batch_size: 16, dynamic_batching: { max_queue_delay_microseconds: 20_000 } },
    };
    const server = await startTritonSubject([model]);
    // 105 requests/s are the most that full batches pass.
    const timesUs = await load([server], 90, 20);
    const real = await batchesOf(server);
    const simulated = (scheduler: "payload" | "idle"): Map<number, number> => {
      const { batchSizes } = simulate(
        {
          scheduler,
          maxBatchSize: 16,
          preferredBatchSizes: [],
          queueDelayUs: 20_000,
          instanceCount: 1,
          dynamicBatching: true,
          law: { hostMsPerImage: 1, gpuMsPerBatch: 40, gpuMsPerImage: 6, ingressRequestsPerS: Infinity },
        },
        { shape: { kind: "listed", timesUs }, seed: 1, warmupS: 0, measureS: 60, sloBoundMs: 300 },
      );
      return new Map([...batchSizes.entries()].filter(([, count]) => count > 0));
    };
    const [payload, idle] = [simulated("payload"), simulated("idle")];
    const shown = JSON.stringify({ real: [...real], payload: [...payload], idle: [...idle] });
    expect(distance(real, payload), shown).toBeLessThan(0.2);
    expect(distance(real, payload), shown).toBeLessThan(distance(real, idle) - 0.05);
    expect(meanOf(payload) / meanOf(real), shown).toBeCloseTo(1, 1);
  });
});

/** A batch took this long on the recorded server, whatever its size, milliseconds. */
const BATCH_MS = 300;

/** "20 x batch 1" or a list of batch sizes. */
function sizesOf(requests: string | readonly number[]): readonly number[] {
  if (typeof requests !== "string") return requests;
  const [count, size] = requests.split(" x batch ").map(Number);
  return new Array<number>(count!).fill(size!);
}

type Scenario = (typeof recorded.scenarios)[number];

function modelOf(scenario: Scenario, name: string): TestModel {
  const instances = scenario.config.instance_group?.map(({ count }) => ({
    count,
    kind: "KIND_GPU" as const,
  }));
  const parameters = {
    ...testConfig({ gpuMsPerBatch: BATCH_MS }).parameters,
    // Instances of the recorded server did not share a device.
    standin_own_device: { string_value: "1" },
  };
  const config = { ...(scenario.config as ModelConfig), parameters };
  return { name, config: instances ? { ...config, instance_group: instances } : config };
}

async function play(scenario: Scenario, name: string, server: Subject): Promise<Record<string, number>> {
  const pending: Promise<unknown>[] = [];
  if (scenario.blocker !== null) {
    for (const images of sizesOf(scenario.blocker)) {
      pending.push(inferSmall(server.client, 0, images, name));
      // Each is to occupy an instance by itself; sent together they may be batched.
      await sleep(50);
    }
  }
  const sizes = sizesOf(scenario.requests);
  const isMixed = new Set(sizes).size > 1;
  for (const [index, images] of sizes.entries()) {
    pending.push(inferSmall(server.client, index, images, name));
    // Sent together they may come in any order, which matters where they differ. All are there long before the queue delay is over.
    if (isMixed) await sleep(5);
  }
  await Promise.all(pending);
  return Object.fromEntries(await batchesOf(server, name));
}

describe("recorded bursts", () => {
  // More requests than the largest preferred size, or no delay on an idle instance: what leaves first depends on a race in the
  // server itself.
  const RACES = /^(C|D) preferred .* (6|8|11|13|16|20)$|^E /;
  const steady = recorded.scenarios.filter(
    ({ scenario, gapS, blocker }) =>
      gapS === 0 && !RACES.test(scenario) && !(scenario.startsWith("A greedy") && blocker === null),
  );

  it(`form the same batches again on the stand-in backend, ${steady.length} of them`, async () => {
    const named = steady.map((scenario, index) => [scenario, `burst_${index}`] as const);
    const server = await startTritonSubject(named.map(([scenario, name]) => modelOf(scenario, name)));
    for (const [scenario, name] of named) {
      const played = await play(scenario, name, server);
      expect(scenario.batches, `${scenario.scenario}, blocker ${scenario.blocker}`).toContainEqual(played);
    }
  });
});
