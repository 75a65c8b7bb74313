import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { simulate, type SimulatedServer } from "../../serving-model/simulate";
import type { SimulationResult } from "../../serving-model/window-stats";
import { truthOf } from "../../serving-model/truth";

/** A batch of any size takes 300 ms. */
function server(change: Partial<SimulatedServer> = {}): SimulatedServer {
  return {
    scheduler: "payload",
    maxBatchSize: 8,
    preferredBatchSizes: [],
    queueDelayUs: 100_000,
    instanceCount: 1,
    dynamicBatching: true,
    law: { hostMsPerImage: 0, gpuMsPerBatch: 300, gpuMsPerImage: 0, ingressRequestsPerS: Infinity },
    ...change,
  };
}

function play(config: SimulatedServer, timesMs: readonly number[]): SimulationResult {
  const timesUs = Float64Array.from(timesMs, (ms) => ms * 1000);
  const measureS = (timesMs.at(-1) ?? 0) / 1000 + 60;
  return simulate(config, {
    shape: { kind: "listed", timesUs },
    seed: 1,
    warmupS: 0,
    measureS,
    sloBoundMs: 100,
  });
}

function batches(config: SimulatedServer, timesMs: readonly number[]): Record<number, number> {
  const { batchSizes } = play(config, timesMs);
  return Object.fromEntries([...batchSizes.entries()].filter(([, count]) => count > 0));
}

const atOnce = (count: number, fromMs = 0): number[] =>
  Array.from({ length: count }, (_unused, i) => fromMs + i / 100);
const every = (count: number, gapMs: number): number[] =>
  Array.from({ length: count }, (_unused, i) => i * gapMs);

describe("batches that a running Triton was recorded to form", () => {
  it("on an idle instance: after the delay, or when full", () => {
    expect(batches(server(), atOnce(5))).toEqual({ 5: 1 });
    expect(batches(server(), atOnce(8))).toEqual({ 8: 1 });
    expect(batches(server(), atOnce(12))).toEqual({ 4: 1, 8: 1 });
    expect(batches(server({ preferredBatchSizes: [4] }), atOnce(4))).toEqual({ 4: 1 });
  });

  it("without delay: what is queued", () => {
    const greedy = server({ queueDelayUs: 0 });
    expect(batches(greedy, [0, ...atOnce(20, 100)])).toEqual({ 1: 1, 4: 1, 8: 2 });
  });

  it("on a busy instance: everything that came while it was busy is in at most one full and one other batch", () => {
    const busy = atOnce(8);
    expect(batches(server(), [...busy, ...atOnce(5, 100)])).toEqual({ 5: 1, 8: 1 });
    expect(batches(server(), [...busy, ...atOnce(8, 100)])).toEqual({ 8: 2 });
    expect(batches(server(), [...busy, ...atOnce(12, 100)])).toEqual({ 4: 1, 8: 2 });
  });

  it("closes a batch when its first request's delay is over, though the instance stays busy (trickle of 12 requests)", () => {
    for (const preferredBatchSizes of [[], [64]])
      expect(batches(server({ maxBatchSize: 64, preferredBatchSizes }), every(12, 30))).toEqual({ 4: 3 });
    // The simple rule would take all that came meanwhile.
    expect(batches(server({ maxBatchSize: 64, scheduler: "idle" }), every(12, 30))).toEqual({ 4: 1, 8: 1 });
  });

  it("fills four instances before it makes a rest wait", () => {
    const four = server({
      maxBatchSize: 16,
      preferredBatchSizes: [16],
      queueDelayUs: 20_000,
      instanceCount: 4,
    });
    expect(batches(four, atOnce(40))).toEqual({ 8: 1, 16: 2 });
  });
});

