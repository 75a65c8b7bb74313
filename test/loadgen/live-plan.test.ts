import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { LivePlan } from "../../loadgen/live-plan";

const alone = { index: 0, count: 1 };
const users = (count: number, spawnPerS = 1e6) =>
  ({ kind: "users", users: count, spawnPerS, thinkMinS: 1, thinkMaxS: 1 }) as const;

/** Plays users against a server that answers at once; distinct users that send within each whole second. */
function play(plan: LivePlan, changes: ReadonlyMap<number, () => void>, untilS: number): number[] {
  const seen = Array.from({ length: untilS }, () => new Set<number>());
  const due = [...changes].sort(([one], [other]) => one - other);
  for (;;) {
    const change = due[0];
    if (change !== undefined && change[0] <= plan.nextAtS) {
      due.shift();
      change[1]();
      continue;
    }
    const atS = plan.nextAtS;
    if (atS >= untilS) return seen.map((set) => set.size);
    const user = plan.take();
    seen[Math.floor(atS)]!.add(user);
    plan.ended(user, atS);
  }
}

describe("a load that is changed while it runs", () => {
  it("the number of users follows: up, down and up again, each user once a second", () => {
    const plan = new LivePlan(users(100), 1, alone);
    const to = (count: number, atS: number): [number, () => void] => [
      atS,
      () => plan.change(users(count), atS),
    ];
    const active = play(plan, new Map([to(300, 4), to(50, 8), to(80, 12)]), 16);
    expect(active.slice(1, 4)).toEqual([100, 100, 100]);
    expect(active.slice(5, 8)).toEqual([300, 300, 300]);
    expect(active.slice(9, 12)).toEqual([50, 50, 50]);
    expect(active.slice(13)).toEqual([80, 80, 80]);
  });

  it("new users come at the spawn rate", () => {
    const plan = new LivePlan(users(10), 1, alone);
    const active = play(plan, new Map([[2, () => plan.change(users(60, 10), 2)]]), 12);
    for (const [second, expected] of [
      [4, 30],
      [6, 50],
    ] as const)
      expect(Math.abs(active[second]! - expected)).toBeLessThanOrEqual(12);
    expect(active.at(-1)).toBe(60);
  });

  it("a user who waits for an answer while the number shrinks and grows is there once, not twice", () => {
    const plan = new LivePlan(users(2), 1, alone);
    const one = plan.take();
    const other = plan.take();
    plan.change(users(1), 1);
    plan.change(users(2), 1.5);
    plan.ended(one, 2);
    plan.ended(other, 2);
    expect([plan.take(), plan.take()].sort()).toEqual([0, 1]);
    expect(plan.nextAtS).toBe(Infinity);
  });

  it("another rate starts at the moment of the change; answers of the old users are nobody's", () => {
    fc.assert(
      fc.property(fc.double({ min: 0.5, max: 50, noNaN: true }), (changeS) => {
        const plan = new LivePlan(users(3), 1, alone);
        const user = plan.take();
        plan.change({ kind: "constant", ratePerS: 10 }, changeS);
        expect(plan.nextAtS).toBe(changeS);
        plan.ended(user, changeS + 1);
        plan.take();
        expect(plan.nextAtS).toBeCloseTo(changeS + 0.1, 9);
        plan.change(users(1), changeS + 5);
        expect(plan.nextAtS).toBeGreaterThanOrEqual(changeS + 5);
      }),
    );
  });

  it("workers together have all users, each once", () => {
    const plans = [0, 1, 2].map((index) => new LivePlan(users(10), 7, { index, count: 3 }));
    for (const plan of plans) plan.change(users(25), 3);
    const all: number[] = [];
    for (const plan of plans) while (plan.nextAtS < Infinity) all.push(plan.take());
    expect(all.sort((one, other) => one - other)).toEqual(Array.from({ length: 25 }, (_, user) => user));
  });
});
