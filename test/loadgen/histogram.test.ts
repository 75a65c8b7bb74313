import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Histogram, maxValueUs, nearestRank, type SparseHistogram } from "../../loadgen/histogram";

const value = fc.oneof(fc.nat(5000), fc.nat(10_000_000), fc.integer({ min: 0, max: maxValueUs }));
const values = fc.array(value, { maxLength: 300 });

function of(list: readonly number[]): Histogram {
  const histogram = new Histogram();
  for (const one of list) histogram.record(one);
  return histogram;
}

/** Nearest rank on the values themselves. */
function exactPercentile(list: readonly number[], p: number): number {
  const sorted = [...list].sort((one, other) => one - other);
  return sorted[nearestRank(p, sorted.length) - 1]!;
}

describe("Histogram", () => {
  it("percentiles are at most 0.1 % below the exact nearest rank, and exact below 2,048 us", () => {
    fc.assert(
      fc.property(
        fc.array(value, { minLength: 1, maxLength: 300 }),
        fc.double({ min: 0.001, max: 1, noNaN: true }),
        (list, p) => {
          const exact = exactPercentile(list, p);
          const found = of(list).percentileUs(p);
          expect(found).toBeLessThanOrEqual(exact);
          expect(exact - found).toBeLessThanOrEqual(exact / 1024);
          if (exact < 2048) expect(found).toBe(exact);
        },
      ),
    );
  });

  it("merging equals recording the union, over objects and over the wire form", () => {
    fc.assert(
      fc.property(values, values, (one, other) => {
        const union = of([...one, ...other]).toSparse();
        const merged = of(one);
        merged.merge(of(other));
        expect(merged.toSparse()).toEqual(union);
        const overWire = Histogram.fromSparse(
          JSON.parse(JSON.stringify(of(one).toSparse())) as SparseHistogram,
        );
        overWire.mergeSparse(of(other).toSparse());
        expect(overWire.toSparse()).toEqual(union);
        expect(overWire.count).toBe(one.length + other.length);
      }),
    );
  });

  it("merges in any order to the same", () => {
    fc.assert(
      fc.property(values, values, values, (a, b, c) => {
        const left = of(a);
        left.merge(of(b));
        left.merge(of(c));
        const right = of(c);
        right.merge(of(a));
        right.merge(of(b));
        expect(left.toSparse()).toEqual(right.toSparse());
      }),
    );
  });

  it("merges buckets instead of averaging percentiles (k6-operator#812)", () => {
    const fast = of(new Array<number>(95).fill(10_000));
    const slow = of(new Array<number>(5).fill(1_000_000));
    fast.merge(slow);
    expect(fast.percentileUs(0.95)).toBeCloseTo(10_000, -1);
    expect(fast.percentileUs(0.96)).toBeGreaterThan(999_000);
  });

  it("keeps sum, mean and maximum exact", () => {
    fc.assert(
      fc.property(fc.array(value, { minLength: 1, maxLength: 50 }), (list) => {
        const histogram = of(list);
        const sum = list.reduce((total, one) => total + one, 0);
        expect(histogram.sumUs).toBe(sum);
        expect(histogram.meanUs).toBe(sum / list.length);
        expect(histogram.maxUs).toBe(Math.max(...list));
      }),
    );
  });

  it("pairs carry every count at its bucket's lower bound", () => {
    fc.assert(
      fc.property(values, (list) => {
        const pairs = of(list).pairs();
        expect(pairs.reduce((sum, [, count]) => sum + count, 0)).toBe(list.length);
        for (const one of list) {
          const pair = pairs.findLast(([lower]) => lower <= one);
          expect(pair).toBeDefined();
          expect(one - pair![0]).toBeLessThanOrEqual(one / 1024);
        }
        expect(pairs.map(([lower]) => lower)).toEqual(pairs.map(([lower]) => lower).sort((a, b) => a - b));
      }),
    );
  });

  it("a percentile of nothing is not 0 (k6#4283)", () => {
    expect(new Histogram().percentileUs(0.95)).toBeNaN();
    expect(new Histogram().maxUs).toBeNaN();
    expect(new Histogram().percentileUs(0.95) <= 100_000).toBe(false);
  });

  it("takes out what was merged: the rest is as if that had never been there", () => {
    fc.assert(
      fc.property(values, values, (kept, gone) => {
        const histogram = of(kept);
        histogram.mergeSparse(of(gone).toSparse());
        histogram.subtractSparse(of(gone).toSparse());
        const rest = of(kept);
        expect(histogram.pairs()).toEqual(rest.pairs());
        expect([histogram.count, histogram.sumUs]).toEqual([rest.count, rest.sumUs]);
      }),
    );
    expect(() => of([5]).subtractSparse(of([6]).toSparse())).toThrow(/holds less than 1/);
  });

  it("is empty after clear and can be used again", () => {
    const histogram = of([5, 100_000, 7]);
    histogram.clear();
    expect(histogram.toSparse()).toEqual(new Histogram().toSparse());
    histogram.record(42);
    expect(histogram.percentileUs(1)).toBe(42);
  });

  it("refuses what is no time", () => {
    for (const bad of [-1, NaN, Infinity, maxValueUs + 1])
      expect(() => new Histogram().record(bad)).toThrow(/must be 0\.\.68719476735 us/);
    expect(() => new Histogram().percentileUs(0)).toThrow(/must be in \(0, 1\]/);
  });

  it("refuses a wire form that no histogram has, and stays as it was", () => {
    const good = of([1, 2, 3]);
    const before = good.toSparse();
    const bad: SparseHistogram[] = [
      { gaps: [1], counts: [], sumUs: 0, maxUs: 0 },
      { gaps: [1, 0], counts: [1, 1], sumUs: 2, maxUs: 1 },
      { gaps: [1e9], counts: [1], sumUs: 2, maxUs: 1 },
      { gaps: [-1], counts: [1], sumUs: 2, maxUs: 1 },
      { gaps: [1], counts: [0], sumUs: 2, maxUs: 1 },
      { gaps: [1], counts: [0.5], sumUs: 2, maxUs: 1 },
      { gaps: [1], counts: [1], sumUs: NaN, maxUs: 1 },
    ];
    for (const sparse of bad) expect(() => good.mergeSparse(sparse)).toThrow(RangeError);
    expect(good.toSparse()).toEqual(before);
  });
});

describe("nearestRank", () => {
  it("is the smallest whole number >= p n, free of rounding noise", () => {
    expect(nearestRank(0.95, 100)).toBe(95);
    expect(nearestRank(0.95, 101)).toBe(96);
    expect(nearestRank(0.07, 100)).toBe(7);
    expect(nearestRank(0.001, 3)).toBe(1);
    expect(nearestRank(1, 3)).toBe(3);
  });
});