describe("near the limit", () => {
  const photo = server({
    maxBatchSize: 16,
    queueDelayUs: 20_000,
    law: { hostMsPerImage: 1, gpuMsPerBatch: 40, gpuMsPerImage: 6, ingressRequestsPerS: Infinity },
  });

  it("has small and full batches where the simple rule has middling ones, and so a lower SLO rate", () => {
    const load = {
      shape: { kind: "poisson", ratePerS: 90 },
      seed: 1,
      warmupS: 5,
      measureS: 300,
      sloBoundMs: 300,
    } as const;
    const shareOf = (result: SimulationResult, from: number, to: number): number =>
      result.batchSizes.slice(from, to + 1).reduce((sum, count) => sum + count, 0) / result.executions;
    const [payload, idle] = [simulate(photo, load), simulate({ ...photo, scheduler: "idle" }, load)];
    expect(payload.meanBatch).toBeCloseTo(idle.meanBatch, 0);
    expect(shareOf(payload, 16, 16)).toBeGreaterThan(1.5 * shareOf(idle, 16, 16));
    expect(shareOf(payload, 1, 4)).toBeGreaterThan(1.5 * shareOf(idle, 1, 4));
    const slo = { quantile: 0.95, boundMs: 300 };
    const options = { seeds: [1, 2], measureS: 60, tolerance: 0.01 };
    const ratio = truthOf(photo, slo, options)! / truthOf({ ...photo, scheduler: "idle" }, slo, options)!;
    expect(ratio).toBeGreaterThan(0.8);
    expect(ratio).toBeLessThan(0.9);
  });
});

describe("any load", () => {
  it("answers every request once, in batches that fit; every batch's first request waits no longer than delay and queue explain", () => {
    const arrivals = fc.array(fc.double({ min: 0, max: 2000, noNaN: true }), { maxLength: 120 });
    const config = fc.record({
      maxBatchSize: fc.integer({ min: 1, max: 9 }),
      queueDelayUs: fc.constantFrom(0, 5000, 100_000),
      instanceCount: fc.integer({ min: 1, max: 3 }),
      preferred: fc.integer({ min: 0, max: 9 }),
      gpuMsPerBatch: fc.constantFrom(0, 3, 40),
    });
    fc.assert(
      fc.property(
        config,
        arrivals,
        ({ maxBatchSize, queueDelayUs, instanceCount, preferred, gpuMsPerBatch }, times) => {
          const preferredBatchSizes = preferred >= 1 && preferred <= maxBatchSize ? [preferred] : [];
          const law = {
            hostMsPerImage: 0.5,
            gpuMsPerBatch,
            gpuMsPerImage: 0.2,
            ingressRequestsPerS: Infinity,
          };
          const sorted = [...times].sort((a, b) => a - b);
          const result = play(
            server({ maxBatchSize, queueDelayUs, instanceCount, preferredBatchSizes, law }),
            sorted,
          );
          const images = [...result.batchSizes.entries()].reduce(
            (sum, [size, count]) => sum + size * count,
            0,
          );
          expect(images).toBe(sorted.length);
          expect(result.planned).toBe(sorted.length);
          expect(result.batchSizes).toHaveLength(maxBatchSize + 1);
          // All work one after the other, and for every batch the longest wait of the batcher thread.
          const longestMs = sorted.length * (gpuMsPerBatch + 0.7 + 500) + queueDelayUs / 1000;
          expect(result.maxResponseMs).toBeLessThanOrEqual(longestMs + 1);
        },
      ),
      { numRuns: 300 },
    );
  });

  it("holds a closed loop's number of users", () => {
    const users = { kind: "users", users: 12, spawnPerS: 1e6, thinkMinS: 0, thinkMaxS: 0 } as const;
    const config = server({
      law: { hostMsPerImage: 0, gpuMsPerBatch: 50, gpuMsPerImage: 1, ingressRequestsPerS: Infinity },
    });
    const result = simulate(config, { shape: users, seed: 1, warmupS: 2, measureS: 20, sloBoundMs: 1000 });
    expect(result.throughputPerS * (result.meanResponseMs / 1000)).toBeCloseTo(12, 0);
  });

  it("serves one request an execution without dynamic batching", () => {
    expect(batches(server({ dynamicBatching: false }), atOnce(6))).toEqual({ 1: 6 });
  });
});
