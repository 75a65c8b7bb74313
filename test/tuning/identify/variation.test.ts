import { describe, expect, it } from "vitest";
import { misfit, steady, variationFor } from "../../../tuning/identify/variation";

describe("a law of variation", () => {
  it("gives the share of long phases that it says, and the same times again for the same seed", () => {
    const law = { cv: 0, tailShare: 0.01, tailFactor: 5 };
    const times = (seed: number): number[] => {
      const variation = variationFor(law)!(seed);
      return Array.from({ length: 50_000 }, () => variation(1000, "gpu", 0));
    };
    const long = times(1).filter((us) => us > 4000).length;
    expect(long / 50_000).toBeGreaterThan(0.008);
    expect(long / 50_000).toBeLessThan(0.012);
    expect(times(1)).toEqual(times(1));
    expect(times(2)).not.toEqual(times(1));
  });

  it("keeps the mean of jitter, and is none for a steady server", () => {
    const variation = variationFor({ cv: 0.3, tailShare: 0, tailFactor: 1 })!(4);
    const mean =
      Array.from({ length: 50_000 }, () => variation(1000, "host", 0)).reduce((a, b) => a + b, 0) / 50_000;
    expect(mean / 1000).toBeCloseTo(1, 1);
    expect(variationFor(steady)).toBeNull();
  });
});

describe("comparing response times", () => {
  it("is 0 for equal ones, small for counts that chance explains, large for another tail", () => {
    const measured = { requests: 10_000, over: [0.5, 0.2, 0.05, 0.01, 0.002, 0, 0] };
    expect(misfit(measured, measured)).toBe(0);
    const nearly = { ...measured, over: [0.5, 0.2, 0.051, 0.011, 0.0021, 0.0001, 0] };
    const heavy = { ...measured, over: [0.5, 0.2, 0.05, 0.03, 0.02, 0.01, 0.005] };
    expect(misfit(measured, nearly)).toBeLessThan(0.01);
    expect(misfit(measured, heavy)).toBeGreaterThan(20 * misfit(measured, nearly));
  });
});
