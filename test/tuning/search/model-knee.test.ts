import { describe, expect, it } from "vitest";
import { catalogue } from "../../../model-repo/catalogue";
import { kneeOf } from "../../../tuning/search/model-knee";

/** A slow server whose 99th percentile has to hold: its late requests are few and come in bursts. */
const server = {
  ...catalogue[0]!,
  maxBatchSize: 4,
  instanceCount: 4,
  queueDelayUs: 20_000,
  preferredBatchSizes: [4],
  dynamicBatching: true,
  law: { hostMsPerImage: 0.044, gpuMsPerBatch: 1.2, gpuMsPerImage: 5.32, ingressRequestsPerS: Infinity },
};
const slo = { quantile: 0.99, boundMs: 60 };
const system = { server, overheadMs: 2.4 };
const effort = (requests: number) => ({ seeds: 4, requests, leastS: 20, mostS: 2000 });

describe("the chance error of a simulated knee", () => {
  const few = kneeOf(system, "poisson", slo, effort(8000))!;
  const many = kneeOf(system, "poisson", slo, effort(160_000), few.value)!;

  it("is some per cent with few requests, and less with many", () => {
    expect(few.chance).toBeGreaterThan(many.chance);
    expect(few.chance).toBeGreaterThan(0.003);
    expect(many.chance).toBeLessThan(0.02);
  });

  it("is about how far the knee is off", () => {
    expect(Math.abs(few.value / many.value - 1)).toBeLessThan(5 * Math.hypot(few.chance, many.chance));
  });

  it("is not read off seeds that run at different speeds on purpose", () => {
    expect(kneeOf(system, "poisson", slo, effort(8000), few.value, 0.02)!.chance).toBe(0);
  });
});
