import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { startLocalCluster } from "../../loadgen/local-cluster";
import type { LoadClient, LoadShape, LoadSpec } from "../../loadgen/load-spec";
import { findVariant } from "../../model-repo/catalogue";
import { imagesFolder } from "../../model-repo/repository";
import type { Variant } from "../../model-repo/variant";
import { LiveRunner } from "../../tuning/live-runner";
import type { OpenTarget } from "../../tuning/target";
import type { TrialSpec } from "../../tuning/trial";
import { unsettledNote, waitUntilWarm, type WarmUpProgress } from "../../tuning/warm-up";
import { goodAnswer, InferServer } from "../loadgen/support/infer-server";

const original = findVariant("original");
/** Small images: the server's time is to decide, not that of the way. */
const variant: Variant = {
  ...original,
  artefact: { ...original.artefact, input: { ...original.artefact.input, dims: [8, 8, 3] } },
  maxBatchSize: 4,
  instanceCount: 2,
};

/** A watch in virtual time over windows with these percentiles; null: nothing was answered. */
async function watch(p95s: readonly (number | null)[], { windowS = 1, failed = 0, answered = 16 } = {}) {
  let [now, at] = [0, 0];
  const shapes: LoadShape[] = [];
  const lengthsS: number[] = [];
  const seen: WarmUpProgress[] = [];
  const warmUp = await waitUntilWarm({
    variant,
    boundMs: 100,
    nowS: () => now,
    onProgress: (progress) => seen.push(progress),
    run: async (shape, measureS) => {
      shapes.push(shape);
      lengthsS.push(measureS);
      now += windowS;
      const p95Ms = p95s[Math.min(at++, p95s.length - 1)]!;
      const counts = { planned: 1, ok: 1, late: 0, shed: 0, failed };
      const response = { count: p95Ms === null ? 0 : answered, p95Ms: p95Ms ?? NaN };
      return { total: counts, response: { ...response, meanMs: 0, p50Ms: 0, p90Ms: 0, p99Ms: 0, maxMs: 0 } };
    },
  });
  return { warmUp, shapes, lengthsS, seen };
}

describe("the watch for a warm server", () => {
  it("is over after two windows that agree, each with as many in flight as fill a batch on every instance", async () => {
    const { warmUp, shapes, seen } = await watch([42, 45]);
    expect(warmUp).toEqual({ seconds: 2, windows: 2, firstP95Ms: 42, lastP95Ms: 45, settled: true });
    expect(unsettledNote(warmUp)).toBeNull();
    expect(shapes).toHaveLength(2);
    expect(shapes[0]).toMatchObject({ kind: "users", users: 8, thinkMinS: 0, thinkMaxS: 0 });
    expect(seen.map(({ p95Ms }) => p95Ms)).toEqual([null, 42, 45]);
  });

  it("goes on while engines are built, also late ones, and does not mind small differences", async () => {
    expect((await watch([60_000, 31, 45_000, 30, 32])).warmUp).toMatchObject({
      windows: 5,
      firstP95Ms: 60_000,
      settled: true,
    });
    expect((await watch([null, 2, 6])).warmUp).toMatchObject({
      windows: 3,
      firstP95Ms: null,
      settled: true,
    });
  });

  it("does not compare windows in which nobody was answered twice, and makes them longer", async () => {
    const slow = await watch([500], { answered: 15 });
    expect(slow.lengthsS.slice(0, 3)).toEqual([0.6, 2, 2]);
    expect(slow.warmUp).toMatchObject({ windows: 20, settled: false });
    // However slow a server is, a window ends.
    const slower = await watch([60_000], { answered: 8 });
    expect(slower.lengthsS).toEqual([0.6, 8, 8]);
    expect(slower.warmUp.settled).toBe(true);
  });

  it("ends by windows or by time where nothing settles, and says so", async () => {
    const restless = Array.from({ length: 40 }, (_, index) => (index % 2 === 0 ? 50 : 500));
    const { warmUp } = await watch(restless);
    expect(warmUp).toMatchObject({ windows: 20, settled: false });
    expect(unsettledNote(warmUp)).toMatch(
      /did not settle within 20 s .*p95 50\.0 ms at first, 500\.0 ms at last/,
    );
    expect((await watch(restless, { windowS: 600 })).warmUp).toMatchObject({
      windows: 2,
      seconds: 1200,
      settled: false,
    });
    // A server that refuses is not ready, however fast it does.
    expect((await watch([5], { failed: 3 })).warmUp).toMatchObject({ windows: 20, settled: false });
  });
});

