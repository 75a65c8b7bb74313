import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { LoadProgress } from "../../loadgen/load-spec";
import { startLocalCluster, type LocalCluster } from "../../loadgen/local-cluster";
import { goodAnswer, InferServer } from "./support/infer-server";
import { imageFolder, loadSpec } from "./support/spec";

let cluster: LocalCluster;
let images: string;
let server: InferServer;
let address: string;
const workers = 2;

beforeAll(async () => {
  images = await imageFolder(3);
  server = await InferServer.listen();
  address = server.address;
  cluster = await startLocalCluster({ workers });
}, 60_000);
afterAll(async () => {
  const { pids } = cluster;
  expect(pids).toHaveLength(workers);
  await cluster.close();
  for (const pid of pids) expect(() => process.kill(pid, 0)).toThrow(/ESRCH/);
  await server.close();
  await rm(images, { recursive: true, force: true });
});
afterEach(() => {
  server.behaviour.answer = () => goodAnswer;
  server.behaviour.delayMs = 0;
});

const spec = (change: Parameters<typeof loadSpec>[0] | object = {}): ReturnType<typeof loadSpec> =>
  loadSpec({ addresses: [address], imageFolder: images, ...change });

describe("a good measurement", () => {
  it("counts exactly what was planned, by interval, with both times, health and progress", async () => {
    const before = server.requests;
    const progress: LoadProgress[] = [];
    const known = [goodAnswer, goodAnswer, goodAnswer];
    const result = await cluster.run(
      spec({ measureS: 1.5, shape: { kind: "constant", ratePerS: 100 }, knownAnswers: known }),
      (line) => progress.push(line),
    );
    expect(result.total).toEqual({ planned: 150, ok: 150, late: 0, failed: 0, shed: 0 });
    expect(result.intervals.map(({ planned }) => planned)).toEqual([100, 50]);
    expect(result).toMatchObject({ errors: {}, workers, intervalS: 1, perAddress: { [address]: 150 } });
    expect(result.response.count).toBe(150);
    expect(result.response.p50Ms).toBeGreaterThanOrEqual(result.service.p50Ms);
    expect(result.responseHistogram.reduce((sum, [, count]) => sum + count, 0)).toBe(150);
    expect(result.measuredToUnixMs - result.measuredFromUnixMs).toBeCloseTo(1500, 3);
    expect(Math.abs(result.measuredToUnixMs - Date.now())).toBeLessThan(3000);
    expect(result.health.achievedShare).toBeGreaterThan(0.9);
    expect(result.health.cpuShare).toBeGreaterThan(0);
    expect(result.health).toMatchObject({ busyWaitMs: 0, busyWaitShare: 0 });
    expect(result.health.wireMBPerS).toBeCloseTo((150_528 * 100) / 1e6, -1);
    // warm-up requests of each connection, warm-up, window, and at most one SLO bound behind it
    expect(server.requests - before).toBeGreaterThanOrEqual(2 * workers + 10 + 150);
    expect(server.requests - before).toBeLessThanOrEqual(2 * workers + 10 + 150 + 100);
    expect(progress.map(({ phase }) => phase)).toContain("measuring");
    expect(progress.at(-1)!.total.planned).toBeGreaterThan(0);
    expect(progress.at(-1)!.ratePerS).toBeGreaterThan(50);
  });

  it("a repeated id gives the first result without new load", async () => {
    const first = spec();
    const result = await cluster.run(first);
    const before = server.requests;
    expect(await cluster.run({ ...first, seed: 99 })).toBe(result);
    expect(server.requests).toBe(before);
  });

  it("closed-loop users over grpc-js, in dilated time", async () => {
    server.behaviour.delayMs = 60;
    const shape = { kind: "users", users: 30, spawnPerS: 1000, thinkMinS: 0.2, thinkMaxS: 0.3 } as const;
    const change = {
      shape,
      maxInFlight: 30,
      timeDilation: 2,
      transport: "grpc-js",
      warmupS: 0.3,
      measureS: 1,
    };
    const result = await cluster.run(spec(change));
    // a cycle is 0.2 to 0.3 s of thinking and at least 0.03 s of model time for the answer; a busy machine makes it longer
    expect(result.total.planned).toBeLessThanOrEqual(30 * 5);
    expect(result.total.planned).toBeGreaterThan(30);
    expect(result.total.ok).toBe(result.total.planned);
    expect(result.response.p50Ms).toBeGreaterThan(29);
    expect(result.measuredToUnixMs - result.measuredFromUnixMs).toBeCloseTo(2000, 3);
  });

  it("spreads requests evenly over the replicas and counts them by address", async () => {
    const other = await InferServer.listen();
    const addresses = [address, other.address];
    const result = await cluster.run(spec({ addresses }));
    await other.close();
    expect(Object.keys(result.perAddress)).toEqual(addresses);
    expect(Object.values(result.perAddress)).toEqual([50, 50]);
  });

  it("Poisson: the same seed plans the same requests", async () => {
    const shape = { kind: "poisson", ratePerS: 400 } as const;
    const [one, again] = [
      await cluster.run(spec({ shape, seed: 5 })),
      await cluster.run(spec({ shape, seed: 5 })),
    ];
    expect(one.intervals.map(({ planned }) => planned)).toEqual(
      again.intervals.map(({ planned }) => planned),
    );
    expect(one.total.planned).not.toBe((await cluster.run(spec({ shape, seed: 6 }))).total.planned);
  });
});

