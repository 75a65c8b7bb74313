import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  describeLoad,
  peakRatePerS,
  profileProblems,
  rateAt,
  usersAt,
  type LoadProfile,
} from "../../loadgen/load-profile";
import { RateCurve, type RatedProfile } from "../../loadgen/rate-curve";
import { createPlan } from "../../loadgen/schedule";

const rate = fc.double({ min: 0.5, max: 2000, noNaN: true });
const seconds = fc.double({ min: 0.1, max: 60, noNaN: true });
const profile: fc.Arbitrary<Extract<RatedProfile, { arrivals: unknown }>> = fc.oneof(
  fc.record({
    kind: fc.constant("ramp" as const),
    fromPerS: fc.oneof(fc.constant(0), rate),
    toPerS: rate,
    overS: seconds,
    arrivals: fc.constant("constant" as const),
  }),
  fc.record({
    kind: fc.constant("steps" as const),
    steps: fc.array(fc.record({ ratePerS: rate, forS: seconds }), { minLength: 1, maxLength: 6 }),
    arrivals: fc.constant("constant" as const),
  }),
);

function timesOf(
  shape: LoadProfile,
  seed: number,
  workers: number,
  most: number,
  untilS = Infinity,
): number[] {
  return Array.from({ length: workers }, (_, index) => {
    const plan = createPlan(shape, seed, { index, count: workers });
    const times: number[] = [];
    while (plan.nextAtS < untilS && times.length < most) {
      times.push(plan.nextAtS);
      plan.take();
    }
    return times;
  })
    .flat()
    .sort((one, other) => one - other);
}

describe("a rate that changes", () => {
  it("arrival n comes when the area under the rate is n, for any number of workers", () => {
    fc.assert(
      fc.property(profile, fc.integer({ min: 1, max: 7 }), (shape, workers) => {
        const times = timesOf(shape, 1, workers, Math.ceil(200 / workers));
        const curve = new RateCurve(shape);
        times.slice(0, 150).forEach((time, n) => {
          expect(curve.arrivalsBy(time)).toBeCloseTo(n, 5);
          if (n > 0) expect(time).toBeGreaterThan(times[n - 1]!);
        });
      }),
      { numRuns: 60 },
    );
  });

  it("the area is that of the rate itself", () => {
    fc.assert(
      fc.property(profile, seconds, (shape, untilS) => {
        const cells = 2000;
        const cellS = untilS / cells;
        let area = 0;
        for (let i = 0; i < cells; i++) area += rateAt(shape, (i + 0.5) * cellS)! * cellS;
        // Only a cell with a jump or a bend in it is inexact, by less than its own area.
        const inexact = shape.kind === "steps" ? shape.steps.length : 1;
        expect(Math.abs(new RateCurve(shape).arrivalsBy(untilS) - area)).toBeLessThan(
          inexact * peakRatePerS(shape) * cellS,
        );
      }),
      { numRuns: 40 },
    );
  });

  it("by chance: counts of each part are Poisson around the rate, and the seed decides", () => {
    const shape = { kind: "ramp", fromPerS: 0, toPerS: 1000, overS: 20, arrivals: "poisson" } as const;
    const times = timesOf(shape, 5, 3, Infinity, 30);
    for (const [fromS, toS, expected] of [
      [0, 10, 2500],
      [10, 20, 7500],
      [20, 30, 10_000],
    ] as const) {
      const count = times.filter((time) => time >= fromS && time < toS).length;
      expect(Math.abs(count - expected)).toBeLessThan(5 * Math.sqrt(expected));
    }
    expect(timesOf(shape, 5, 3, 100)).toEqual(timesOf(shape, 5, 3, 100));
    expect(timesOf(shape, 6, 3, 100)).not.toEqual(timesOf(shape, 5, 3, 100));
  });

  it("the documents' steps: 100/s for 2 s, 200/s for 1 s, then on with 200/s", () => {
    const steps = [
      { ratePerS: 100, forS: 2 },
      { ratePerS: 200, forS: 1 },
    ];
    const times = timesOf({ kind: "steps", steps, arrivals: "constant" }, 1, 2, Infinity, 4);
    const within = (fromS: number, toS: number): number =>
      times.filter((time) => time >= fromS - 1e-9 && time < toS - 1e-9).length;
    expect([within(0, 1), within(1, 2), within(2, 3), within(3, 4)]).toEqual([100, 100, 200, 200]);
  });
});

