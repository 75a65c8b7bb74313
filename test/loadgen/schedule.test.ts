import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { LoadShape } from "../../loadgen/load-spec";
import { createPlan, type Plan } from "../../loadgen/schedule";

/** Times of one worker's plan up to `untilS`, in an open loop. */
function times(plan: Plan, untilS: number): number[] {
  const found: number[] = [];
  while (plan.nextAtS < untilS) {
    found.push(plan.nextAtS);
    plan.take();
  }
  return found;
}

function allWorkers(shape: LoadShape, seed: number, count: number, untilS: number): number[] {
  return Array.from({ length: count }, (_, index) => times(createPlan(shape, seed, { index, count }), untilS))
    .flat()
    .sort((one, other) => one - other);
}

describe("constant", () => {
  it("sends arrival i at i / rate, shared out by i mod count", () => {
    const shape = { kind: "constant", ratePerS: 4 } as const;
    expect(times(createPlan(shape, 1, { index: 0, count: 1 }), 1)).toEqual([0, 0.25, 0.5, 0.75]);
    expect(times(createPlan(shape, 1, { index: 1, count: 3 }), 1.6)).toEqual([0.25, 1]);
  });

  it("offers the whole rate exactly, for any number of workers", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 3000 }), fc.integer({ min: 1, max: 9 }), (ratePerS, count) => {
        const sent = allWorkers({ kind: "constant", ratePerS }, 1, count, 2);
        expect(sent).toEqual(Array.from({ length: 2 * ratePerS }, (_, i) => i / ratePerS));
      }),
    );
  });

  it("does not drift: arrival 3,600,000 at 1000/s is at one hour sharp", () => {
    const plan = createPlan({ kind: "constant", ratePerS: 1000 }, 1, { index: 0, count: 1 });
    for (let i = 0; i < 3_600_000; i++) plan.take();
    expect(plan.nextAtS).toBe(3600);
  });
});

describe("poisson", () => {
  it("has the rate, exponential gaps and independent counts, summed over workers", () => {
    const ratePerS = 400;
    const sent = allWorkers({ kind: "poisson", ratePerS }, 11, 4, 250);
    const n = ratePerS * 250;
    expect(Math.abs(sent.length - n)).toBeLessThan(4 * Math.sqrt(n));
    const gaps = sent.slice(1).map((time, i) => time - sent[i]!);
    for (const quantile of [0.1, 0.5, 0.9, 0.99]) {
      const expected = -Math.log(1 - quantile) / ratePerS;
      const share = gaps.filter((gap) => gap <= expected).length / gaps.length;
      expect(Math.abs(share - quantile)).toBeLessThan(
        4 * Math.sqrt((quantile * (1 - quantile)) / gaps.length),
      );
    }
    // index of dispersion of counts over 0.1 s cells is 1 for a Poisson process
    const cells = new Array<number>(2500).fill(0);
    for (const time of sent) cells[Math.floor(time * 10)]!++;
    const mean = sent.length / cells.length;
    const dispersion = cells.reduce((sum, count) => sum + (count - mean) ** 2, 0) / cells.length / mean;
    expect(Math.abs(dispersion - 1)).toBeLessThan(4 * Math.sqrt(2 / cells.length));
  });

  it("is the same for the same seed and another one for another seed or worker", () => {
    const shape = { kind: "poisson", ratePerS: 50 } as const;
    const once = times(createPlan(shape, 5, { index: 0, count: 2 }), 10);
    expect(times(createPlan(shape, 5, { index: 0, count: 2 }), 10)).toEqual(once);
    expect(times(createPlan(shape, 6, { index: 0, count: 2 }), 10)).not.toEqual(once);
    expect(times(createPlan(shape, 5, { index: 1, count: 2 }), 10)).not.toEqual(once);
  });
});

