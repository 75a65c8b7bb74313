import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { DynamicBatcher, type BatcherSettings } from "../../serving-model/batcher";

const settings = (partial: Partial<BatcherSettings> = {}): BatcherSettings => ({
  maxBatchSize: 8,
  preferredBatchSizes: [],
  queueDelayUs: 100_000,
  dynamicBatching: true,
  ...partial,
});

interface Run {
  readonly batches: number[];
  readonly startsUs: number[];
}

/** Drives a batcher the way its owner does: arrivals as [time, images], instances that take 300 ms a batch. */
function drive(
  config: BatcherSettings,
  arrivals: readonly (readonly [number, number])[],
  instances = 1,
): Run {
  const batcher = new DynamicBatcher<number>(config);
  const freeAtUs = new Array<number>(instances).fill(0);
  const batches: number[] = [];
  const startsUs: number[] = [];
  let next = 0;
  let nowUs = 0;
  for (;;) {
    while (next < arrivals.length && arrivals[next]![0] <= nowUs) {
      batcher.enqueue(next, arrivals[next]![1], nowUs);
      next++;
      serve();
    }
    serve();
    const arrival = next < arrivals.length ? arrivals[next]![0] : Infinity;
    const idle = freeAtUs.some((free) => free <= nowUs);
    const wake =
      batcher.queuedRequests === 0 ? Infinity : idle ? batcher.nextWakeUs() : Math.min(...freeAtUs);
    const at = Math.min(arrival, wake);
    if (at === Infinity) return { batches, startsUs };
    nowUs = Math.max(nowUs, at);
  }
  function serve(): void {
    for (let i = 0; i < instances; i++) {
      if (freeAtUs[i]! > nowUs) continue;
      const batch = batcher.take(nowUs);
      if (batch === null) return;
      batches.push(batch.images);
      startsUs.push(nowUs);
      freeAtUs[i] = nowUs + 300_000;
    }
  }
}

const atOnce = (count: number, images = 1): [number, number][] =>
  Array.from({ length: count }, () => [0, images]);
const every = (count: number, gapUs: number): [number, number][] =>
  Array.from({ length: count }, (_, i) => [i * gapUs, 1]);

describe("batches that a running Triton forms", () => {
  it("without delay takes whatever is queued, up to the maximum", () => {
    expect(drive(settings({ queueDelayUs: 0 }), atOnce(20)).batches).toEqual([1, 8, 8, 3]);
  });

  it("waits for the delay or a full batch, even on an idle instance", () => {
    expect(drive(settings(), atOnce(5))).toEqual({ batches: [5], startsUs: [100_000] });
    expect(drive(settings(), atOnce(8))).toEqual({ batches: [8], startsUs: [0] });
    expect(drive(settings(), atOnce(12)).batches).toEqual([8, 4]);
  });

  it("sends a preferred size at once from an idle instance", () => {
    const preferred = settings({ preferredBatchSizes: [4] });
    expect(drive(preferred, atOnce(3))).toEqual({ batches: [3], startsUs: [100_000] });
    expect(drive(preferred, atOnce(4))).toEqual({ batches: [4], startsUs: [0] });
    expect(drive(preferred, atOnce(6))).toEqual({ batches: [4, 2], startsUs: [0, 300_000] });
    expect(drive(settings({ preferredBatchSizes: [4, 8], maxBatchSize: 16 }), atOnce(13)).batches).toEqual([
      4, 9,
    ]);
  });

  it("lets the batch grow past the preferred size once the delay is over", () => {
    const busyUntilAfterTheDelay: [number, number][] = [
      ...atOnce(4),
      ...Array.from({ length: 6 }, () => [60_000, 1] as [number, number]),
    ];
    expect(drive(settings({ preferredBatchSizes: [4] }), busyUntilAfterTheDelay).batches).toEqual([4, 6]);
  });

  it("without delay still prefers a preferred size", () => {
    const busy: [number, number][] = [
      ...atOnce(1),
      ...Array.from({ length: 6 }, () => [60_000, 1] as [number, number]),
    ];
    expect(drive(settings({ preferredBatchSizes: [4], queueDelayUs: 0 }), busy).batches).toEqual([1, 4, 2]);
  });

  it("never splits a request and sends what cannot grow", () => {
    expect(drive(settings({ preferredBatchSizes: [8] }), atOnce(3, 4))).toEqual({
      batches: [8, 4],
      startsUs: [0, 300_000],
    });
    expect(drive(settings(), atOnce(3, 3))).toEqual({ batches: [6, 3], startsUs: [0, 300_000] });
    const mixed: [number, number][] = [5, 5, 2, 1].map((images) => [0, images]);
    expect(drive(settings(), mixed).batches).toEqual([5, 8]);
  });

  it("fills four instances before it makes a rest wait", () => {
    const config = settings({ maxBatchSize: 16, preferredBatchSizes: [16], queueDelayUs: 20_000 });
    expect(drive(config, atOnce(40), 4)).toEqual({ batches: [16, 16, 8], startsUs: [0, 0, 20_000] });
  });

  it("counts the delay from the oldest request", () => {
    for (const preferredBatchSizes of [[], [64]]) {
      // The second batch is everything that came in while the instance was busy: a running Triton sometimes freezes it earlier.
      expect(drive(settings({ maxBatchSize: 64, preferredBatchSizes }), every(12, 30_000))).toEqual({
        batches: [4, 8],
        startsUs: [100_000, 400_000],
      });
    }
  });

  it("without dynamic batching runs every request alone", () => {
    expect(drive(settings({ dynamicBatching: false }), atOnce(6)).batches).toEqual([1, 1, 1, 1, 1, 1]);
    expect(drive(settings({ dynamicBatching: false }), atOnce(2, 3)).batches).toEqual([3, 3]);
  });
});