describe("answers that do not count", () => {
  it("late, failed and wrong ones are told apart; the first message of each class is kept", async () => {
    const wrong = { ...goodAnswer, label: "eight", classIndex: 8 };
    server.behaviour.answer = (n) => (n % 4 === 0 ? 14 : n % 4 === 1 ? wrong : goodAnswer);
    // warm-up requests must not fail
    const start = server.requests;
    const { answer } = server.behaviour;
    server.behaviour.answer = (n) => (n < start + 2 * workers ? goodAnswer : answer(n));
    const result = await cluster.run(spec({ knownAnswers: [goodAnswer, goodAnswer, goodAnswer] }));
    expect(result.total.planned).toBe(100);
    expect(result.total.failed).toBe(result.errors["UNAVAILABLE"]! + result.errors["wrong-answer"]!);
    expect(Math.abs(result.errors["UNAVAILABLE"]! - 25)).toBeLessThan(4);
    expect(Math.abs(result.errors["wrong-answer"]! - 25)).toBeLessThan(4);
    expect(result.errorMessages).toMatchObject({ UNAVAILABLE: "as told" });
    expect(result.errorMessages!["wrong-answer"]).toMatch(
      /image \d: class 8 \(eight\) instead of 7 \(seven\)/,
    );
    expect(result.response.count).toBe(result.total.ok + result.total.late);
  });

  it("checks every n-th reply only, and none at 0", async () => {
    const start = server.requests;
    server.behaviour.answer = (n) => (n < start + 2 * workers ? goodAnswer : { ...goodAnswer, score: 0.9 });
    const knownAnswers = [goodAnswer, goodAnswer, goodAnswer];
    const some = await cluster.run(spec({ knownAnswers, checkEvery: 10 }));
    expect(Math.abs(some.errors["wrong-answer"]! - 10)).toBeLessThanOrEqual(2);
    expect((await cluster.run(spec({ knownAnswers, checkEvery: 0 }))).errors).toEqual({});
  });

  it("a server that stops answering: requests end at their deadline, what is over the cap is shed (vegeta#344)", async () => {
    const start = server.requests;
    server.behaviour.answer = (n) => (n < start + 2 * workers ? goodAnswer : null);
    const result = await cluster.run(
      spec({ sloBoundMs: 100, deadlineMs: 300, maxInFlight: 25, measureS: 0.8 }),
    );
    expect(result.total.ok).toBe(0);
    expect(result.total.planned).toBe(200);
    expect(result.total.late).toBe(result.total.shed);
    expect(result.total.failed).toBeGreaterThan(0);
    expect(result.errors).toEqual({ DEADLINE_EXCEEDED: result.total.failed });
    expect(server.mostInFlight).toBeLessThan(200);
    expect(result.response.count).toBe(0);
    expect(result.response.p95Ms).toBeNaN();
  });
});

