import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { halfWidth, type SpeedEstimate } from "../../../tuning/search/estimate";
import { endsOf, inProportion, movesOf } from "../../../tuning/search/interval-ends";
import type { Knee } from "../../../tuning/search/model-knee";

const estimate = (standardError: number): SpeedEstimate => ({
  ...{ logSpeed: 0, trend: 0, standardError, degreesOfFreedom: 9, spread: 0, scatter: 1 },
});
const knee = (value: number): Knee => ({
  ...{ value, ratePerS: value, quantileMs: 100, meanBatch: 4, gpuBusy: 0.9, chance: 0 },
});

describe("the ends of an interval", () => {
  it("are the speed's where the knee moves in proportion", () => {
    const { below, above } = endsOf(estimate(0.01), 0.95, 0, inProportion);
    expect(below).toBeCloseTo(halfWidth(estimate(0.01), 0.95), 12);
    expect(above).toBe(below);
  });

  it("lie where the model puts the knee at the ends of the speed", () => {
    // Flat below, as where long executions use up what may be missed.
    const moves = movesOf((speed) => knee(1000 * Math.exp(speed < 0 ? 3 * speed : 1.5 * speed)));
    const half = halfWidth(estimate(0.02), 0.95);
    const { below, above } = endsOf(estimate(0.02), 0.95, 0, moves);
    expect(below).toBeCloseTo(3 * half, 9);
    expect(above).toBeCloseTo(1.5 * half, 9);
  });

  it("simulate no server that is more than twice as fast, however wide the interval", () => {
    const asked: number[] = [];
    const moves = movesOf((speed) => {
      asked.push(speed);
      return knee(1000 * Math.exp(2 * speed));
    });
    expect(moves(1)).toBeCloseTo(2 * Math.log(2) + 1 - Math.log(2), 9);
    expect(moves(12)).toBeCloseTo(Math.log(10), 9);
    expect(moves(-12)).toBeCloseTo(moves(12), 9);
    expect(Math.max(...asked.map(Math.abs))).toBeCloseTo(Math.log(2), 9);
  });

  it("never lie nearer than in proportion, and get wider with the level", () => {
    fc.assert(
      fc.property(
        fc.double({ min: 0.001, max: 0.2, noNaN: true }),
        fc.double({ min: -1, max: 4, noNaN: true }),
        fc.double({ min: 0, max: 0.02, noNaN: true }),
        (standardError, elasticity, chance) => {
          const moves = movesOf((speed) => knee(500 * Math.exp(elasticity * speed)));
          const [narrow, wide] = [0.95, 0.98].map((level) =>
            endsOf(estimate(standardError), level, chance, moves),
          );
          expect(narrow!.below).toBeGreaterThanOrEqual(halfWidth(estimate(standardError), 0.95) - 1e-12);
          expect(wide!.below).toBeGreaterThan(narrow!.below);
          expect(wide!.above).toBeGreaterThan(narrow!.above);
        },
      ),
    );
  });

  it("are far away, and finite, where the SLO would hold at no load", () => {
    const moves = movesOf((speed) => (speed < 0 ? null : knee(1000)));
    const { below } = endsOf(estimate(0.01), 0.95, 0, moves);
    expect(below).toBeCloseTo(Math.log(10), 12);
  });
});
