import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { RandomStream } from "../../loadgen/random";

const draw = (random: RandomStream, n: number): number[] => Array.from({ length: n }, () => random.uniform());

describe("RandomStream", () => {
  it("gives the same numbers for the same key and others for a neighbouring key", () => {
    fc.assert(
      fc.property(fc.maxSafeInteger(), fc.nat(), fc.nat(5000), (seed, purpose, worker) => {
        const once = draw(new RandomStream(seed, purpose, worker), 8);
        expect(draw(new RandomStream(seed, purpose, worker), 8)).toEqual(once);
        expect(draw(new RandomStream(seed, purpose, worker + 1), 8)).not.toEqual(once);
        expect(
          draw(new RandomStream(seed === Number.MAX_SAFE_INTEGER ? 0 : seed + 1, purpose, worker), 8),
        ).not.toEqual(once);
        expect(once.every((value) => value >= 0 && value < 1)).toBe(true);
      }),
    );
  });

  it("is uniform: chi-square over 100 cells stays below the 99.99 % bound", () => {
    const cells = new Array<number>(100).fill(0);
    const n = 100_000;
    for (let seed = 0; seed < 100; seed++)
      for (const value of draw(new RandomStream(seed, 1), n / 100)) cells[Math.floor(value * 100)]!++;
    const chiSquare = cells.reduce((sum, count) => sum + (count - n / 100) ** 2 / (n / 100), 0);
    expect(chiSquare).toBeLessThan(161.3);
  });

  it("streams of one seed are uncorrelated", () => {
    const n = 20_000;
    const one = draw(new RandomStream(7, 1, 0), n);
    const other = draw(new RandomStream(7, 1, 1), n);
    const correlation =
      one.reduce((sum, value, i) => sum + (value - 0.5) * (other[i]! - 0.5), 0) / n / (1 / 12);
    expect(Math.abs(correlation)).toBeLessThan(4 / Math.sqrt(n));
  });

  it("exponential numbers have mean 1 and variance 1", () => {
    const random = new RandomStream(3);
    const values = Array.from({ length: 100_000 }, () => random.exponential());
    const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
    const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length;
    expect(mean).toBeCloseTo(1, 1);
    expect(variance).toBeGreaterThan(0.95);
    expect(variance).toBeLessThan(1.05);
    expect(Math.min(...values.slice(0, 50_000))).toBeGreaterThan(0);
  });

  it("refuses a key that is no integer", () => {
    expect(() => new RandomStream(1.5)).toThrow(/must be integers, got 1.5/);
    expect(() => new RandomStream(1, NaN)).toThrow(/got NaN/);
  });
});
