import fc from "fast-check";
import { expect, it } from "vitest";
import { Histogram, type SparseHistogram } from "../../loadgen/histogram";
import { SlidingWindow } from "../../loadgen/sliding-window";

function report(count: number, us: number): SparseHistogram {
  const histogram = new Histogram();
  for (let i = 0; i < count; i++) histogram.record(us);
  return histogram.toSparse();
}

it("a window of 3 s has figures from the first report on (locust#2321)", () => {
  const window = new SlidingWindow(3, 0);
  expect(window.read(0.5)).toMatchObject({ answeredPerS: 0 });
  expect(window.read(0.5).response.percentileUs(0.95)).toBeNaN();
  window.add(report(100, 10_000), 1);
  expect(window.read(1).answeredPerS).toBe(100);
  window.add(report(200, 20_000), 2);
  expect(window.read(2).answeredPerS).toBe(150);
});

it("shows the last seconds, not the whole run (k6#2379): good for 60 s, bad for 10 s", () => {
  const window = new SlidingWindow(5, 0);
  for (let second = 1; second <= 70; second++)
    window.add(report(100, second <= 60 ? 10_000 : 900_000), second);
  const { response, answeredPerS } = window.read(70);
  expect(response.count).toBe(500);
  expect(answeredPerS).toBe(100);
  expect(response.percentileUs(0.05)).toBeGreaterThan(890_000);
});

it("merges the reports of many workers within a second", () => {
  const window = new SlidingWindow(1, 0);
  for (let worker = 0; worker < 20; worker++) window.add(report(5, 1000 * (worker + 1)), 0.9 + worker / 1000);
  expect(window.read(1).response.percentileUs(0.95)).toBe(Math.floor(19_000 / 16) * 16);
});

it("is what merging all reports of the last seconds gives, but for a hundredth of its length", () => {
  const step = fc.record({
    afterS: fc.double({ min: 0, max: 3, noNaN: true }),
    values: fc.array(fc.integer({ min: 0, max: 5_000_000 }), { maxLength: 8 }),
    lost: fc.integer({ min: 0, max: 3 }),
    reads: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), fc.constantFrom(1, 5, 60), (steps, lengthS) => {
      const window = new SlidingWindow(lengthS, 0);
      const reports: { atS: number; values: readonly number[]; lost: number }[] = [];
      let atS = 0;
      for (const { afterS, values, lost, reads } of steps) {
        atS += afterS;
        const histogram = new Histogram();
        for (const value of values) histogram.record(value);
        window.add(histogram.toSparse(), atS, lost);
        reports.push({ atS, values, lost });
        if (!reads) continue;
        const { response, lost: lostNow } = window.read(atS);
        const within = (fromS: number): [number, number] => {
          const kept = reports.filter((report) => report.atS > fromS);
          const answered = kept.flatMap((report) => report.values).length;
          return [answered, kept.reduce((sum, report) => sum + report.lost, 0)];
        };
        const least = within(atS - lengthS);
        const most = within(atS - lengthS - Math.min(1, lengthS / 100) - 1e-9);
        expect(response.count).toBeGreaterThanOrEqual(least[0]);
        expect(response.count).toBeLessThanOrEqual(most[0]);
        expect(lostNow).toBeGreaterThanOrEqual(least[1]);
        expect(lostNow).toBeLessThanOrEqual(most[1]);
        if (least[0] !== most[0] || least[0] === 0) continue;
        const whole = new Histogram();
        for (const report of reports)
          if (report.atS > atS - lengthS) for (const value of report.values) whole.record(value);
        for (const p of [0.01, 0.5, 0.95, 1]) expect(response.percentileUs(p)).toBe(whole.percentileUs(p));
      }
    }),
  );
});

it("a look costs what has come since the last one, not the whole window: 1,000 workers, 60 s", () => {
  const one = report(20, 30_000);
  let mergedBuckets = 0;
  const counted = new Proxy(one, {
    get: (target, name: keyof SparseHistogram) => {
      if (name === "counts") mergedBuckets++;
      return target[name];
    },
  });
  const window = new SlidingWindow(60, 0);
  for (let second = 1; second <= 70; second++) {
    for (let worker = 0; worker < 1000; worker++) window.add(counted, second);
    const beforeLook = mergedBuckets;
    expect(window.read(second + 0.5).response.count).toBe(20_000 * Math.min(60, second));
    // Reports are not looked at again.
    expect(mergedBuckets).toBe(beforeLook);
  }
});
