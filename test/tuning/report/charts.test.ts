import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { rateLatencyChart } from "../../../tuning/report/charts";
import { linearScale, powerOfTwoScale, roundStep, roundUp } from "../../../tuning/report/scale";
import { seriesOf } from "../../../tuning/report/series";
import { medianCurve } from "../../../tuning/results/curve";
import { buildResult } from "../../../tuning/results/build-result";
import type { ResultTrial } from "../../../tuning/results/result-schema";
import { context, outcomes } from "../fixtures/outcomes";

const result = buildResult(outcomes, context);
const magnitude = fc.double({ min: 1e-3, max: 1e6, noNaN: true });

describe("scales", () => {
  it("rounds steps and ends to numbers people like", () => {
    expect([0.7, 1, 1.1, 2.2, 3, 23, 240].map(roundStep)).toEqual([1, 1, 2, 2.5, 5, 25, 250]);
    fc.assert(
      fc.property(magnitude, (value) => {
        expect(roundStep(value)).toBeGreaterThanOrEqual(value * (1 - 1e-9));
        expect(roundStep(value)).toBeLessThanOrEqual(value * 2.5 * (1 + 1e-9));
        expect(roundUp(value)).toBeGreaterThanOrEqual(value * (1 - 1e-9));
        expect(roundUp(value)).toBeLessThanOrEqual(value * 1.25);
      }),
    );
  });

  it("maps 0 and the maximum to the ends, and keeps ticks within", () => {
    fc.assert(
      fc.property(magnitude, fc.integer({ min: 2, max: 12 }), (max, count) => {
        const scale = linearScale(max, 300, 20, count, String);
        expect(scale.at(0)).toBe(300);
        expect(scale.at(max)).toBeCloseTo(20, 6);
        expect(scale.ticks.length).toBeGreaterThanOrEqual(2);
        expect(scale.ticks.length).toBeLessThanOrEqual(count + 1);
        for (const tick of scale.ticks) expect(tick.value).toBeLessThanOrEqual(max * (1 + 1e-9));
      }),
    );
  });

  it("has a power of two at every tick", () => {
    const scale = powerOfTwoScale(42.6, 100, 0);
    expect(scale.ticks.map((tick) => tick.value)).toEqual([1, 2, 4, 8, 16, 32, 64]);
    expect(scale.at(64)).toBe(0);
    expect(scale.at(8)).toBe(50);
    expect(scale.at(0)).toBe(100);
  });
});

describe("series", () => {
  it("puts the recommended variant first and gives every variant its own key", () => {
    const series = seriesOf(result);
    expect(series[0]?.variant.name).toBe(result.recommendation.variant);
    expect(series.map(({ key }) => key).join("")).toBe("ABCDEFG");
  });

  it("tells variants of one precision apart by marker", () => {
    const looks = seriesOf(result).map(({ colourClass, marker, dash }) => `${colourClass} ${marker} ${dash}`);
    expect(new Set(looks).size).toBe(looks.length);
  });

  it("keeps closed-loop probes off the curve by rate, but not the users' own trials", () => {
    const [variant] = result.variants;
    const purposes = seriesOf(result).flatMap((series) => series.trials.map((trial) => trial.purpose));
    expect(variant?.trials.some((trial) => trial.purpose === "probe")).toBe(true);
    expect(purposes).not.toContain("probe");
    const users: ResultTrial[] = (variant?.trials ?? []).map((trial) => ({
      ...trial,
      users: 100,
      purpose: "locate",
    }));
    const closed = seriesOf({ ...result, variants: variant ? [{ ...variant, trials: users }] : [] });
    expect(closed[0]?.trials).toHaveLength(users.length);
  });

  it("takes the median of the trials at one rate", () => {
    const trial = result.variants[0]?.trials[5];
    if (!trial) throw new Error("no fixture");
    const at = (ratePerS: number, quantileMs: number | null): ResultTrial => ({
      ...trial,
      ratePerS,
      quantileMs,
    });
    const curve = medianCurve(
      [at(1000, 90), at(500, 20), at(1001, 70), at(1002, 80), at(750, 25), at(750, 35), at(900, null)],
      (each) => each.quantileMs,
    );
    expect(curve).toEqual([
      { ratePerS: 500, value: 20 },
      { ratePerS: 750, value: 30 },
      { ratePerS: 1001, value: 80 },
    ]);
  });
});

describe("rateLatencyChart", () => {
  const pathLengths = (given: typeof result) =>
    [...rateLatencyChart(given, seriesOf(given), "wide").text.matchAll(/ d="(M[^"]*)"/g)].map(
      ([, path = ""]) => path.split("L").length,
    );

  it("draws the fitted model's curve, and without one the medians of the trials", () => {
    const without = {
      ...result,
      variants: result.variants.map((variant) => ({ ...variant, modelCurve: null })),
    };
    const series = seriesOf(result);
    expect(pathLengths(result)).toEqual(series.map(({ variant }) => variant.modelCurve?.length));
    expect(pathLengths(without)).toEqual(
      series.map(({ trials }) => medianCurve(trials, (trial) => trial.quantileMs).length),
    );
  });

  const svg = rateLatencyChart(result, seriesOf(result), "wide").text;

  it("keeps all marks within the frame", () => {
    const xs = [...svg.matchAll(/<circle class="mark [a-z]+" cx="([-\d.]+)" cy="([-\d.]+)"/g)];
    expect(xs.length).toBeGreaterThan(20);
    for (const [, x, y] of xs) {
      expect(Number(x)).toBeGreaterThanOrEqual(46);
      expect(Number(x)).toBeLessThanOrEqual(1080);
      expect(Number(y)).toBeGreaterThanOrEqual(36);
      expect(Number(y)).toBeLessThanOrEqual(430 - 46);
    }
  });

  it("does not let badges overlap", () => {
    const badges = [...svg.matchAll(/<circle cx="([-\d.]+)" cy="([-\d.]+)" r="9"/g)].map(
      ([, x, y]) => [Number(x), Number(y)] as const,
    );
    expect(badges).toHaveLength(7);
    for (const [i, [ax, ay]] of badges.entries())
      for (const [bx, by] of badges.slice(i + 1)) expect(Math.hypot(ax - bx, ay - by)).toBeGreaterThan(18);
  });

  it("has a title and a description that carry the figures", () => {
    expect(svg).toMatch(/<title id="[^"]+">\s*p95 response time by request rate\s*<\/title>/);
    expect(svg).toContain("A: tftrt_int8_bs16_count4, 2,274");
  });
});
