/** Workers that have the token and lie, or speak nonsense, to a controller that records and shows what they say. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client, credentials, Metadata, status } from "@grpc/grpc-js";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { bothObservers } from "../../loadgen/both-observers";
import { Controller } from "../../loadgen/controller";
import { ControllerMetrics } from "../../loadgen/controller-metrics";
import { HistoryStore } from "../../loadgen/history/history-store";
import { RunRecorder } from "../../loadgen/history/run-recorder";
import type { LoadResult } from "../../loadgen/load-spec";
import {
  loadControlService,
  PROTOCOL_VERSION,
  type ControllerMessage,
  type WorkerMessage,
} from "../../loadgen/protocol";
import { RandomStream } from "../../loadgen/random";
import type { TallyMessage } from "../../loadgen/tally";
import { FakeWorker } from "./support/fake-worker";
import { loadSpec } from "./support/spec";

const token = "secret-of-this-test";
const folder = mkdtempSync(join(tmpdir(), "hostile-worker-"));
let controller: Controller;
let metrics: ControllerMetrics;
const workers: FakeWorker[] = [];
const spec = loadSpec({ addresses: ["a:1"], imageFolder: "/images", sloBoundMs: 100, measureS: 1 });
const run = (): Promise<LoadResult> =>
  controller.run({ ...spec, id: `run-${Math.random()}` }, () => undefined);

async function registered(name: string): Promise<FakeWorker> {
  const worker = new FakeWorker(controller.port, token, name);
  workers.push(worker);
  worker.register();
  while (!controller.workers().some((known) => known.name === name))
    await new Promise((resolve) => setTimeout(resolve, 5));
  return worker;
}

beforeEach(async () => {
  metrics = new ControllerMetrics({ sloBoundMs: 100 });
  const store = new HistoryStore(folder);
  const recorder = new RunRecorder({
    listener: {
      started: (started) => void store.started(started),
      second: ({ id }, recorded) => store.second(id, recorded),
      ended: ({ id }, result) => void store.ended(id, result, "aborted"),
    },
    workers: () => ({ count: controller.workers().length, inFlight: 0 }),
  });
  controller = await Controller.listen({ token, observer: bothObservers(metrics, recorder) });
});
afterEach(async () => {
  for (const worker of workers.splice(0)) worker.close();
  await controller.close();
  rmSync(folder, { recursive: true, force: true });
});

describe("a worker that lies", () => {
  const lies: Record<string, (worker: FakeWorker, runId: string) => void> = {
    "a warm-up that is no tally": (worker, runId) =>
      worker.say({
        body: "delta",
        delta: { runId, sequence: 1, sentBytes: 0, measured: worker.tally(1), warmup: null as never },
      }),
    "a warm-up with an impossible histogram": (worker, runId) => {
      const wrong: TallyMessage = {
        ...worker.tally(0),
        response: { gaps: [1e9], counts: [1], sumUs: 1, maxUs: 1 },
      };
      worker.say({
        body: "delta",
        delta: { runId, sequence: 1, sentBytes: 0, measured: worker.tally(1), warmup: wrong },
      });
    },
    "requests of an interval to come": (worker, runId) => {
      const tally = worker.tally(5);
      const [sums] = tally.intervals;
      worker.delta(runId, 1, { ...tally, intervals: [{ ...sums!, index: 4_000_000_000 }] });
    },
    "more good requests than it has times of": (worker, runId) => {
      const tally = worker.tally(5);
      const [sums] = tally.intervals;
      worker.delta(runId, 1, { ...tally, intervals: [{ ...sums!, ok: 5_000_000 }] });
    },
    "a health that is none": (worker, runId) => {
      worker.delta(runId, 1, worker.tally(10));
      worker.done(runId, 1, 10, NaN);
    },
    "reports after it was done": (worker, runId) => {
      worker.reportAll(runId);
      worker.delta(runId, 3, worker.tally(10));
    },
  };
  it.each(Object.keys(lies))("%s: an invalid result by its name; the next one is good", async (name) => {
    const liar = await registered("liar");
    const honest = await registered("honest");
    honest.onStart = (runId) => setTimeout(() => honest.reportAll(runId), 300);
    liar.onStart = (runId) => lies[name]!(liar, runId);
    const result = await run();
    expect(result).toMatchObject({ valid: false });
    expect(result.invalidReasons[0]).toMatch(/load worker liar (sent a|reported after)/);
    expect(metrics.exposition(controller.workers())).not.toMatch(/NaN|Infinity|e\+/);
    liar.onStart = (runId) => liar.reportAll(runId);
    expect(await run()).toMatchObject({ valid: true, total: { planned: 200, ok: 200 } });
  });

  it.each([
    ["counts", (liar: FakeWorker, runId: string) => liar.delta(runId, 1, liar.tally(10))],
    ["is done", (liar: FakeWorker, runId: string) => liar.done(runId, 0, 0)],
  ])("%s before the load begins: invalid", async (_, early) => {
    const liar = await registered("liar");
    liar.onPrepare = ({ runId }) => early(liar, runId);
    expect((await run()).invalidReasons[0]).toMatch(/load worker liar .* before the load began/);
  });

  it("one that never says who it is is sent away", async () => {
    const silent = new FakeWorker(controller.port, token, "silent");
    workers.push(silent);
    while (silent.ended === undefined) await new Promise((resolve) => setTimeout(resolve, 50));
    expect(silent.ended).toMatchObject({
      code: status.DEADLINE_EXCEEDED,
      details: "the worker did not register",
    });
  }, 30_000);

  it("a heartbeat that is none ends its session; a name that is none is refused", async () => {
    const liar = await registered("liar");
    const beat = {
      ...{ latenessP99Ms: 0, loopDelayP99Ms: 0, cpuShare: 0, wireMbPerS: 0, rssMb: 0, inFlight: 1 },
      busyWaitShare: 0,
    };
    liar.say({ body: "heartbeat", heartbeat: { ...beat, ratePerS: NaN, runId: "" } });
    while (controller.workers().length > 0) await new Promise((resolve) => setTimeout(resolve, 5));
    const other = await registered("in a report");
    other.delta("none", 1, other.tally(0), { ...beat, ratePerS: 1, rssMb: Infinity, runId: "" });
    while (controller.workers().length > 0) await new Promise((resolve) => setTimeout(resolve, 5));
    const nameless = new FakeWorker(controller.port, token, "a\nb");
    workers.push(nameless);
    nameless.register();
    while (nameless.ended === undefined) await new Promise((resolve) => setTimeout(resolve, 5));
    expect(nameless.ended.code).toBe(status.INVALID_ARGUMENT);
  });
});

describe("10,000 hostile messages", () => {
  const rounds = 200;
  const perRound = 50;

  it("of workers that take part, in two hundred measurements: none ends the controller or stays in it", async () => {
    const random = new RandomStream(1);
    const below = (limit: number): number => Math.floor(random.uniform() * limit);
    const { path, requestSerialize, responseDeserialize } = loadControlService().Work;
    const client = new Client(`127.0.0.1:${controller.port}`, credentials.createInsecure());
    const honest = await registered("honest");
    const health = {
      ...{ loopDelayP99Ms: 1, cpuShare: 1, wireMbPerS: 1, latenessP50Ms: 1 },
      ...{ busyWaitShare: 0, busyWaitMs: 0 },
    };
    const beat = { ...health, inFlight: 1, latenessP99Ms: 1, rssMb: 1, ratePerS: 1 };
    const [tally, nothing] = [honest.tally(20), honest.tally(0)];
    const wordsOf = (runId: string): readonly Buffer[] =>
      (
        [
          { body: "delta", delta: { runId, sequence: 1, sentBytes: 9, measured: tally, warmup: nothing } },
          { body: "delta", delta: { runId, sequence: 2, sentBytes: 9, measured: tally, warmup: tally } },
          { body: "done", done: { runId, lastSequence: 1, planned: 20, health } },
          { body: "heartbeat", heartbeat: { runId, ...beat } },
          { body: "prepared", prepared: { runId } },
          { body: "prepareFailed", prepareFailed: { runId, isBadSpec: false, message: "no" } },
          { body: "leaving", leaving: { reason: "no" } },
        ] satisfies WorkerMessage[]
      ).map((word) => Buffer.from(requestSerialize(word)));
    let heard = 0;
    for (let round = 0; round < rounds; round++) {
      const metadata = new Metadata();
      metadata.set("authorization", `Bearer ${token}`);
      // Bytes go out as they are.
      const stream = client.makeBidiStreamRequest(path, (b: Buffer) => b, responseDeserialize, metadata);
      const gone = new Promise<void>((resolve) => stream.on("error", () => resolve()).on("end", resolve));
      stream.on("data", (message: ControllerMessage) => {
        if (message.body === "prepare")
          stream.write(
            Buffer.from(requestSerialize({ body: "prepared", prepared: { runId: message.prepare.runId } })),
          );
        if (message.body !== "start") return;
        heard++;
        const words = wordsOf(message.start.runId);
        for (let i = 0; i < perRound; i++) {
          const bytes = Buffer.from(words[below(words.length)]!);
          for (let hits = below(3); hits > 0; hits--) bytes[below(bytes.length)] = below(256);
          stream.write(random.uniform() < 0.1 ? bytes.subarray(0, below(bytes.length)) : bytes);
        }
        stream.end();
      });
      const name = `hostile-${round}`;
      const register = { name, instanceId: name, protocolVersion: PROTOCOL_VERSION, pid: 1, cores: 1 };
      stream.write(Buffer.from(requestSerialize({ body: "register", register })));
      while (controller.workers().length < 2) await new Promise((resolve) => setImmediate(resolve));
      await run();
      await gone;
      while (controller.workers().length > 1) await new Promise((resolve) => setImmediate(resolve));
    }
    client.close();
    expect(heard).toBe(rounds);
    expect(metrics.exposition(controller.workers())).not.toMatch(/NaN|Infinity|e\+/);
    expect(await run()).toMatchObject({ valid: true, total: { planned: 100, ok: 100 } });
  }, 60_000);
});
