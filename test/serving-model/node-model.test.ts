import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Execution, NodeModel, type NodeSettings } from "../../serving-model/node-model";

const settings = (partial: Partial<NodeSettings> = {}): NodeSettings => ({
  maxBatchSize: 8,
  preferredBatchSizes: [8],
  queueDelayUs: 20_000,
  dynamicBatching: true,
  instanceCount: 1,
  law: { hostMsPerImage: 0.5, gpuMsPerBatch: 3, gpuMsPerImage: 1, ingressRequestsPerS: Infinity },
  payloadBytes: 1000,
  ...partial,
});

interface Log {
  readonly executions: Execution<number>[];
  readonly rejected: [number, string, number][];
  readonly node: NodeModel<number>;
}

function run(
  config: NodeSettings,
  arrivals: readonly { atUs: number; images?: number; bytes?: number }[],
): Log {
  const executions: Execution<number>[] = [];
  const rejected: [number, string, number][] = [];
  const node = new NodeModel<number>(config, {
    onExecuted: (execution) => executions.push(execution),
    onRejected: (item, reason, atUs) => rejected.push([item, reason, atUs]),
  });
  arrivals.forEach(({ atUs, images = 1, bytes = config.payloadBytes }, i) => {
    node.advance(atUs);
    node.arrive(i, images, bytes, atUs);
  });
  node.advance(1e12);
  return { executions, rejected, node };
}

const atOnce = (count: number): { atUs: number }[] => Array.from({ length: count }, () => ({ atUs: 0 }));

describe("one execution", () => {
  it("is a host phase, then a GPU phase", () => {
    const { executions } = run(settings(), atOnce(8));
    expect(executions).toHaveLength(1);
    expect(executions[0]).toMatchObject({
      startUs: 0,
      hostEndUs: 4000,
      gpuStartUs: 4000,
      endUs: 15_000,
      images: 8,
      instance: 0,
    });
    expect(executions[0]!.items).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  });

  it("starts after the queue delay when the batch is not full", () => {
    const { executions } = run(settings(), [{ atUs: 0 }, { atUs: 15_000 }]);
    expect(executions).toMatchObject([{ startUs: 20_000, hostEndUs: 21_000, endUs: 26_000, images: 2 }]);
    expect(executions[0]!.enqueuedUs).toEqual([0, 15_000]);
  });
});

describe("instances", () => {
  it("do their host phases in parallel and share the GPU, first come first served", () => {
    const { executions } = run(settings({ instanceCount: 2 }), atOnce(16));
    expect(executions).toMatchObject([
      { startUs: 0, hostEndUs: 4000, gpuStartUs: 4000, endUs: 15_000 },
      { startUs: 0, hostEndUs: 4000, gpuStartUs: 15_000, endUs: 26_000 },
    ]);
  });

  it("let a small batch that started later reach the GPU first", () => {
    const config = settings({
      instanceCount: 2,
      queueDelayUs: 0,
      preferredBatchSizes: [],
      law: { ...settings().law, hostMsPerImage: 10 },
    });
    // Eight images wait for the only idle instance; one more finds the other idle.
    const { executions } = run(config, [{ atUs: 0, images: 8 }, { atUs: 1000 }]);
    expect(executions.map((e) => [e.images, e.gpuStartUs])).toEqual([
      [1, 11_000],
      [8, 80_000],
    ]);
  });
});

describe("the link", () => {
  it("passes requests one after the other, by their bytes", () => {
    const config = settings({
      law: { ...settings().law, ingressRequestsPerS: 1000 },
      maxBatchSize: 3,
      preferredBatchSizes: [3],
    });
    const { executions } = run(config, [{ atUs: 0 }, { atUs: 0, bytes: 500 }, { atUs: 100 }]);
    expect(executions[0]!.enqueuedUs).toEqual([1000, 1500, 2500]);
    expect(executions[0]!.startUs).toBe(2500);
  });
});

