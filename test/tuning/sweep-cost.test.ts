import { expect, it } from "vitest";
import { CostMeter, costUsd, estimateS } from "../../tuning/sweep-cost";

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