describe("queue policy", () => {
  const policy = {
    maxQueueSize: 0,
    defaultTimeoutUs: 0,
    timeoutAction: "reject",
    allowTimeoutOverride: false,
  } as const;

  it("refuses what is over max_queue_size", () => {
    const batcher = new DynamicBatcher<string>(settings({ queuePolicy: { ...policy, maxQueueSize: 2 } }));
    expect([batcher.enqueue("a", 1, 0), batcher.enqueue("b", 1, 0), batcher.enqueue("c", 1, 0)]).toEqual([
      true,
      true,
      false,
    ]);
    expect(batcher.queuedRequests).toBe(2);
  });

  it("rejects after the timeout and frees the place", () => {
    const batcher = new DynamicBatcher<string>(
      settings({ queuePolicy: { ...policy, defaultTimeoutUs: 50_000, maxQueueSize: 1 } }),
    );
    batcher.enqueue("a", 1, 0);
    expect(batcher.nextWakeUs()).toBe(50_000);
    expect(batcher.enqueue("b", 1, 50_000)).toBe(true);
    expect(batcher.take(50_000)).toBeNull();
    expect(batcher.drainExpired()).toEqual(["a"]);
    expect(batcher.drainExpired()).toEqual([]);
    expect(batcher.queuedImages).toBe(1);
  });

  it("delays after the timeout: served after all others", () => {
    const batcher = new DynamicBatcher<string>(
      settings({
        maxBatchSize: 2,
        queuePolicy: { ...policy, defaultTimeoutUs: 50_000, timeoutAction: "delay" },
      }),
    );
    batcher.enqueue("old", 1, 0);
    batcher.enqueue("b", 1, 40_000);
    batcher.enqueue("c", 1, 41_000);
    expect(batcher.take(60_000)?.items).toEqual(["b", "c"]);
    expect(batcher.take(150_000)?.items).toEqual(["old"]);
    expect(batcher.drainExpired()).toEqual([]);
  });

  it("lets a request shorten its timeout only if allowed", () => {
    const withOverride = (allowTimeoutOverride: boolean) => {
      const batcher = new DynamicBatcher<string>(
        settings({ queuePolicy: { ...policy, defaultTimeoutUs: 50_000, allowTimeoutOverride } }),
      );
      batcher.enqueue("a", 1, 0, 10_000);
      batcher.enqueue("b", 1, 0, 90_000);
      batcher.take(20_000);
      return batcher.drainExpired();
    };
    expect(withOverride(true)).toEqual(["a"]);
    expect(withOverride(false)).toEqual([]);
  });
});

