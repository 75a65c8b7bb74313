import fc from "fast-check";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { replayRecorded } from "../../../tuning/results/replay-recorded";
import { readManifest } from "../../../tuning/results/manifest";
import { readPointLog } from "../../../tuning/results/point-log";
import { endingWithin, type TrialBracket } from "../../../tuning/search/bracket";

const bracketOf = (clearlyHeld: number, missed: number): TrialBracket => ({
  held: clearlyHeld,
  clearlyHeld,
  missed,
  highest: missed,
  lowest: clearlyHeld,
});

describe("an interval's ends", () => {
  const load = fc.double({ min: 1, max: 1e4, noNaN: true });

  it("are no further out than what trials showed and chance allows, and the estimate stays between them", () => {
    fc.assert(
      fc.property(load, load, load, load, load, (estimate, a, b, held, missed) => {
        const interval = { estimate, low: estimate - a, high: estimate + b, level: 0.95 };
        const ended = endingWithin(interval, bracketOf(held, held + missed), 0.04, 1);
        expect(ended.estimate).toBe(estimate);
        expect(ended.low).toBeLessThanOrEqual(estimate);
        expect(ended.high).toBeGreaterThanOrEqual(estimate);
        expect(ended.low).toBeGreaterThanOrEqual(interval.low);
        expect(ended.high).toBeLessThanOrEqual(interval.high);
        expect(ended.low).toBeGreaterThanOrEqual(Math.min(estimate, 0.96 * held));
        expect(ended.high).toBeLessThanOrEqual(Math.max(estimate, 1.04 * (held + missed)));
      }),
    );
  });

  it("are the model's where no trial says more", () => {
    const interval = { estimate: 100, low: 90, high: 120, level: 0.95 };
    expect(endingWithin(interval, bracketOf(0, Infinity), 0.04, 1)).toEqual(interval);
    expect(endingWithin(interval, bracketOf(80, 130), 0.04, 1)).toEqual(interval);
  });

  it("are in requests/s, whatever the load is counted in", () => {
    const interval = { estimate: 100, low: 50, high: 200, level: 0.95 };
    // 100 users send 90 requests/s.
    expect(endingWithin(interval, bracketOf(100, 150), 0, 0.9)).toMatchObject({ low: 90, high: 135 });
  });

  it("do not forget a recorded load that clearly held: 13 of 20 ms at 9,424 requests/s", () => {
    const folder = join(__dirname, "../../../docs/evidence/h200/explored/gpu1/explore20");
    const name = "fp16_in8_max32_count6_delay5ms";
    const manifest = readManifest(folder)!;
    const variants = manifest.variants.filter(({ variant }) => variant.name === name);
    const { records } = readPointLog(join(folder, "points.jsonl"));
    const outcome = replayRecorded({ ...manifest, variants }, records)[0]!.outcome!;
    const sloRate = outcome.sloRate!;
    const operatingRate = outcome.operatingRate!;
    // As it was measured: 5,211 to 11,228, run at 4,777.
    expect(sloRate.low).toBeGreaterThan(9000);
    expect(sloRate.high).toBeLessThan(11_600);
    expect(operatingRate).toBeGreaterThan(9000);
    expect(operatingRate).toBeLessThanOrEqual(sloRate.low);
  });
});