describe("users", () => {
  const shape = { kind: "users", users: 200, spawnPerS: 1e6, thinkMinS: 0.8, thinkMaxS: 1.2 } as const;

  /** Runs the plan against a server that answers after `answerS`; returns (user, planned time) pairs. */
  function play(
    plan: Plan,
    untilS: number,
    answerS: (user: number, atS: number) => number,
  ): [number, number][] {
    const sent: [number, number][] = [];
    const pending: { user: number; atS: number }[] = [];
    for (;;) {
      pending.sort((one, other) => one.atS - other.atS);
      const answer = pending[0];
      if (answer !== undefined && answer.atS <= plan.nextAtS) {
        pending.shift();
        plan.ended(answer.user, answer.atS);
        continue;
      }
      const atS = plan.nextAtS;
      if (atS >= untilS) return sent;
      const user = plan.take();
      sent.push([user, atS]);
      pending.push({ user, atS: atS + answerS(user, atS) });
    }
  }

  it("thinks 0.8 to 1.2 s after the answer, not after the send", () => {
    const answerS = (user: number): number => 0.05 + (user % 7) / 10;
    const sent = play(createPlan(shape, 1, { index: 0, count: 1 }), 20, answerS);
    const byUser = new Map<number, number[]>();
    for (const [user, atS] of sent) byUser.set(user, [...(byUser.get(user) ?? []), atS]);
    expect(byUser.size).toBe(200);
    const thinks: number[] = [];
    for (const [user, atS] of byUser)
      for (let i = 1; i < atS.length; i++) thinks.push(atS[i]! - atS[i - 1]! - answerS(user));
    expect(Math.min(...thinks)).toBeGreaterThanOrEqual(0.8 - 1e-9);
    expect(Math.max(...thinks)).toBeLessThanOrEqual(1.2 + 1e-9);
    expect(thinks.reduce((sum, think) => sum + think, 0) / thinks.length).toBeCloseTo(1, 1);
  });

  it("think times do not depend on the server's speed", () => {
    const thinks = (answerS: number): number[] => {
      const plan = createPlan({ ...shape, users: 1 }, 9, { index: 0, count: 1 });
      let before = NaN;
      return play(plan, 30, () => answerS)
        .map(([, atS]) => {
          const think = atS - before - answerS;
          before = atS;
          return Math.round(think * 1e9) / 1e9;
        })
        .slice(1, 15);
    };
    expect(thinks(0.001)).toEqual(thinks(0.7));
  });

  it("starts in equilibrium: users spawned at once do not march in step", () => {
    const sent = play(createPlan({ ...shape, users: 5000 }, 3, { index: 0, count: 1 }), 4, () => 0);
    const cells = new Array<number>(40).fill(0);
    for (const [, atS] of sent) cells[Math.floor(atS * 10)]!++;
    for (const count of cells) expect(Math.abs(count - 500)).toBeLessThan(5 * Math.sqrt(500));
  });

  it("shares the users out and spawns them at the given rate", () => {
    const slow = { ...shape, users: 11, spawnPerS: 5, thinkMinS: 0, thinkMaxS: 0 };
    const first = (index: number): [number, number][] => {
      const plan = createPlan(slow, 1, { index, count: 3 });
      const found: [number, number][] = [];
      while (plan.nextAtS < Infinity) {
        const atS = plan.nextAtS;
        found.push([plan.take(), atS]);
      }
      return found;
    };
    expect([first(0), first(1), first(2)].flat().sort(([one], [other]) => one - other)).toEqual(
      Array.from({ length: 11 }, (_, user) => [user, user / 5]),
    );
    expect(first(2).map(([user]) => user)).toEqual([2, 5, 8]);
  });

  it.each([1, 2])("with a limit take turns, however fast the server, over %s workers", (count) => {
    const limited = { ...shape, users: 40, thinkMinS: 0, thinkMaxS: 0, maxRatePerS: 50 };
    const sent = (answerS: number): number =>
      Array.from(
        { length: count },
        (_, index) => play(createPlan(limited, 1, { index, count }), 10, () => answerS).length,
      ).reduce((sum, one) => sum + one, 0);
    expect(sent(0.001)).toBeGreaterThanOrEqual(495);
    expect(sent(0.001)).toBeLessThanOrEqual(500 + count);
    // 40 users who wait two seconds each cannot reach the limit.
    expect(sent(2)).toBeLessThanOrEqual(200);
    expect(sent(2)).toBeGreaterThanOrEqual(160);
  });

  it("a worker without users never sends", () => {
    expect(createPlan({ ...shape, users: 1 }, 1, { index: 1, count: 2 }).nextAtS).toBe(Infinity);
  });
});

it("refuses what cannot be planned, by name", () => {
  const share = { index: 0, count: 1 };
  expect(() => createPlan({ kind: "poisson", ratePerS: 0 }, 1, share)).toThrow(
    /ratePerS must be a number above 0, got 0/,
  );
  expect(() => createPlan({ kind: "constant", ratePerS: NaN }, 1, share)).toThrow(/got NaN/);
  expect(() => createPlan({ kind: "constant", ratePerS: 1 }, 1, { index: 2, count: 2 })).toThrow(
    /worker 2 of 2/,
  );
  const users = { kind: "users", users: 5, spawnPerS: 1, thinkMinS: 1, thinkMaxS: 0.5 } as const;
  expect(() => createPlan(users, 1, share)).toThrow(/think time must be 0 <= min <= max, got 1..0.5 s/);
  expect(() => createPlan({ ...users, users: 0 }, 1, share)).toThrow(/users must be an integer >= 1/);
});