describe("what cannot be measured", () => {
  it("no server at the address: an invalid result that names worker and address", async () => {
    const gone = await InferServer.listen();
    const { address: nobody } = gone;
    await gone.close();
    const result = await cluster.run(spec({ addresses: [nobody] }));
    expect(result.valid).toBe(false);
    expect(result.invalidReasons[0]).toMatch(
      new RegExp(`load worker local-\\d: cannot connect to ${nobody}: .*ECONNREFUSED`),
    );
    expect(result.total.planned).toBe(0);
  });

  it("a server that refuses the warm-up request: an invalid result with its words", async () => {
    server.behaviour.answer = () => 5;
    const result = await cluster.run(spec());
    expect(result.valid).toBe(false);
    expect(result.invalidReasons[0]).toContain(`${address} failed a warm-up request: NOT_FOUND as told`);
  });

  it("a missing or empty image folder, or answers that do not fit it: rejected by name", async () => {
    const empty = await mkdtemp(join(tmpdir(), "loadgen-empty-"));
    await expect(cluster.run(spec({ imageFolder: "/no/such/folder" }))).rejects.toThrow(
      /load worker local-\d: image folder \/no\/such\/folder cannot be read/,
    );
    await expect(cluster.run(spec({ imageFolder: empty }))).rejects.toThrow(/has no image/);
    await expect(cluster.run(spec({ knownAnswers: [goodAnswer] }))).rejects.toThrow(
      /knownAnswers has 1 entries, but .* has 3 images/,
    );
    await rm(empty, { recursive: true });
  });

  it("a bad spec: all problems at once", async () => {
    await expect(
      cluster.run(spec({ addresses: ["nowhere"], measureS: 0, timeDilation: 0.5 })),
    ).rejects.toThrow(
      /"nowhere" is no host:port[^]*measureS must be above 0[^]*timeDilation must be 1 or more/,
    );
  });

  it("two at a time: the second is refused", async () => {
    const first = cluster.run(spec());
    await expect(cluster.run(spec())).rejects.toThrow(/another measurement is running/);
    expect((await first).total.planned).toBe(100);
  });
});

describe("a measurement that does not run as planned", () => {
  const users = (count: number) =>
    ({ kind: "users", users: count, spawnPerS: 1000, thinkMinS: 0.1, thinkMaxS: 0.1 }) as const;

  /** Calls `act` once the measurement has measured for this long. */
  function afterMeasuring(seconds: number, act: () => void): (progress: LoadProgress) => void {
    let done = false;
    return ({ phase, elapsedS }) => {
      if (done || phase !== "measuring" || elapsedS < seconds) return;
      done = true;
      act();
    };
  }

  it("stopped by its owner: a valid result of the time until then", async () => {
    const long = spec({ measureS: 600, warmupS: 0, shape: { kind: "constant", ratePerS: 100 } });
    const result = await cluster.run(
      long,
      afterMeasuring(1.5, () => expect(cluster.controller.stop(long.id, "enough")).toBe(true)),
    );
    expect(result.stop).toMatchObject({ reason: "enough", finding: null });
    const { atS } = result.stop!;
    expect(atS).toBeGreaterThan(1.5);
    expect(atS).toBeLessThan(30);
    expect(Math.abs(result.total.planned - 100 * atS)).toBeLessThan(30);
    expect(result.total.planned).toBe(result.total.ok + result.total.late + result.total.failed);
    expect(result.intervals).toHaveLength(Math.ceil(atS - 1e-9));
    expect(result.measuredToUnixMs - result.measuredFromUnixMs).toBeCloseTo(atS * 1000, 0);
    expect(cluster.controller.stop(long.id, "again")).toBe(false);
  });

  it("stopped by its rule when the server gets slow: last good and first bad window (k6#2379)", async () => {
    // Far from what a busy machine makes of a quick answer, and far from the slow one.
    const rule = { quantile: 0.95, boundMs: 1000, windowS: 2, minSamples: 50 };
    const result = await cluster.run(
      spec({
        ...{ measureS: 600, warmupS: 0, stopWhen: rule, sloBoundMs: 1000 },
        shape: { kind: "constant", ratePerS: 100 },
      }),
      afterMeasuring(2.5, () => (server.behaviour.delayMs = 1800)),
    );
    const finding = result.stop!.finding!;
    expect(finding.rule).toEqual(rule);
    expect(finding.firstBad.quantileMs).toBeGreaterThan(1000);
    expect(finding.lastGood!.quantileMs).toBeLessThanOrEqual(1000);
    expect(result.stop!.reason).toMatch(/^p95 of the last 2 s was \d+\.\d ms .* \(bound 1000 ms\)/);
  });

  it.each(["poisson", "constant"] as const)("a ramp and steps, %s", async (arrivals) => {
    const ramp = { kind: "ramp", fromPerS: 50, toPerS: 150, overS: 2, arrivals } as const;
    const ramped = await cluster.run(spec({ shape: ramp, warmupS: 0, measureS: 2 }));
    const slack = arrivals === "constant" ? 1 : 70;
    expect(Math.abs(ramped.intervals[0]!.planned - 75)).toBeLessThanOrEqual(slack);
    expect(Math.abs(ramped.intervals[1]!.planned - 125)).toBeLessThanOrEqual(slack);
  });

  it("recorded arrivals are sent as recorded", async () => {
    const atS = [0, 0.1, 0.1, 0.5, 1.2, 1.21, 1.9];
    const result = await cluster.run(spec({ shape: { kind: "recorded", atS }, warmupS: 0, measureS: 2 }));
    expect(result.intervals.map(({ planned }) => planned)).toEqual([4, 3]);
    expect(result.total.ok).toBe(7);
  });

  it("the load is changed while it runs: users, then a rate", async () => {
    const long = spec({ shape: users(10), warmupS: 0, measureS: 600, maxInFlight: 500 });
    const result = await cluster.run(long, (progress) => {
      const { controller } = cluster;
      if (progress.phase !== "measuring") return;
      const { elapsedS } = progress;
      if (elapsedS > 1.5 && elapsedS < 2.6) controller.change(long.id, users(30));
      if (elapsedS > 3.5 && elapsedS < 4.6) controller.change(long.id, { kind: "constant", ratePerS: 40 });
      if (elapsedS > 6.5) controller.stop(long.id, "enough");
    });
    const kinds = result.changes!.map(({ shape }) => shape.kind);
    expect(kinds[0]).toBe("users");
    expect(kinds.at(-1)).toBe("constant");
    const lastChangeS = result.changes!.at(-1)!.atS;
    const afterwards = result.intervals.slice(Math.ceil(lastChangeS), -1).map(({ planned }) => planned);
    for (const planned of afterwards) expect(planned).toBe(40);
    const beforeS = result.changes![0]!.atS;
    const before = result.intervals.slice(0, Math.floor(beforeS)).map(({ planned }) => planned);
    for (const planned of before) expect(planned).toBeLessThanOrEqual(110);
    expect(() => cluster.controller.change("nobody", users(1))).not.toThrow();
    expect(cluster.controller.change("nobody", users(1))).toBe(false);
  });

  it("a change that cannot be: refused by name, the load goes on", async () => {
    const long = spec({ shape: users(10), warmupS: 0, measureS: 1.5, maxInFlight: 100 });
    let message = "";
    const result = await cluster.run(
      long,
      afterMeasuring(0, () => {
        try {
          cluster.controller.change(long.id, users(500));
        } catch (error) {
          message = (error as Error).message;
        }
      }),
    );
    expect(message).toMatch(/maxInFlight of 100 would shed requests of 500 users/);
    expect(result.changes).toEqual([]);
    expect(result.total.planned).toBeGreaterThan(10);
  });
});

