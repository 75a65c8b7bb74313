import { describe, expect, it } from "vitest";
import { combineFits, halfWidth, type PlacedFit } from "../../../tuning/search/estimate";

/** A model whose knee lies at 1000 requests/s, and follows the speed. */
const logKnee = (logSpeed: number): number => Math.log(1000) + logSpeed;

function placed(value: number, logSpeed: number, slope = 20): PlacedFit {
  return { logValue: Math.log(value), fit: { logSpeed, slope, excess: 0, modelExcess: 0, course: null } };
}

describe("putting trials together", () => {
  it("without trials keeps the prediction, with the prior's width", () => {
    const { logSpeed, standardError } = combineFits([], logKnee);
    expect(logSpeed).toBe(0);
    expect(standardError).toBeCloseTo(0.05, 6);
  });

  it("follows trials that agree, and gets narrower with each", () => {
    const widths = [1, 2, 4, 8].map((count) => {
      const estimate = combineFits(
        Array.from({ length: count }, () => placed(1030, 0.03)),
        logKnee,
      );
      expect(estimate.logSpeed).toBeCloseTo(0.03, 2);
      return halfWidth(estimate, 0.95);
    });
    expect([...widths].sort((a, b) => b - a)).toEqual(widths);
    expect(widths[3]!).toBeLessThan(0.005);
  });

  it("gets wider when they disagree", () => {
    const calm = combineFits([placed(1000, 0.001), placed(1000, -0.001), placed(1000, 0)], logKnee);
    const wild = combineFits([placed(1000, 0.04), placed(1000, -0.04), placed(1000, 0)], logKnee);
    expect(wild.standardError).toBeGreaterThan(4 * calm.standardError);
    expect(wild.spread).toBeGreaterThan(0.01);
    expect(calm.spread).toBe(0);
  });

  it("lets far and flat trials count less", () => {
    const { logSpeed } = combineFits(
      [placed(1000, 0), placed(1000, 0), placed(600, 0.3), placed(1010, 0.2, 0.2)],
      logKnee,
    );
    expect(Math.abs(logSpeed)).toBeLessThan(0.01);
  });

  it("sees a trend: a knee that is flatter than the model's lies farther away", () => {
    // The real quantile reaches the bound at 800/s; the nearer a trial is to it, the nearer its speed to ln 0.8.
    const trend = 0.5;
    const trials = [1000, 900, 850, 820, 790].map((value) =>
      placed(value, Math.log(0.8) + trend * Math.log(value / 800)),
    );
    const estimate = combineFits(trials, logKnee);
    expect(Math.exp(logKnee(estimate.logSpeed)) / 800).toBeCloseTo(1, 1);
    expect(estimate.trend).toBeGreaterThan(0.2);
  });

  it("heeds limits only where they contradict the other trials", () => {
    const near = [placed(1000, 0.01), placed(1000, 0.01), placed(1000, 0.01)];
    const without = combineFits(near, logKnee).logSpeed;
    // "No faster than 1.2 times": nothing new.
    expect(combineFits([...near, placed(1000, 0.2, 0)], logKnee).logSpeed).toBe(without);
    // Far away the model's shape is to blame, near by the server is slower than was thought.
    expect(combineFits([...near, placed(3000, -0.7, 0)], logKnee).logSpeed).toBeCloseTo(without, 1);
    expect(combineFits([placed(1000, -0.2, 0)], logKnee).logSpeed).toBeLessThan(-0.08);
  });
});
