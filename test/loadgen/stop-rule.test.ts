import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Histogram } from "../../loadgen/histogram";
import { defaultMinSamples, describeStop, StopRuleWatch, type StopRule } from "../../loadgen/stop-rule";

const rule: StopRule = { quantile: 0.95, boundMs: 100, windowS: 10, minSamples: 200 };

function report(counts: Readonly<Record<number, number>>, lost = 0): Parameters<StopRuleWatch["add"]>[0] {
  const histogram = new Histogram();
  for (const [ms, count] of Object.entries(counts))
    for (let i = 0; i < count; i++) histogram.record(Number(ms) * 1000);
  return { response: histogram.toSparse(), lost };
}

describe("the sliding-window stop rule", () => {
  it("good for 60 s, bad for 10 s: found within the window, while the whole run looks fine (k6#2379)", () => {
    const watch = new StopRuleWatch(rule);
    const found: number[] = [];
    for (let s = 1; s <= 70; s++) {
      watch.add(s <= 60 ? report({ 20: 100 }) : report({ 20: 50, 300: 50 }), s);
      if (watch.check(s) !== undefined) found.push(s);
    }
    // 5 % of the window's 1,000 requests are late after one such second; the quantile moves when more are.
    expect(found[0]).toBe(62);
    expect(found.at(-1)).toBe(70);
  });

  it("names the last good and the first bad window", () => {
    const watch = new StopRuleWatch({ ...rule, windowS: 2, minSamples: 10 });
    watch.add(report({ 50: 100 }), 1);
    expect(watch.check(1)).toBeUndefined();
    watch.add(report({ 150: 120 }), 2);
    const finding = watch.check(2)!;
    expect(finding.lastGood).toMatchObject({ atS: 1, ratePerS: 100 });
    expect(finding.lastGood!.quantileMs).toBeCloseTo(50, 0);
    expect(finding.firstBad).toMatchObject({ atS: 2, ratePerS: 110 });
    expect(describeStop(finding)).toMatch(
      /^p95 of the last 2 s was 149\.\d ms at 110\.0 requests\/s \(bound 100 ms\); the last window that held had 100\.0 requests\/s at (50\.0|49\.9) ms$/,
    );
  });

  it("too few samples say nothing, however slow they are", () => {
    const watch = new StopRuleWatch(rule);
    for (let s = 1; s <= 30; s++) {
      watch.add(report({ 900: 19 }), s);
      expect(watch.check(s)).toBeUndefined();
    }
  });

  it("failed and shed requests lie beyond every bound", () => {
    const watch = new StopRuleWatch(rule);
    watch.add(report({ 10: 950 }, 50), 1);
    expect(watch.check(1)).toBeUndefined();
    watch.add(report({ 10: 0 }, 10), 2);
    expect(watch.check(2)!.firstBad.quantileMs).toBeNull();
    const dead = new StopRuleWatch(rule);
    dead.add(report({}, 500), 1);
    expect(describeStop(dead.check(1)!)).toMatch(/beyond all times.*no window before it held/);
  });

  it("judges as counting does", () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.integer({ min: 0, max: 300 }), fc.integer({ min: 0, max: 40 })), {
          minLength: 1,
          maxLength: 40,
        }),
        fc.integer({ min: 0, max: 30 }),
        fc.constantFrom(0.5, 0.9, 0.95, 0.99),
        (values, lost, quantile) => {
          const watch = new StopRuleWatch({ ...rule, quantile, minSamples: 1 });
          const times = values.flatMap(([ms, count]) => Array.from({ length: count }, () => ms));
          if (times.length + lost === 0) return;
          const counts: Record<number, number> = {};
          for (const ms of times) counts[ms] = (counts[ms] ?? 0) + 1;
          watch.add(report(counts, lost), 1);
          const sorted = [...times, ...Array.from({ length: lost }, () => Infinity)].sort((a, b) => a - b);
          const rank = Math.max(1, Math.ceil(quantile * sorted.length - 1e-6));
          expect(watch.check(1) !== undefined).toBe(sorted[rank - 1]! > 100);
        },
      ),
    );
  });

  it("wants ten requests beyond the quantile by default", () => {
    expect([0.5, 0.95, 0.99, 0.999].map(defaultMinSamples)).toEqual([20, 200, 1000, 10_000]);
  });
});
