import { spawn, type ChildProcess } from "node:child_process";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { status } from "@grpc/grpc-js";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Controller } from "../../loadgen/controller";
import { InterruptedError } from "../../loadgen/controller-run";
import type { LoadResult } from "../../loadgen/load-spec";
import { FakeWorker } from "./support/fake-worker";
import { InferServer } from "./support/infer-server";
import { imageFolder, loadSpec } from "./support/spec";
import { TcpProxy } from "./support/tcp-proxy";

const token = "secret-of-this-test";
let controller: Controller;
const workers: FakeWorker[] = [];

beforeEach(async () => {
  controller = await Controller.listen({ token });
});
afterEach(async () => {
  for (const worker of workers.splice(0)) worker.close();
  await controller.close();
});

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5));
}

function fake(name: string, withToken = token): FakeWorker {
  const worker = new FakeWorker(controller.port, withToken, name);
  workers.push(worker);
  return worker;
}

/** This many registered fake workers. */
async function registered(count: number): Promise<FakeWorker[]> {
  const all = Array.from({ length: count }, (_, i) => fake(`w${i}`));
  for (const worker of all) worker.register();
  await controller.waitForWorkers(count, 5000);
  return all;
}

const spec = loadSpec({ addresses: ["a:1"], imageFolder: "/images", sloBoundMs: 100, measureS: 1 });
const run = (): Promise<LoadResult> => controller.run({ ...spec, id: `run-${Math.random()}` });

describe("registration", () => {
  it.each(["", "wrong", `${token}x`, token.slice(1)])(
    "a worker with token %j is turned away",
    async (wrong) => {
      const worker = fake("w", wrong);
      worker.register();
      await until(() => worker.ended !== undefined);
      expect(worker.ended).toMatchObject({
        code: status.UNAUTHENTICATED,
        details: expect.stringContaining("token") as string,
      });
      expect(controller.workers()).toEqual([]);
    },
  );

  it("a worker of another protocol version is told so", async () => {
    const worker = fake("w");
    worker.register(99);
    await until(() => worker.ended !== undefined);
    expect(worker.ended).toMatchObject({ code: status.FAILED_PRECONDITION });
    expect(worker.ended!.details).toMatch(/worker speaks protocol 99, the controller 2/);
  });

  it("registering again changes nothing; a new instance of the name replaces the old one (locust#1913)", async () => {
    const [old] = await registered(1);
    old!.register();
    await until(() => old!.received.length === 2);
    expect(old!.received).toEqual([
      { body: "registered", registered: { epoch: controller.epoch } },
      { body: "registered", registered: { epoch: controller.epoch } },
    ]);
    expect(controller.workers()).toHaveLength(1);
    const next = fake("w0");
    next.register(undefined, "b");
    await until(() => controller.workers()[0]?.instanceId === "b");
    expect(controller.workers()).toHaveLength(1);
    expect((await run()).total.planned).toBe(100);
  });

  it("without workers there is nothing to run; waiting says how many came", async () => {
    await expect(run()).rejects.toThrow("no load worker is registered");
    await registered(1);
    await expect(controller.waitForWorkers(3, 50)).rejects.toThrow(
      "1 of 3 load workers are registered after 50 ms",
    );
  });

  it("needs a token, and names a port that is taken", async () => {
    await expect(Controller.listen({ token: "" })).rejects.toThrow(/token/);
    await expect(Controller.listen({ token, port: controller.port })).rejects.toThrow(
      `the load controller cannot listen on 127.0.0.1:${controller.port}`,
    );
  });
});

