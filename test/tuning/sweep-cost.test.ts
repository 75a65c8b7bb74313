import { expect, it } from "vitest";
import { CostMeter, costUsd, earlierS, estimateS } from "../../tuning/sweep-cost";

it("expects a quick sweep of all variants to take some six minutes, a thorough one some 45", () => {
  expect(estimateS("quick", 7) / 60).toBeCloseTo(6.4, 1);
  expect(estimateS("thorough", 7) / 60).toBeCloseTo(45.8, 1);
});

it("counts wall time from its start, and stops at the limit", () => {
  let nowMs = 5_000;
  const meter = new CostMeter({ usdPerHour: 1.2, maxUsd: 0.5, asOf: "2026-11" }, () => nowMs);
  expect(meter.usd).toBe(0);
  nowMs += 15 * 60_000;
  expect(meter.usd).toBeCloseTo(0.3, 12);
  expect(meter.reasonToStop()).toBeNull();
  nowMs += 10 * 60_000;
  expect(meter.reasonToStop()).toBe("the sweep has cost 0.50 US dollars, the limit of --max-cost is 0.5");
  expect(meter.total()).toEqual({ usd: costUsd(1.2, 1500), usdPerHour: 1.2, maxUsd: 0.5, asOf: "2026-11" });
});

it("counts what the interrupted runs of a sweep took, but not the time between them", () => {
  const at = (minute: number) => new Date(Date.UTC(2026, 10, 1, 12, minute)).toISOString();
  expect(earlierS([], [])).toBe(0);
  expect(earlierS([at(0)], [])).toBe(0);
  expect(earlierS([at(0)], [at(2), at(5)])).toBe(300);
  // Interrupted after minute 5, resumed at minute 30 and again at minute 50 without a trial.
  expect(earlierS([at(0), at(30), at(50)], [at(2), at(5), at(33)])).toBe(480);
  const meter = new CostMeter({ usdPerHour: 6, maxUsd: 1, asOf: "2026-11" }, () => 0);
  meter.addEarlier(480);
  expect(meter.usd).toBeCloseTo(0.8, 12);
  expect(meter.reasonToStop()).toBeNull();
  meter.addEarlier(120);
  expect(meter.reasonToStop()).toMatch(/has cost 1.00 US dollars/);
});
