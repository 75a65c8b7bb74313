import { describe, expect, it } from "vitest";
import { simulate } from "../../../serving-model/simulate";
import { growthOf, warmUpIntervals, type WatchedInterval } from "../../../tuning/statistics/stationarity";

const server = {
  maxBatchSize: 8,
  preferredBatchSizes: [8],
  queueDelayUs: 20_000,
  dynamicBatching: true,
  instanceCount: 4,
  // Passes 1302.9/s.
  law: { hostMsPerImage: 0.55, gpuMsPerBatch: 3.5, gpuMsPerImage: 0.33, ingressRequestsPerS: Infinity },
};

function watched(ratePerS: number, seed: number): WatchedInterval[] {
  const load = {
    shape: { kind: "poisson", ratePerS } as const,
    seed,
    warmupS: 2,
    measureS: 12,
    sloBoundMs: 100,
    intervalS: 1,
  };
  const { intervals } = simulate(server, load);
  return Array.from(intervals.planned, (planned, i) => ({
    planned,
    inFlight: intervals.inFlight[i]!,
    shed: 0,
  }));
}

const saturatedShare = (ratePerS: number): number => {
  let saturated = 0;
  for (let seed = 0; seed < 40; seed++)
    if (growthOf(watched(ratePerS, seed), 1, 100, true).saturated) saturated++;
  return saturated / 40;
};

describe("saturation", () => {
  it("is found above the capacity, and not below it", () => {
    expect(saturatedShare(1450)).toBe(1);
    expect(saturatedShare(1200)).toBe(0);
    expect(saturatedShare(1270)).toBeLessThanOrEqual(0.05);
  });

  it("needs growth that chance does not explain", () => {
    const flat = Array.from({ length: 12 }, () => ({ planned: 1000, inFlight: 300, shed: 0 }));
    expect(growthOf(flat, 1, 100, true)).toMatchObject({ perS: 0, z: 0, saturated: false });
    const growing = flat.map((interval, i) => ({ ...interval, inFlight: 300 + 60 * i }));
    expect(growthOf(growing, 1, 100, true)).toMatchObject({
      perS: expect.closeTo(60, 6) as number,
      saturated: true,
    });
    // The same growth of a queue that nobody waits long in is not saturation yet.
    expect(growthOf(growing, 1, 2000, true).saturated).toBe(false);
  });

  it("includes a load generator that sheds to the end", () => {
    const shedding = Array.from({ length: 6 }, () => ({ planned: 1000, inFlight: 500, shed: 100 }));
    expect(growthOf(shedding, 1, 100, true).saturated).toBe(true);
  });

  it("says nothing about a single interval", () => {
    expect(growthOf([{ planned: 10, inFlight: 5, shed: 0 }], 1, 100, true)).toMatchObject({
      z: 0,
      saturated: false,
    });
  });
});

describe("warm-up", () => {
  it("ends where the queue has filled", () => {
    expect(warmUpIntervals([10, 20, 30, 41, 39, 40, 42, 40, 39, 41, 40, 40])).toBe(3);
  });

  it("is nothing in a steady window, and never cuts what was slower than the rest", () => {
    expect(warmUpIntervals([40, 41, 39, 40, 42, 40, 39, 41])).toBe(0);
    expect(warmUpIntervals([90, 80, 60, 41, 39, 40, 42, 40, 39, 41])).toBe(0);
  });

  it("takes intervals without answers as no information", () => {
    expect(warmUpIntervals([NaN, 10, 20, 40, 41, 39, 40, 40])).toBe(3);
    expect(warmUpIntervals([NaN, NaN])).toBe(0);
  });
});