describe("merging", () => {
  it("adds the reports of all workers up and starts them together, none before all are ready", async () => {
    const [one, two] = await registered(2);
    let readyTwo: (() => void) | undefined;
    const prepared = two!.onPrepare;
    two!.onPrepare = (prepare) => (readyTwo = () => prepared(prepare));
    two!.deltas = 5;
    two!.busyWaitMs = 2;
    const running = run();
    await until(() => readyTwo !== undefined);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(one!.received.some(({ body }) => body === "start")).toBe(false);
    readyTwo!();
    const result = await running;
    expect(result).toMatchObject({ valid: true, workers: 2, total: { planned: 200, ok: 200 } });
    expect(result.response.count).toBe(200);
    expect(result.health).toMatchObject({ cpuShare: 0.5, wireMBPerS: 20 });
    // One that waits awake is enough to say so.
    expect(result.health).toMatchObject({ busyWaitMs: 2, busyWaitShare: 0.2 });
    const assigned = [one!, two!].map(({ received }) => received.find(({ body }) => body === "prepare"));
    expect(assigned.map((message) => message?.body === "prepare" && message.prepare.workerIndex)).toEqual([
      0, 1,
    ]);
    expect(assigned.map((message) => message?.body === "prepare" && message.prepare.maxInFlight)).toEqual([
      500, 500,
    ]);
  });

  it("merges buckets, not percentiles: 95 x 10 ms and 5 x 1000 ms have p95 10 ms (k6-operator#812)", async () => {
    const [one, two] = await registered(2);
    one!.onStart = (runId) => {
      one!.delta(runId, 1, one!.tally(95, 10));
      one!.done(runId, 1, 95);
    };
    two!.onStart = (runId) => {
      two!.delta(runId, 1, two!.tally(5, 1000));
      two!.done(runId, 1, 5);
    };
    const { response, total } = await run();
    expect(response.p95Ms).toBeCloseTo(10, 1);
    expect(response.maxMs).toBe(1000);
    expect(total).toMatchObject({ ok: 95, late: 5 });
  });

  it("a report that comes twice counts once; one of another run not at all", async () => {
    const [worker] = await registered(1);
    worker!.onStart = (runId) => {
      worker!.delta("some-other-run", 1, worker!.tally(7));
      worker!.delta(runId, 1, worker!.tally(60));
      worker!.delta(runId, 1, worker!.tally(60));
      worker!.delta(runId, 2, worker!.tally(40));
      worker!.done(runId, 2, 100);
    };
    expect(await run()).toMatchObject({ valid: true, total: { planned: 100 } });
  });

  it("a hundred workers: every report counts", async () => {
    const all = await registered(100);
    const result = await run();
    expect(result).toMatchObject({ valid: true, workers: 100, total: { planned: 100 * all.length } });
  });
});

it("a closed loop that takes what the server gives is held to the controller's hard limit, at its start and when it is changed", async () => {
  await controller.close();
  controller = await Controller.listen({
    token,
    limits: { targets: ["a:1"], maxRatePerS: 50, maxInFlight: 1000 },
  });
  const [worker] = await registered(1);
  const closed = { kind: "users", users: 8, spawnPerS: 1e6, thinkMinS: 0, thinkMaxS: 0 } as const;
  worker!.onStart = (runId) => {
    expect(controller.change(runId, { ...closed, users: 4 })).toBe(true);
    worker!.reportAll(runId);
  };
  const result = await controller.run({ ...spec, id: "closed", shape: closed });
  const told = worker!.received.flatMap((message) =>
    message.body === "prepare"
      ? [message.prepare.spec.shape]
      : message.body === "change"
        ? [message.change.spec.shape]
        : [],
  );
  expect(told).toEqual([8, 4].map((users) => ({ ...closed, users, maxRatePerS: 50 })));
  expect(result.changes?.[0]?.shape).toEqual({ ...closed, users: 4, maxRatePerS: 50 });
});

describe("workers come and go", () => {
  it("who registers during a measurement takes part in the next one", async () => {
    const [first] = await registered(1);
    let finish: (() => void) | undefined;
    first!.onStart = (runId) => (finish = () => first!.reportAll(runId));
    const running = run();
    await until(() => finish !== undefined);
    const late = fake("late");
    late.register();
    await controller.waitForWorkers(2, 5000);
    finish!();
    expect(await running).toMatchObject({ valid: true, workers: 1, total: { planned: 100 } });
    expect(late.received.map(({ body }) => body)).toEqual(["registered"]);
    first!.onStart = (runId) => first!.reportAll(runId);
    expect(await run()).toMatchObject({ valid: true, workers: 2, total: { planned: 200 } });
  });

  it("one that leaves, or is evicted, between measurements is not missed: the load is shared among the others", async () => {
    const all = await registered(3);
    expect((await run()).workers).toBe(3);
    all[1]!.close();
    await until(() => controller.workers().length === 2);
    const result = await run();
    expect(result).toMatchObject({ valid: true, workers: 2 });
    const shares = [all[0]!, all[2]!].map(({ received }) => {
      const last = received.filter(({ body }) => body === "prepare").at(-1);
      return last?.body === "prepare" ? [last.prepare.workerIndex, last.prepare.workerCount] : [];
    });
    expect(shares.sort()).toEqual([
      [0, 2],
      [1, 2],
    ]);
  });

  it("a slow one among many makes the measurement invalid by name, though the merged lateness hides it", async () => {
    const all = await registered(100);
    const slow = all[42]!;
    slow.onStart = (runId) => {
      slow.delta(runId, 1, slow.tally(10));
      slow.done(runId, 1, 10, 0, 250);
    };
    const result = await run();
    expect(result.health.latenessP99Ms).toBeLessThan(5);
    expect(result.invalidReasons).toEqual([
      "client-bound: load worker w42 was slow: half of its requests were sent more than 250.0 ms late (at most 5.0 ms)",
    ]);
  });
});