describe("queue policy and totals", () => {
  it("reports what is refused", () => {
    const queuePolicy = {
      maxQueueSize: 2,
      defaultTimeoutUs: 0,
      timeoutAction: "reject",
      allowTimeoutOverride: false,
    } as const;
    const { rejected } = run(settings({ queuePolicy }), atOnce(3));
    expect(rejected).toEqual([[2, "queue-full", 0]]);
  });

  it("counts only the GPU time that has passed", () => {
    const node = new NodeModel<number>(settings(), { onExecuted: () => {}, onRejected: () => {} });
    for (let i = 0; i < 8; i++) node.arrive(i, 1, 1000, 0);
    node.advance(10_000);
    expect(node.totals(10_000)).toEqual({ executions: 0, images: 0, gpuBusyUs: 6000 });
    expect([node.inside, node.waiting]).toEqual([8, 0]);
    node.advance(20_000);
    expect(node.totals(20_000)).toEqual({ executions: 1, images: 8, gpuBusyUs: 11_000 });
    expect([node.inside, node.nextEventUs()]).toEqual([0, Infinity]);
  });

  it("lets a variation replace the phases' times", () => {
    const seen: string[] = [];
    const variation: NodeSettings["variation"] = (nominalUs, phase, startUs) => {
      seen.push(`${phase} ${nominalUs} at ${startUs}`);
      return nominalUs * 2;
    };
    expect(run(settings({ variation }), atOnce(8)).executions[0]!.endUs).toBe(30_000);
    expect(seen).toEqual(["host 4000 at 0", "gpu 11000 at 8000"]);
  });
});

describe("bad settings", () => {
  it.each([
    [{ instanceCount: 0 }, /instanceCount is 0/],
    [{ payloadBytes: 0 }, /payloadBytes is 0/],
    [{ law: { ...settings().law, ingressRequestsPerS: 0 } }, /ingressRequestsPerS is 0/],
    [{ law: { ...settings().law, gpuMsPerImage: -1 } }, /gpuMsPerImage is -1/],
    [{ law: { ...settings().law, hostMsPerImage: NaN } }, /hostMsPerImage is NaN/],
  ])("%o is named", (partial, message) => {
    expect(() => run(settings(partial), [])).toThrow(message);
  });
});

describe("properties", () => {
  it("answers every request once; phases follow each other; the GPU never works on two batches", () => {
    const arrivals = fc.array(fc.tuple(fc.integer({ min: 0, max: 20_000 }), fc.integer({ min: 1, max: 8 })), {
      minLength: 1,
      maxLength: 150,
    });
    fc.assert(
      fc.property(
        arrivals,
        fc.integer({ min: 1, max: 4 }),
        fc.constantFrom(Infinity, 400),
        (gaps, instanceCount, ingressRequestsPerS) => {
          let atUs = 0;
          const list = gaps.map(([gap, images]) => ({ atUs: (atUs += gap), images, bytes: images * 1000 }));
          const { executions, node } = run(
            settings({ instanceCount, law: { ...settings().law, ingressRequestsPerS } }),
            list,
          );
          expect(executions.flatMap((e) => e.items).sort((a, b) => a - b)).toEqual(list.map((_, i) => i));
          const byGpu = [...executions].sort((a, b) => a.gpuStartUs - b.gpuStartUs);
          byGpu.forEach((e, i) => {
            e.items.forEach((item, j) => {
              expect(e.enqueuedUs[j]).toBeGreaterThanOrEqual(list[item]!.atUs);
              expect(e.enqueuedUs[j]).toBeLessThanOrEqual(e.startUs);
            });
            expect(e.hostEndUs).toBeGreaterThanOrEqual(e.startUs);
            expect(e.gpuStartUs).toBeGreaterThanOrEqual(e.hostEndUs);
            if (i > 0) expect(e.gpuStartUs).toBeGreaterThanOrEqual(byGpu[i - 1]!.endUs);
          });
          const busyUs = executions.reduce((sum, e) => sum + e.endUs - e.gpuStartUs, 0);
          expect(node.totals(1e12).gpuBusyUs).toBeCloseTo(busyUs, 3);
        },
      ),
      { numRuns: 150 },
    );
  });
});