it("recorded arrivals are sent as they are, once, shared out over the workers", () => {
  fc.assert(
    fc.property(
      fc.array(fc.double({ min: 0, max: 100, noNaN: true }), { minLength: 1, maxLength: 50 }),
      fc.integer({ min: 1, max: 5 }),
      (unsorted, workers) => {
        const atS = [...unsorted].sort((one, other) => one - other);
        expect(timesOf({ kind: "recorded", atS }, 1, workers, 100, 1000)).toEqual(atS);
      },
    ),
  );
  const ended = createPlan({ kind: "recorded", atS: [0] }, 1, { index: 0, count: 1 });
  ended.take();
  expect(ended.nextAtS).toBe(Infinity);
});

describe("what follows from a shape", () => {
  const users = { kind: "users", users: 3000, spawnPerS: 5, thinkMinS: 0.8, thinkMaxS: 1.2 } as const;
  it("peak rate, offered rate, users and words", () => {
    const steps = {
      kind: "steps",
      steps: [
        { ratePerS: 5, forS: 1 },
        { ratePerS: 3, forS: 9 },
      ],
      arrivals: "poisson",
    } as const;
    const ramp = { kind: "ramp", fromPerS: 10, toPerS: 30, overS: 10, arrivals: "poisson" } as const;
    expect(peakRatePerS(users)).toBe(3750);
    expect(peakRatePerS({ ...users, thinkMinS: 0, thinkMaxS: 0 })).toBe(0);
    expect(peakRatePerS(steps)).toBe(5);
    expect(peakRatePerS({ kind: "recorded", atS: [0, 0.2, 0.9, 1.1, 1.15, 5] })).toBe(4);
    expect([
      rateAt(ramp, 5),
      rateAt(ramp, 50),
      rateAt(steps, 0.5),
      rateAt(steps, 99),
      rateAt(users, 1),
    ]).toEqual([20, 30, 5, 3, undefined]);
    expect([usersAt(users, 0), usersAt(users, 10), usersAt(users, 1e6), usersAt(ramp, 1)]).toEqual([
      1,
      51,
      3000,
      undefined,
    ]);
    expect([users, { ...users, thinkMinS: 0, thinkMaxS: 0 }, ramp].map(describeLoad)).toEqual([
      "3000 users at 5/s, think 0.8 to 1.2 s",
      "3000 in flight",
      "poisson ramp 10/s to 30/s in 10 s",
    ]);
  });

  it.each<[LoadProfile, RegExp]>([
    [
      { kind: "ramp", fromPerS: -1, toPerS: 0, overS: 1, arrivals: "poisson" },
      /fromPerS.*toPerS must be above 0/,
    ],
    [
      { kind: "ramp", fromPerS: 1, toPerS: 2, overS: 0, arrivals: "even" as "poisson" },
      /arrivals.*"even".*overS/,
    ],
    [{ kind: "steps", steps: [], arrivals: "poisson" }, /at least one step/],
    [
      { kind: "steps", steps: [{ ratePerS: 1, forS: NaN }], arrivals: "poisson" },
      /steps\[0\]\.forS must be above 0 s, got NaN/,
    ],
    [{ kind: "recorded", atS: [] }, /at least one arrival/],
    [{ kind: "recorded", atS: [1, 0.5] }, /ascend from 0: 0.5 follows 1/],
    [{ kind: "nonsense" } as unknown as LoadProfile, /shape.kind "nonsense" is not known/],
  ])("%j is refused by name", (shape, message) => {
    expect(profileProblems(shape).join("; ")).toMatch(message);
  });
});