describe("a process has to end during a measurement", () => {
  /** Two workers under a load of a minute, each of which has reported 60 requests; what a worker is told to stop is answered by 40 more. */
  async function underLoad(): Promise<{
    workers: FakeWorker[];
    result: Promise<LoadResult>;
    finish: () => void;
  }> {
    const all = await registered(2);
    let started = 0;
    for (const worker of all)
      worker.onStart = (runId) => {
        worker.delta(runId, 1, worker.tally(60));
        started++;
      };
    const long = { ...spec, id: `run-${Math.random()}`, warmupS: 0, measureS: 60 };
    let counted = 0;
    const result = controller.run(long, ({ total }) => (counted = total.planned));
    result.catch(() => undefined);
    await until(() => started === 2 && counted === 120);
    const finish = (): void => {
      for (const worker of all) {
        worker.delta(long.id, 2, worker.tally(40));
        worker.done(long.id, 2, 100);
      }
    };
    return { workers: all, result, finish };
  }
  const toldToStop = (worker: FakeWorker): boolean => worker.received.some(({ body }) => body === "stop");

  it("a worker that is leaving: all stop, what they measured is kept and marked; it takes part in nothing more", async () => {
    const { workers: all, result, finish } = await underLoad();
    all[1]!.say({ body: "leaving", leaving: { reason: "SIGTERM" } });
    await until(() => all.every(toldToStop));
    expect(controller.workers().map(({ name }) => name)).toEqual(["w0"]);
    finish();
    const { valid, invalidReasons, stop, total } = await result;
    expect({ valid, total }).toMatchObject({ valid: false, total: { planned: 200, ok: 200 } });
    expect(stop).toMatchObject({ interrupted: true, finding: null });
    expect(invalidReasons).toEqual([
      expect.stringMatching(
        /^ended early, after \d+\.\d s of 60\.0 s: load worker w1 had to end \(SIGTERM\)$/,
      ),
    ]);
    all[0]!.onStart = (runId) => all[0]!.reportAll(runId);
    expect(await run()).toMatchObject({ valid: true, workers: 1 });
  });

  it("the controller: the same, and nothing is begun any more", async () => {
    const { workers: all, result, finish } = await underLoad();
    const ended = controller.end("the load controller had to end (SIGTERM)", 20_000);
    await until(() => all.every(toldToStop));
    finish();
    expect(await ended).toBe(true);
    const { valid, stop, total } = await result;
    expect({ valid, stop, total }).toMatchObject({
      valid: false,
      stop: { interrupted: true, reason: "the load controller had to end (SIGTERM)" },
      total: { planned: 200 },
    });
    await expect(run()).rejects.toThrow(InterruptedError);
    expect(await controller.end("again", 0)).toBe(false);
  });

  it("answers that do not come in time: what was reported is kept", async () => {
    const { result } = await underLoad();
    void controller.end("SIGTERM", 20_000);
    await controller.end("SIGTERM", 0);
    const { valid, invalidReasons, total } = await result;
    expect({ valid, total }).toMatchObject({ valid: false, total: { planned: 120, ok: 120 } });
    expect(invalidReasons).toEqual([
      expect.stringMatching(/^ended early, after/),
      "answers that were still awaited were given up",
    ]);
  });

  it("a window that is over is only waited for: its result is a whole one", async () => {
    const [worker] = await registered(1);
    let report: (() => void) | undefined;
    worker!.onStart = (runId) => (report = () => worker!.reportAll(runId));
    let phase = "";
    const result = controller.run(
      { ...spec, id: "drains", warmupS: 0, measureS: 0.2 },
      (line) => (phase = line.phase),
    );
    await until(() => phase === "draining" && report !== undefined);
    const ended = controller.end("SIGTERM", 20_000);
    report!();
    await ended;
    expect(await result).toMatchObject({ valid: true, stop: null, total: { planned: 100 } });
  });

  it("before the load there is no result: who waits is told why", async () => {
    const [worker] = await registered(1);
    let preparing = false;
    worker!.onPrepare = () => (preparing = true);
    const result = run();
    result.catch(() => undefined);
    await until(() => preparing);
    await controller.end("interrupted (SIGINT)", 20_000);
    await expect(result).rejects.toThrow(InterruptedError);
    await expect(result).rejects.toThrow("interrupted (SIGINT)");
  });
});

