import { describe, expect, it } from "vitest";
import { Random } from "../../../serving-model/random";
import { batchMeansOf, type CountedInterval } from "../../../tuning/statistics/batch-means";

/** Misses by independent coin tosses, or in an autoregressive rhythm with the same mean. */
function series(
  count: number,
  planned: number,
  share: number,
  memory: number,
  seed: number,
): CountedInterval[] {
  const random = new Random(seed);
  let level = random.nextNormal();
  return Array.from({ length: count }, () => {
    level = memory * level + Math.sqrt(1 - memory ** 2) * random.nextNormal();
    const here = memory === 0 ? share : share * Math.max(0, 1 + 0.8 * level);
    let misses = 0;
    for (let i = 0; i < planned; i++) if (random.nextUnit() < here) misses++;
    return { planned, misses };
  });
}

function coverage(memory: number, runs: number): number {
  let covered = 0;
  for (let seed = 0; seed < runs; seed++) {
    const { low, high } = batchMeansOf(series(100, 100, 0.05, memory, seed), 1000);
    // max(0, ...) lifts the mean of the rhythm by 8.3 %: E max(0, 1 + 0.8 z) = 1.0834.
    const truth = memory === 0 ? 0.05 : 0.05 * 1.0834;
    if (low <= truth && truth <= high) covered++;
  }
  return covered / runs;
}

describe("interval of the miss share", () => {
  it("covers the true share of independent requests about as often as it says", () => {
    expect(coverage(0, 300)).toBeGreaterThanOrEqual(0.92);
    const { varianceRatio, low, high } = batchMeansOf(series(100, 100, 0.05, 0, 1), 1000);
    expect(varianceRatio).toBeLessThan(2);
    expect(high - low).toBeLessThan(0.014);
  });

  it("widens when neighbouring intervals depend on each other, and still covers", () => {
    expect(coverage(0.8, 300)).toBeGreaterThanOrEqual(0.88);
    const { varianceRatio, intervalsPerBatch } = batchMeansOf(series(100, 100, 0.05, 0.8, 3), 1000);
    expect(varianceRatio).toBeGreaterThan(4);
    expect(intervalsPerBatch).toBeGreaterThan(1);
  });

  it("is narrower than the truth without batches: one interval a batch would cover far less", () => {
    let naive = 0;
    for (let seed = 0; seed < 200; seed++) {
      const intervals = series(100, 100, 0.05, 0.8, seed);
      const misses = intervals.reduce((sum, interval) => sum + interval.misses, 0);
      const half = 1.96 * Math.sqrt(((misses / 10_000) * (1 - misses / 10_000)) / 10_000);
      if (Math.abs(misses / 10_000 - 0.05 * 1.0834) <= half) naive++;
    }
    expect(naive / 200).toBeLessThan(0.5);
  });

  it("says when even the longest batches depend on each other", () => {
    const ramp = Array.from({ length: 20 }, (_, i) => ({ planned: 100, misses: i }));
    expect(batchMeansOf(ramp, 200).independent).toBe(false);
  });

  it("without misses counts independent moments, not requests", () => {
    const calm = Array.from({ length: 10 }, () => ({ planned: 2000, misses: 0 }));
    // 100 moments without a miss: the upper limit of Clopper and Pearson for 0 of 100.
    expect(batchMeansOf(calm, 100)).toMatchObject({
      share: 0,
      low: 0,
      high: expect.closeTo(0.0362, 4) as number,
    });
    expect(batchMeansOf(calm, 10).high).toBeGreaterThan(0.3);
  });

  it("weighs intervals by their requests", () => {
    const uneven = [
      { planned: 1000, misses: 10 },
      { planned: 10, misses: 10 },
    ];
    expect(batchMeansOf(uneven, 20).share).toBeCloseTo(20 / 1010, 12);
  });

  it("refuses an empty window", () => {
    expect(() => batchMeansOf([{ planned: 0, misses: 0 }], 10)).toThrow(/No request was planned/);
  });
});