it("abort ends the load at once; the next measurement runs", async () => {
  const abort = new AbortController();
  const running = cluster.run(spec({ measureS: 30 }), undefined, abort.signal);
  setTimeout(() => abort.abort(new Error("Ctrl-C")), 500);
  await expect(running).rejects.toThrow("Ctrl-C");
  await new Promise((resolve) => setTimeout(resolve, 150));
  const stopped = server.requests;
  await new Promise((resolve) => setTimeout(resolve, 150));
  expect(server.requests).toBe(stopped);
  expect((await cluster.run(spec())).total.planned).toBe(100);
});

it("a killed worker invalidates the measurement by name and is replaced for the next one (locust#2008)", async () => {
  const [victim] = cluster.pids;
  setTimeout(() => process.kill(victim!, "SIGKILL"), 600);
  const startedMs = performance.now();
  const result = await cluster.run(spec({ measureS: 20 }));
  expect(performance.now() - startedMs).toBeLessThan(10_000);
  expect(result.valid).toBe(false);
  expect(result.invalidReasons.join()).toMatch(/load worker local-\d was lost/);
  const next = await cluster.run(spec());
  expect(next.total.planned).toBe(100);
  expect(next.workers).toBe(workers);
  expect(cluster.pids).not.toContain(victim);
});

it("workers that wait awake say so in the result, with what that cost, and what they may wait is bounded", async () => {
  const awake = await startLocalCluster({ workers: 1, busyWaitMs: 2 });
  try {
    const shape = { kind: "constant", ratePerS: 100 } as const;
    const result = await awake.run(spec({ measureS: 0.5, shape }));
    expect(result.total.ok).toBeGreaterThan(0);
    expect(result.health.busyWaitMs).toBe(2);
    expect(result.health.busyWaitShare).toBeGreaterThan(0);
    expect(result.health.busyWaitShare).toBeLessThanOrEqual(1);
  } finally {
    await awake.close();
  }
  await expect(startLocalCluster({ workers: 1, busyWaitMs: 11 })).rejects.toThrow(
    /wait awake 0 to 10 ms, got 11/,
  );
});