describe("what makes a measurement invalid", () => {
  async function invalid(change: (one: FakeWorker, two: FakeWorker) => void): Promise<LoadResult> {
    const [one, two] = await registered(2);
    change(one!, two!);
    const result = await run();
    expect(result.valid).toBe(false);
    return result;
  }

  it("a lost report", async () => {
    const { invalidReasons } = await invalid((one) => {
      one.onStart = (runId) => one.delta(runId, 3, one.tally(10));
    });
    expect(invalidReasons).toEqual(["reports 1..2 of load worker w0 were lost"]);
  });

  it("a last report that was lost", async () => {
    const { invalidReasons } = await invalid((one) => {
      one.onStart = (runId) => {
        one.delta(runId, 1, one.tally(10));
        one.done(runId, 2, 30);
      };
    });
    expect(invalidReasons).toEqual(["load worker w0 counted 30 requests, but its reports add up to 10"]);
  });

  it("a report that is none", async () => {
    const { invalidReasons } = await invalid((one) => {
      one.onStart = (runId) =>
        one.delta(runId, 1, { ...one.tally(10), response: { gaps: [1e9], counts: [1], sumUs: 1, maxUs: 1 } });
    });
    expect(invalidReasons[0]).toMatch(/load worker w0 sent a report that is none: histogram bucket/);
  });

  it("a worker that leaves in the middle (locust#2008); the others are told to stop", async () => {
    let other: FakeWorker | undefined;
    const result = await invalid((one, two) => {
      other = two;
      two.onStart = () => undefined;
      one.onStart = () => one.close();
    });
    expect(result.invalidReasons[0]).toMatch(/^load worker w0 was lost: /);
    await until(() => other!.received.some(({ body }) => body === "abort"));
  });

  it("a target that a worker cannot reach", async () => {
    const { invalidReasons } = await invalid((one) => {
      one.onPrepare = ({ runId }) =>
        one.say({
          body: "prepareFailed",
          prepareFailed: { runId, isBadSpec: false, message: "cannot connect to a:1" },
        });
    });
    expect(invalidReasons).toEqual(["load worker w0: cannot connect to a:1"]);
  });

  it("a slow client: lateness, loop delay and achieved share are judged against the bound, worst worker", async () => {
    const result = await invalid((one) => {
      one.onStart = (runId) => {
        const tally = one.tally(90);
        one.delta(runId, 1, {
          ...tally,
          onTimeSends: 50,
          lateness: { gaps: [20_000], counts: [90], sumUs: 1, maxUs: 1 },
        });
        one.done(runId, 1, 90, 55.5);
      };
    });
    expect(result.invalidReasons).toEqual([
      expect.stringMatching(/^client-bound: only 78\.9 % of the planned requests were sent/),
      expect.stringMatching(/^client-bound: send lateness p99 is \d+\.\d ms \(at most 5\.0 ms\)/),
      "client-bound: event-loop delay p99 is 55.5 ms (at most 10.0 ms)",
    ]);
  });

  it("no request at all: no data is no pass (k6#4283)", async () => {
    const result = await invalid((one, two) => {
      for (const worker of [one, two]) worker.onStart = (runId) => worker.done(runId, 0, 0);
      for (const worker of [one, two])
        worker.onStart = (runId) => {
          worker.delta(runId, 1, worker.tally(0));
          worker.done(runId, 1, 0);
        };
    });
    expect(result.invalidReasons).toEqual(["no request was planned in the measured window"]);
    expect(result.response.p95Ms).toBeNaN();
  });
});

