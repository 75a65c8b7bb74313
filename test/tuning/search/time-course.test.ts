import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { findVariant } from "../../../model-repo/catalogue";
import type { PhaseVariation } from "../../../serving-model/node-model";
import { Random } from "../../../serving-model/random";
import { truthOf } from "../../../serving-model/truth";
import { budgetFor } from "../../../tuning/search/budget";
import { combineFits, halfWidth, type PlacedFit } from "../../../tuning/search/estimate";
import { SimulatedRunner } from "../../../tuning/search/simulated-runner";
import { fitSpeed } from "../../../tuning/search/speed-fit";
import { compareCourses, wobbleOf } from "../../../tuning/search/time-course";
import { makeTrialSpec } from "../make";
import { search, serverOf, slo } from "./virtual-search";

const variant = findVariant("tftrt_int8");
/** A speed that wanders by this standard deviation and forgets within five seconds. */
const wandering =
  (wander: number) =>
  (seed: number): PhaseVariation => {
    const random = new Random(seed * 17 + 5);
    let level = random.nextNormal();
    let atUs = 0;
    return (nominalUs, _phase, startUs) => {
      const keep = Math.exp(-Math.max(0, startUs - atUs) / 5e6);
      level = level * keep + Math.sqrt(1 - keep ** 2) * random.nextNormal();
      atUs = Math.max(atUs, startUs);
      return nominalUs * Math.exp(wander * level);
    };
  };
const system = { server: serverOf(variant), overheadMs: 0 };
const truth = truthOf(system.server, slo, { seeds: [1, 2], measureS: 30 })!;

function wobbleSeen(wander: number): number {
  const runner = new SimulatedRunner({
    serverFor: (served) => ({
      ...serverOf(served),
      ...(wander === 0 ? {} : { variationFor: wandering(wander) }),
    }),
  });
  const courses = [1, 2, 3, 4].map((seed) => {
    const spec = makeTrialSpec({
      ...{ variant, seed, slo, warmupS: 2, measureS: 20 },
      shape: { kind: "poisson", ratePerS: truth * 0.97 },
    });
    return fitSpeed(system, spec, runner.runNow(spec), 0)!.course;
  });
  expect(courses.every((course) => course !== null)).toBe(true);
  return wobbleOf(courses);
}

describe("the seconds of a trial", () => {
  it("are the model's own where the server is as steady as its model", () => {
    expect(wobbleSeen(0)).toBeLessThan(0.002);
  });

  it("show how much the speed of a server wanders, in four trials", () => {
    for (const wander of [0.015, 0.04]) {
      const seen = wobbleSeen(wander);
      expect(seen).toBeGreaterThan(wander / 3);
      expect(seen).toBeLessThan(wander * 2);
    }
  });

  it("are left out where nothing was answered or modelled", () => {
    const second = (responseSumMs: number, answered: number) => ({ responseSumMs, answered }) as never;
    const load = { intervals: [second(0, 0), second(220, 10), second(100, 10)] } as never;
    const course = compareCourses(
      load,
      { fitted: [20, 20, NaN], slower: [21, 21, 21], faster: [19, 19, 19] },
      0.01,
    )!;
    expect(course.residuals).toBeCloseTo(Math.log(1.1) ** 2, 12);
    expect(course.sensitivity).toBeCloseTo((Math.log(21 / 19) / 0.02) ** 2, 9);
    expect(compareCourses(load, { fitted: [], slower: [], faster: [] }, 0.01)).toBeNull();
  });
});

describe("the wobble of several trials", () => {
  const sums = fc.record({
    residuals: fc.double({ min: 0, max: 10, noNaN: true }),
    sensitivity: fc.double({ min: 0.1, max: 1e4, noNaN: true }),
  });

  it("lies between that of the calmest and the wildest", () => {
    fc.assert(
      fc.property(fc.array(sums, { minLength: 1, maxLength: 8 }), (courses) => {
        const single = courses.map((course) => wobbleOf([course]));
        const all = wobbleOf([...courses, null]);
        expect(all).toBeGreaterThanOrEqual(Math.min(...single) * (1 - 1e-9));
        expect(all).toBeLessThanOrEqual(Math.max(...single) * (1 + 1e-9));
      }),
    );
  });

  it("is hardly touched by one trial in which the server became another one", () => {
    const of = (wobble: number, sensitivity: number) => ({
      residuals: wobble ** 2 * sensitivity,
      sensitivity,
    });
    const calm = [of(0.004, 100), of(0.005, 100), of(0.006, 100)];
    expect(wobbleOf([...calm, of(0.8, 5000)])).toBeLessThan(0.02);
    expect(wobbleOf([of(0.8, 5000)])).toBeLessThanOrEqual(0.1);
    // Trials that differ as those of one server do are all taken as they are.
    expect(wobbleOf([of(0.01, 1), of(0.02, 1), of(0.03, 1)])).toBeCloseTo(Math.sqrt(14 / 3) / 100, 9);
  });

  it("is 0 where no trial can tell", () => {
    expect(wobbleOf([])).toBe(0);
    expect(wobbleOf([null, null])).toBe(0);
  });
});

describe("four trials that agree by chance", () => {
  const fits = (wobble: number): PlacedFit[] =>
    [0.001, -0.001, 0, 0].map((logSpeed) => ({
      logValue: Math.log(1000),
      fit: {
        ...{ logSpeed, slope: 20, excess: 0, modelExcess: 0 },
        course: { residuals: 20 * (wobble * 30) ** 2, sensitivity: 20 * 30 ** 2 },
      },
    }));
  const estimate = (wobble: number) => combineFits(fits(wobble), (logSpeed) => Math.log(1000) + logSpeed);

  it("say as much as they seem to where their seconds are steady", () => {
    expect(halfWidth(estimate(0.0005), 0.95)).toBeLessThan(0.006);
    expect(estimate(0.0005).spread).toBe(0);
  });

  it("say less where their seconds are not", () => {
    expect(halfWidth(estimate(0.02), 0.95)).toBeGreaterThan(2.5 * halfWidth(estimate(0.0005), 0.95));
    expect(estimate(0.02).spread).toBeGreaterThan(0.01);
  });
});

describe("a search", () => {
  it("goes on for longer on a server that wanders, and is less sure of it", () => {
    const budget = budgetFor("thorough", 2);
    const calm = search(variant, { budget });
    const wild = search(
      variant,
      { budget },
      { serverFor: (served) => ({ ...serverOf(served), variationFor: wandering(0.03) }) },
    );
    expect(wild.specs.length).toBeGreaterThan(calm.specs.length);
    const width = ({ low, high }: { low: number; high: number }) => high / low - 1;
    expect(width(wild.outcome.sloRate!)).toBeGreaterThan(2 * width(calm.outcome.sloRate!));
  });
});
