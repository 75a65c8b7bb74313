import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { JudgedTrial } from "../../../tuning/outcome";
import { type ComparedTrial, seenKnee } from "../../../tuning/search/seen-knee";

const compared = (
  value: number,
  excess: number,
  surprise: number,
  verdict: JudgedTrial["verdict"] = excess > 0.2 ? "fail" : excess < -0.2 ? "pass" : "undecided",
): ComparedTrial => ({ trial: { value, excess, judged: { verdict } as JudgedTrial }, surprise });

/** Recorded on an H200 at p95 <= 20 ms: 34, 35 and 27 ms, where the model has its knee at 9,033/s and a cliff behind it. */
const recorded = [compared(9645, 0.529, -0.65), compared(9552, 0.56, -0.23), compared(8913, 0.301, 0.4)];

describe("a knee above a load that was clearly missed", () => {
  it("is where the trials' own excesses come down to the bound", () => {
    const seen = seenKnee(recorded, 9033)!;
    // 0.24 of y over 0.07 of ln load: 0.3 more are 9 % less load.
    expect(seen.estimate).toBeGreaterThan(7900);
    expect(seen.estimate).toBeLessThan(8300);
    expect(seen.low).toBeLessThan(0.95 * seen.estimate);
    expect(seen.high).toBe(8913);
  });

  it("is left to the model where the miss is about what the model has at that load", () => {
    const expected = recorded.map((one) => ({ ...one, surprise: 0.1 }));
    expect(seenKnee(expected, 9033)).toBeNull();
  });

  it("is left to the model where a higher load was held", () => {
    expect(seenKnee([...recorded, compared(9300, -0.05, 0)], 9033)).toBeNull();
  });

  it("needs two loads near the bound", () => {
    expect(seenKnee([compared(9000, 0.3, 0.5)], 9100)).toBeNull();
    expect(seenKnee([compared(9000, 0.3, 0.5), compared(9600, 2.9, 0)], 9100)).toBeNull();
  });

  it("never lies above the lowest load that was missed, and never outside its own interval", () => {
    const trial = fc.record({
      value: fc.double({ min: 500, max: 1500, noNaN: true }),
      excess: fc.double({ min: -1, max: 3, noNaN: true }),
      surprise: fc.double({ min: -1, max: 1, noNaN: true }),
    });
    fc.assert(
      fc.property(fc.array(trial, { minLength: 1, maxLength: 9 }), (trials) => {
        const all = trials.map(({ value, excess, surprise }) => compared(value, excess, surprise));
        const seen = seenKnee(all, 1000);
        if (seen === null) return;
        expect(seen.high).toBeLessThan(1000);
        expect(seen.low).toBeLessThanOrEqual(seen.estimate);
        expect(seen.estimate).toBeLessThanOrEqual(seen.high);
        for (const { trial: seenTrial } of all)
          if (seenTrial.value >= seen.high) expect(seenTrial.excess).toBeGreaterThan(0);
      }),
    );
  });
});