it("before its load a measurement can be called off, and the next one begins at once", async () => {
  const [worker] = await registered(1);
  const prepares = worker!.onPrepare;
  worker!.onPrepare = () => undefined;
  const called = controller.run({ ...spec, id: "called off" });
  const refused = expect(called).rejects.toThrow(new InterruptedError("not wanted any more"));
  await until(() => worker!.received.some(({ body }) => body === "prepare"));
  expect(controller.stop("called off", "too early to stop")).toBe(false);
  expect(controller.cancel("another", "not wanted any more")).toBe(false);
  expect(controller.cancel("called off", "not wanted any more")).toBe(true);
  expect(controller.cancel("called off", "again")).toBe(false);
  await refused;
  await until(() => worker!.received.some(({ body }) => body === "abort"));
  worker!.onPrepare = prepares;
  const { id } = await controller.run({ ...spec, id: "next" });
  expect([id, controller.cancel("next", "it is over")]).toEqual(["next", false]);
});

it("a change, or a stop, that would come into effect when the measured time is over is refused, and does not stand in the result", async () => {
  const [worker] = await registered(1);
  let end: (() => void) | undefined;
  worker!.onStart = (runId) => (end = () => worker!.reportAll(runId));
  const running = controller.run({ ...spec, id: "short", warmupS: 0, measureS: 0.3 });
  await until(() => end !== undefined);
  await new Promise((resolve) => setTimeout(resolve, 500));
  expect(controller.change("short", { kind: "constant", ratePerS: 5 })).toBe(false);
  expect(controller.stop("short", "too late")).toBe(false);
  end!();
  expect(await running).toMatchObject({ valid: true, changes: [], stop: null });
});

it("a thousand changes are enough: the result stays one that can be read", async () => {
  const [worker] = await registered(1);
  let end: (() => void) | undefined;
  worker!.onStart = (runId) => (end = () => worker!.reportAll(runId));
  const running = controller.run({ ...spec, id: "restless", warmupS: 0, measureS: 60 });
  await until(() => end !== undefined);
  for (let i = 0; i < 1000; i++)
    expect(controller.change("restless", { kind: "constant", ratePerS: 5 + i })).toBe(true);
  expect(() => controller.change("restless", { kind: "constant", ratePerS: 5 })).toThrow(
    /changed 1000 times/,
  );
  end!();
  expect((await running).changes).toHaveLength(1000);
});

it("an observer that fails at the start of a measurement costs that one, and does not block the next", async () => {
  await controller.close();
  let isFull = true;
  controller = await Controller.listen({
    token,
    observer: {
      started: () => {
        if (isFull) throw new Error("the disk is full");
      },
      counted: () => undefined,
      ended: () => undefined,
    },
  });
  await registered(1);
  await expect(run()).rejects.toThrow("the disk is full");
  isFull = false;
  expect(await run()).toMatchObject({ valid: true });
});

it("a bad spec that only a worker can see is an error by that worker's name", async () => {
  const [worker] = await registered(1);
  worker!.onPrepare = ({ runId }) =>
    worker!.say({
      body: "prepareFailed",
      prepareFailed: { runId, isBadSpec: true, message: "image folder /images has no image" },
    });
  const bad = { ...spec, id: "bad" };
  await expect(controller.run(bad)).rejects.toThrow("load worker w0: image folder /images has no image");
  worker!.onPrepare = ({ runId }) => worker!.say({ body: "prepared", prepared: { runId } });
  expect((await controller.run(bad)).total.planned).toBe(100);
});

