import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  atLeastMisses,
  atMostMisses,
  binomialVerdict,
  leastRequests,
  shareInterval,
} from "../../../tuning/statistics/binomial";
import {
  lnGamma,
  normalQuantile,
  regularizedBeta,
  studentTCdf,
  studentTQuantile,
} from "../../../tuning/statistics/special";

const misses = [0, 1, 2, 5, 10, 20, 50, 100, 200];

describe("least number of requests that proves the quantile", () => {
  it.each([
    [0.95, 0.95, [59, 93, 124, 208, 336, 577, 1260, 2353, 4485]],
    [0.95, 0.99, [90, 130, 165, 259, 398, 656, 1372, 2504, 4691]],
    [0.99, 0.99, [459, 662, 838, 1307, 2010, 3304, 6898, 12571, 23527]],
  ])("p%d at confidence %d", (quantile, confidence, expected) => {
    expect(misses.map((t) => leastRequests(t, quantile, confidence))).toEqual(expected);
  });

  it("is where the verdict turns to pass", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 300 }),
        fc.constantFrom(0.9, 0.95, 0.99),
        fc.constantFrom(0.95, 0.99),
        (t, q, c) => {
          const least = leastRequests(t, q, c);
          expect(binomialVerdict(least, t, q, c)).toBe("pass");
          expect(binomialVerdict(least - 1, t, q, c)).not.toBe("pass");
        },
      ),
    );
  });
});

describe("binomial probabilities", () => {
  /** By definition, from logarithms of factorials. */
  function direct(n: number, t: number, p: number): number {
    let sum = 0;
    for (let x = 0; x <= t; x++) {
      sum += Math.exp(
        lnGamma(n + 1) - lnGamma(x + 1) - lnGamma(n - x + 1) + x * Math.log(1 - p) + (n - x) * Math.log(p),
      );
    }
    return sum;
  }

  it("equal the sum of their terms", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 2000 }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        fc.constantFrom(0.5, 0.9, 0.95, 0.999),
        (n, share, p) => {
          const t = Math.min(n - 1, Math.floor(share * n));
          expect(atMostMisses(n, t, p)).toBeCloseTo(direct(n, t, p), 9);
          expect(atLeastMisses(n, t + 1, p)).toBeCloseTo(1 - direct(n, t, p), 9);
        },
      ),
    );
  });

  it("prove a fail symmetrically, and nothing without requests", () => {
    expect(binomialVerdict(100, 12, 0.95, 0.95)).toBe("fail");
    expect(binomialVerdict(100, 6, 0.95, 0.95)).toBe("undecided");
    expect(binomialVerdict(0, 0, 0.95, 0.95)).toBe("undecided");
    expect(binomialVerdict(3, 3, 0.95, 0.95)).toBe("fail");
  });

  it("give Clopper and Pearson's interval", () => {
    // 10 of 100 at 95 %: a textbook value.
    const { low, high } = shareInterval(100, 10, 0.95);
    expect([low, high]).toEqual([expect.closeTo(0.049, 4), expect.closeTo(0.1762, 4)]);
    expect(shareInterval(59, 0, 0.9).high).toBeCloseTo(0.0495, 4);
    expect(shareInterval(10, 10, 0.9)).toEqual({ low: expect.closeTo(0.7411, 4) as number, high: 1 });
  });
});

describe("distribution functions", () => {
  it("match tabulated values", () => {
    expect(lnGamma(5)).toBeCloseTo(Math.log(24), 12);
    expect(lnGamma(0.5)).toBeCloseTo(Math.log(Math.sqrt(Math.PI)), 12);
    expect(regularizedBeta(0.3, 2, 3)).toBeCloseTo(0.3483, 10);
    expect(normalQuantile(0.975)).toBeCloseTo(1.959964, 6);
    expect(normalQuantile(0.001)).toBeCloseTo(-3.090232, 6);
    expect(studentTQuantile(0.975, 1)).toBeCloseTo(12.7062, 3);
    expect(studentTQuantile(0.975, 9)).toBeCloseTo(2.26216, 4);
    expect(studentTQuantile(0.99, 4)).toBeCloseTo(3.74695, 4);
    expect(studentTQuantile(0.025, 30)).toBeCloseTo(-2.04227, 4);
    expect(studentTQuantile(0.975, Infinity)).toBeCloseTo(1.959964, 6);
    expect(studentTCdf(2.26216, 9)).toBeCloseTo(0.975, 5);
  });
});