describe("a live runner", () => {
  let cluster: LoadClient;
  beforeAll(async () => {
    cluster = await startLocalCluster({ workers: 1 });
  });
  afterAll(() => cluster.close());

  /** A server that is slow for its first requests, as one that builds engines. */
  async function start(slowRequests: number, change: Partial<OpenTarget> = {}, isCold = true) {
    const server = await InferServer.listen();
    server.behaviour.answer = (index) => {
      server.behaviour.delayMs = index < slowRequests ? 500 : 10;
      return goodAnswer;
    };
    onTestFinished(() => server.close());
    const specs: LoadSpec[] = [];
    const load: LoadClient = {
      run: (spec, ...rest) => (specs.push(spec), cluster.run(spec, ...rest)),
      close: async () => undefined,
    };
    const target = {
      simulated: false,
      description: "a slow starter",
      control: {
        serve: async () => "model",
        batchSizes: async () => null,
        restore: async () => undefined,
        isCold: async () => isCold,
      },
      load,
      endpoints: () => ({ grpc: [server.address], metrics: [] }),
      timeDilation: () => 1,
      gpuGaugeLagMs: 0,
      ...change,
    } as unknown as OpenTarget;
    const shown: WarmUpProgress[] = [];
    const runner = new LiveRunner({
      target,
      imageFolder: imagesFolder,
      transport: "lean",
      // One for each of the images.
      referenceAnswers: async () => [goodAnswer, goodAnswer, goodAnswer],
      onWarmUp: (_variant, progress) => shown.push(progress),
    });
    return { runner, server, specs, shown };
  }

  const trial: TrialSpec = {
    variant,
    shape: { kind: "constant", ratePerS: 20 },
    slo: { quantile: 0.95, boundMs: 1000 },
    seed: 1,
    warmupS: 0,
    measureS: 0.5,
    purpose: "locate",
  };

  it("measures a server that builds engines only when that is done, once", async () => {
    const { runner, server, specs, shown } = await start(24);
    await runner.run(trial);
    const warmUp = runner.warmUpOf(variant)!;
    expect(warmUp.settled).toBe(true);
    expect(warmUp.windows).toBeGreaterThanOrEqual(3);
    expect(warmUp.firstP95Ms).toBeGreaterThan(450);
    expect(warmUp.lastP95Ms).toBeLessThan(450);
    expect(shown).toHaveLength(warmUp.windows + 1);
    // The trial's own requests came after the slow ones.
    expect(server.requests).toBeGreaterThan(24 + 10);
    expect(specs).toHaveLength(warmUp.windows + 1);
    expect(specs[0]).toMatchObject({ knownAnswers: null, subject: { trial: "warm-up, 8 users" } });
    await runner.run(trial);
    expect(specs).toHaveLength(warmUp.windows + 2);
    // A server that was started anew has its engines to build again.
    runner.reset();
    await runner.run(trial);
    expect(specs.length).toBeGreaterThan(warmUp.windows + 4);
  });

  it.each([
    ["whose repository warms it up", {}, false],
    ["that is simulated", { simulated: true }, true],
  ])("does not watch a server %s", async (_which, change, isCold) => {
    const { runner, specs } = await start(0, change, isCold);
    await runner.run(trial);
    expect(specs).toHaveLength(1);
    expect(runner.warmUpOf(variant)).toBeNull();
  });
});