describe("worker processes", () => {
  const children: ChildProcess[] = [];
  afterEach(() => {
    for (const child of children.splice(0)) child.kill("SIGKILL");
  });

  /** A real worker process; its clock can be wrong. */
  async function spawnWorker(
    name: string,
    clockMinutes = 0,
    withToken = token,
    port = controller.port,
  ): Promise<ChildProcess> {
    const shift = join(images, "shift-clock.cjs");
    await writeFile(shift, `const now = Date.now; Date.now = () => now() + ${clockMinutes * 60_000};`);
    const main = join(__dirname, "../../loadgen/worker-main.ts");
    const args = [
      "--require",
      shift,
      "--import",
      "tsx",
      main,
      "--controller",
      `127.0.0.1:${port}`,
      "--name",
      name,
    ];
    const child = spawn(process.execPath, args, {
      stdio: ["pipe", "ignore", "pipe"],
      env: { ...process.env, LOADGEN_TOKEN: withToken },
    });
    children.push(child);
    return child;
  }

  let images: string;
  beforeEach(async () => {
    images = await imageFolder(1);
  });
  afterEach(async () => {
    await rm(images, { recursive: true, force: true });
  });

  it("clocks that are four minutes apart change nothing (locust#2708)", async () => {
    const server = await InferServer.listen();
    await Promise.all([spawnWorker("behind", -4), spawnWorker("ahead", 4)]);
    await controller.waitForWorkers(2, 15_000);
    const result = await controller.run(
      loadSpec({
        addresses: [server.address],
        imageFolder: images,
        measureS: 1.5,
        shape: { kind: "constant", ratePerS: 100 },
      }),
    );
    await server.close();
    expect(result.intervals.map(({ planned }) => planned)).toEqual([100, 50]);
    expect(result.total).toMatchObject({ planned: 150, ok: 150 });
    expect(Math.abs(result.measuredToUnixMs - Date.now())).toBeLessThan(5000);
  });

  it("come back to a restarted controller with another epoch, by themselves (locust#1913)", async () => {
    const { port, epoch } = controller;
    await spawnWorker("faithful");
    await controller.waitForWorkers(1, 15_000);
    await controller.close();
    controller = await Controller.listen({ token, port });
    expect(controller.epoch).not.toBe(epoch);
    await controller.waitForWorkers(1, 15_000);
    expect(controller.workers()[0]!.name).toBe("faithful");
  });

  it("a split network: the worker is lost by its silence and comes back by itself when the network does", async () => {
    const server = await InferServer.listen();
    const proxy = await TcpProxy.listen(() => controller.port);
    try {
      await spawnWorker("far", 0, token, proxy.port);
      await controller.waitForWorkers(1, 15_000);
      const spec = loadSpec({ addresses: [server.address], imageFolder: images, measureS: 60 });
      const result = await controller.run(spec, ({ phase }) => {
        if (phase === "measuring") proxy.cut();
      });
      expect(result.valid).toBe(false);
      expect(result.invalidReasons).toEqual(["load worker far was lost: it said nothing for 5 s"]);
      expect(controller.workers()).toEqual([]);
      proxy.heal();
      await controller.waitForWorkers(1, 20_000);
      const next = await controller.run({ ...spec, id: "next", measureS: 0.4 });
      expect(next.total.planned).toBe(100);
    } finally {
      await proxy.close();
      await server.close();
    }
  });

  it("SIGTERM under load: the worker's last reports come, then it ends with code 0", async () => {
    const server = await InferServer.listen();
    try {
      const child = await spawnWorker("evicted");
      await controller.waitForWorkers(1, 15_000);
      const exited = new Promise((resolve) => child.once("exit", resolve));
      let killed = false;
      const before = server.requests;
      const result = await controller.run(
        loadSpec({ addresses: [server.address], imageFolder: images, warmupS: 0, measureS: 600 }),
        ({ total }) => {
          if (killed || total.planned < 100) return;
          killed = true;
          child.kill("SIGTERM");
        },
      );
      expect(await exited).toBe(0);
      expect(result).toMatchObject({ valid: false, stop: { interrupted: true } });
      expect(result.invalidReasons[0]).toMatch(/of 600\.0 s: load worker evicted had to end \(SIGTERM\)$/);
      // Nothing that was asked in the window is missing: only the connections' first requests and those behind the window are not counted.
      const { planned, ok } = result.total;
      expect(ok).toBe(planned);
      expect(result.intervals.reduce((sum, interval) => sum + interval.planned, 0)).toBe(planned);
      expect(planned).toBeGreaterThanOrEqual(100);
      expect(server.requests - before).toBeLessThanOrEqual(2 + planned + 250 + 64);
    } finally {
      await server.close();
    }
  });

  it("end on SIGTERM with code 0; without a token or with a bad address they say what is missing", async () => {
    const child = await spawnWorker("w");
    await controller.waitForWorkers(1, 15_000);
    child.kill("SIGTERM");
    expect(await new Promise((resolve) => child.once("exit", resolve))).toBe(0);
    await until(() => controller.workers().length === 0);
    const mute = await spawnWorker("w", 0, "");
    let text = "";
    mute.stderr!.on("data", (chunk: Buffer) => (text += chunk.toString()));
    expect(await new Promise((resolve) => mute.once("exit", resolve))).toBe(2);
    expect(text).toMatch(/LOADGEN_TOKEN is not set/);
  });
});
