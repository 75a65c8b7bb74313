import { describe, expect, it } from "vitest";
import { catalogue } from "../../../model-repo/catalogue";
import type { ServiceLaw } from "../../../serving-model/service-law";
import { withKnownBatches } from "../../../tuning/diagnosis/known-batches";

const law: ServiceLaw = {
  hostMsPerImage: 0.2,
  gpuMsPerBatch: 3,
  gpuMsPerImage: 1,
  ingressRequestsPerS: Infinity,
};
const variant = { ...catalogue[0]!, maxBatchSize: 1, preferredBatchSizes: [] };
const system = { server: { ...variant, dynamicBatching: true, law }, overheadMs: 1 };
const facts = { wireCeilingPerS: null, clientCeilingPerS: null };
const unknown = (): null => null;

describe("executions of one size only", () => {
  it("are divided into batch and image as a law from elsewhere is, and take as long as measured", () => {
    const known = { ...law, gpuMsPerBatch: 0.5, gpuMsPerImage: 0.25 };
    const at8 = withKnownBatches(system, { ...variant, maxBatchSize: 8 }, 8, facts, () => known);
    const { gpuMsPerBatch, gpuMsPerImage } = at8.system.server.law;
    expect(gpuMsPerBatch + 8 * gpuMsPerImage).toBeCloseTo(11, 12);
    expect(gpuMsPerBatch / gpuMsPerImage).toBeCloseTo(2, 12);
    expect(at8.batchesKnown).toBe(true);
    // The host phase is measured by itself.
    expect(at8.system.server.law.hostMsPerImage).toBe(law.hostMsPerImage);
  });

  it("say nothing about other batches without one, except on a GPU that is given single images", () => {
    expect(withKnownBatches(system, variant, 1, facts, unknown)).toEqual({ system, batchesKnown: true });
    expect(withKnownBatches(system, variant, 1, { ...facts, processor: "cpu" }, unknown).batchesKnown).toBe(
      false,
    );
    const larger = { ...variant, maxBatchSize: 8 };
    expect(withKnownBatches(system, larger, 8, facts, unknown)).toEqual({ system, batchesKnown: false });
  });
});
