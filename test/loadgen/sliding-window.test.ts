import { expect, it } from "vitest";
import { Histogram, type SparseHistogram } from "../../loadgen/histogram";
import { SlidingWindow } from "../../loadgen/sliding-window";

function report(count: number, us: number): SparseHistogram {
  const histogram = new Histogram();
  for (let i = 0; i < count; i++) histogram.record(us);
  return histogram.toSparse();
}

it("a window of 3 s has figures from the first report on (locust#2321)", () => {
  const window = new SlidingWindow(3000, 0);
  expect(window.read(500)).toMatchObject({ answeredPerS: 0 });
  expect(window.read(500).response.percentileUs(0.95)).toBeNaN();
  window.add(report(100, 10_000), 1000);
  expect(window.read(1000).answeredPerS).toBe(100);
  window.add(report(200, 20_000), 2000);
  expect(window.read(2000).answeredPerS).toBe(150);
});

it("shows the last seconds, not the whole run (k6#2379): good for 60 s, bad for 10 s", () => {
  const window = new SlidingWindow(5000, 0);
  for (let second = 1; second <= 70; second++)
    window.add(report(100, second <= 60 ? 10_000 : 900_000), second * 1000);
  const { response, answeredPerS } = window.read(70_000);
  expect(response.count).toBe(500);
  expect(answeredPerS).toBe(100);
  expect(response.percentileUs(0.05)).toBeGreaterThan(890_000);
});

it("merges the reports of many workers within a second", () => {
  const window = new SlidingWindow(1000, 0);
  for (let worker = 0; worker < 20; worker++) window.add(report(5, 1000 * (worker + 1)), 900 + worker);
  expect(window.read(1000).response.percentileUs(0.95)).toBe(Math.floor(19_000 / 16) * 16);
});
