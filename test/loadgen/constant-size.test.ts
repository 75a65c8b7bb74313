/** Nothing that lives as long as a measurement grows with the number of its requests. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { Controller } from "../../loadgen/controller";
import { createTransport } from "../../loadgen/create-transport";
import { Histogram } from "../../loadgen/histogram";
import type { LoadShape } from "../../loadgen/load-spec";
import { RequestSender } from "../../loadgen/request-sender";
import { createPlan } from "../../loadgen/schedule";
import { SendLoop } from "../../loadgen/send-loop";
import { Tally } from "../../loadgen/tally";
import type { Transport } from "../../loadgen/transport";
import { FakeWorker } from "./support/fake-worker";
import { graphSize } from "./support/graph-size";
import { InferServer } from "./support/infer-server";
import { loadSpec } from "./support/spec";
import { VirtualTime } from "./support/virtual-time";

/** What an object may hold more after many requests than after some: an array's spare room, a last chunk. Entries. */
const SLACK = 200;

it("the measure itself: it sees what grows", () => {
  const held: unknown[] = [];
  const holder = { deep: new Map([["list", { held }]]), text: "x" };
  const before = graphSize(holder);
  for (let i = 0; i < 1000; i++) held.push({ i });
  expect(graphSize(holder) - before).toBeGreaterThanOrEqual(2000);
  const cycle: { self?: object } = {};
  cycle.self = cycle;
  expect(graphSize(cycle)).toBe(1);
  expect(graphSize(Buffer.alloc(8000))).toBe(1000);
});

describe("counters", () => {
  it("a histogram of any number of any values has one size; so has what travels of the same values", () => {
    const histogram = new Histogram();
    const empty = graphSize(histogram);
    const travels = new Set<number>();
    for (let round = 0; round < 5; round++) {
      for (let i = 0; i < 20_000; i++) histogram.record((i * 7919) % 3_000_000);
      expect(graphSize(histogram)).toBe(empty);
      travels.add(histogram.toSparse().gaps.length);
    }
    expect(histogram.count).toBe(100_000);
    expect(travels.size).toBe(1);
    histogram.record(2 ** 36 - 1);
    expect(graphSize(histogram)).toBe(empty);
  });

  it("a tally grows with intervals, replicas and classes of errors, not with requests", () => {
    const tally = new Tally();
    const feed = (requests: number): number => {
      for (let i = 0; i < requests; i++) {
        tally.sent(i % 1000, true);
        const error = i % 10 === 0 ? { kind: "UNAVAILABLE", message: `request ${i} failed` } : undefined;
        const times = {
          interval: i % 3,
          responseUs: i % 50_000,
          serviceUs: i % 40_000,
          address: `a:${i % 4}`,
        };
        tally.ended({ ...times, ending: error === undefined ? "ok" : "failed", error });
      }
      return graphSize(tally);
    };
    const some = feed(1000);
    expect(feed(50_000)).toBe(some);
    tally.clear();
    expect(graphSize(tally)).toBeLessThan(some);
  });
});

describe("sending", () => {
  it.each<[string, LoadShape]>([
    ["Poisson", { kind: "poisson", ratePerS: 1000 }],
    ["users", { kind: "users", users: 100, spawnPerS: 1000, thinkMinS: 0.05, thinkMaxS: 0.15 }],
  ])("the send loop and its plan, %s", async (_, shape) => {
    const time = new VirtualTime();
    const plan = createPlan(shape, 1, { index: 0, count: 1 });
    const loop = new SendLoop({
      ...{
        plan,
        warmupS: 0,
        measureS: 20,
        sloBoundMs: 100,
        deadlineMs: 1000,
        maxInFlight: 1e6,
        timeDilation: 1,
      },
      time,
      send: () =>
        new Promise((resolve) =>
          time.after(5, () => resolve({ serviceTimeUs: 5000, address: "a:1", error: undefined })),
        ),
    });
    // The clock of the test is no part of the loop: it holds the events of the future.
    const size = (): number =>
      graphSize({ ...loop, options: { plan }, timer: null, cancelWindowTimer: null });
    const sizes: number[] = [];
    let requests = 0;
    for (const atMs of [2000, 18_000])
      time.after(50 + atMs, () => {
        // As a worker does once a second.
        requests += loop.measured.slo.total().planned;
        loop.measured.clear();
        sizes.push(size());
      });
    const done = loop.run(time.nowMs() + 50);
    await time.play();
    await done;
    expect(requests).toBeGreaterThan(10_000);
    expect(sizes).toHaveLength(2);
    expect(Math.abs(sizes[1]! - sizes[0]!)).toBeLessThan(SLACK);
  });

  describe("transports", () => {
    let server: InferServer;
    let transport: Transport | undefined;
    beforeAll(async () => {
      server = await InferServer.listen();
    });
    afterEach(() => transport?.close());
    afterAll(() => server.close());

    it.each([false, true])("the lean one and its connections, with failures: %s", async (fails) => {
      server.behaviour.answer = (n) =>
        fails && n % 3 === 0 ? 14 : { classIndex: 1, label: "one", score: 1 };
      const { address } = server;
      const payloads = [Buffer.alloc(100), Buffer.alloc(40_000)];
      transport = createTransport("lean", { address, payloads, connections: 2 });
      const sender = new RequestSender({
        ...{ transports: [{ address, transport }], payloadBytes: [100, 40_000], knownAnswers: null },
        ...{ outputName: "probabilities", scoreTolerance: 1, checkEvery: 1, workerIndex: 0 },
      });
      await transport.connect();
      const send = async (requests: number): Promise<number> => {
        for (let sent = 0; sent < requests; sent += 20)
          await Promise.all(Array.from({ length: 20 }, () => sender.send(20_000)));
        // The last write's callback.
        await new Promise((resolve) => setTimeout(resolve, 20));
        return graphSize(sender);
      };
      const some = await send(400);
      const before = server.requests;
      expect((await send(2000)) - some).toBeLessThan(SLACK);
      expect(server.requests - before).toBe(2000);
    });
  });
});

it("a measurement that nobody watches, as one from the console: a report is merged and let go", async () => {
  const token = "token";
  const controller = await Controller.listen({ token });
  const worker = new FakeWorker(controller.port, token, "w");
  worker.register();
  await controller.waitForWorkers(1, 10_000);
  try {
    let started = false;
    worker.onStart = () => (started = true);
    const spec = loadSpec({ addresses: ["a:1"], imageFolder: "/images", warmupS: 0, measureS: 600 });
    const result = controller.run(spec);
    while (!started) await new Promise((resolve) => setTimeout(resolve, 5));
    const { run } = (controller as unknown as { current: { run: { measured: Tally } } }).current;
    let sequence = 0;
    const report = async (count: number): Promise<number> => {
      const tally = worker.tally(10);
      for (let i = 0; i < count; i++) worker.delta(spec.id, ++sequence, tally);
      while (run.measured.response.count < sequence * 10)
        await new Promise((resolve) => setTimeout(resolve, 5));
      return graphSize({ ...run, options: null });
    };
    const some = await report(20);
    expect((await report(500)) - some).toBeLessThan(SLACK);
    worker.done(spec.id, sequence, sequence * 10);
    expect((await result).total.ok).toBe(5200);
  } finally {
    worker.close();
    await controller.close();
  }
});