describe("bad settings", () => {
  it.each([
    [{ maxBatchSize: 0 }, /maxBatchSize is 0/],
    [{ queueDelayUs: -1 }, /queueDelayUs is -1/],
    [{ preferredBatchSizes: [9] }, /preferredBatchSizes has 9.*maxBatchSize \(8\)/],
    [
      {
        queuePolicy: {
          maxQueueSize: -1,
          defaultTimeoutUs: 0,
          timeoutAction: "reject" as const,
          allowTimeoutOverride: false,
        },
      },
      /maxQueueSize/,
    ],
  ])("%o is named", (partial, message) => {
    expect(() => new DynamicBatcher(settings(partial))).toThrow(message);
  });

  it("a request that cannot fit a batch is named", () => {
    expect(() => new DynamicBatcher(settings()).enqueue(0, 9, 0)).toThrow(/9 images.*1 to 8/);
  });
});

const config = fc
  .record({
    maxBatchSize: fc.integer({ min: 1, max: 12 }),
    preferredBatchSizes: fc.array(fc.integer({ min: 1, max: 12 }), { maxLength: 2 }),
    queueDelayUs: fc.constantFrom(0, 10_000, 350_000),
    dynamicBatching: fc.boolean(),
  })
  .map((c) => ({
    ...c,
    preferredBatchSizes: c.preferredBatchSizes.filter((size) => size <= c.maxBatchSize),
  }));

describe("properties", () => {
  it("serves every request exactly once, in order, in batches that fit", () => {
    fc.assert(
      fc.property(
        config,
        fc.array(fc.tuple(fc.integer({ min: 0, max: 50_000 }), fc.integer({ min: 1, max: 12 })), {
          maxLength: 200,
        }),
        (c, gaps) => {
          const batcher = new DynamicBatcher<number>(c);
          const served: number[] = [];
          let nowUs = 0;
          const takeAll = (): void => {
            for (let batch = batcher.take(nowUs); batch !== null; batch = batcher.take(nowUs)) {
              expect(batch.images).toBeLessThanOrEqual(c.maxBatchSize);
              served.push(...batch.items);
            }
          };
          gaps.forEach(([gap, images], i) => {
            nowUs += gap;
            batcher.enqueue(i, Math.min(images, c.maxBatchSize), nowUs);
            if (i % 3 === 0) takeAll();
          });
          nowUs = Math.max(nowUs, batcher.nextWakeUs() === Infinity ? nowUs : batcher.nextWakeUs());
          while (batcher.queuedRequests > 0) {
            nowUs = Math.max(nowUs, batcher.nextWakeUs());
            takeAll();
          }
          expect(served).toEqual(gaps.map((_, i) => i));
          expect(batcher.queuedImages).toBe(0);
          expect(batcher.nextWakeUs()).toBe(Infinity);
        },
      ),
      { numRuns: 200 },
    );
  });

  it("decides the same for single-image requests whether they are counted or walked", () => {
    fc.assert(
      fc.property(
        config,
        fc.integer({ min: 1, max: 30 }),
        fc.integer({ min: 0, max: 400_000 }),
        (c, queued, waitedUs) => {
          const singles = new DynamicBatcher<number>(c);
          for (let i = 0; i < queued; i++) singles.enqueue(i, 1, 0);
          // One two-image request behind the rest forces the walk; it must not change a batch that ends before it.
          const batch = singles.take(waitedUs);
          const mixed = new DynamicBatcher<number>(c);
          for (let i = 0; i < queued; i++) mixed.enqueue(i, 1, 0);
          if (c.maxBatchSize < 2 || queued <= c.maxBatchSize) return;
          mixed.enqueue(queued, 2, 0);
          expect(mixed.take(waitedUs)?.images ?? 0).toBe(batch?.images ?? 0);
        },
      ),
      { numRuns: 500 },
    );
  });
});
