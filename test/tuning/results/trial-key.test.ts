import { describe, expect, it } from "vitest";
import { trialKey, type MeasuredSystem } from "../../../tuning/results/trial-key";
import type { TrialSpec } from "../../../tuning/trial";
import { slo, variant } from "../fixtures/outcomes";

const spec: TrialSpec = {
  variant: variant("tftrt_fp16", "fp16", 64, 1, { rps: 1072.5, kind: "limit", gpuBusy: 0.45 }),
  shape: { kind: "poisson", ratePerS: 1000.25 },
  slo,
  seed: 7,
  warmupS: 2,
  measureS: 10,
  purpose: "locate",
};
const system: MeasuredSystem = {
  serverIdentity: "local-triton 0.1.0, simulated T4",
  replicas: 1,
  modelHash: null,
  imagesHash: "aa",
  loadGenerator: { transport: "lean", workers: 2 },
};
const key = trialKey(spec, system);

describe("trialKey", () => {
  it("is a SHA-256 and the same every time", () => {
    expect(key).toMatch(/^[0-9a-f]{64}$/);
    expect(trialKey(structuredClone(spec), structuredClone(system))).toBe(key);
  });

  const otherVariant = { ...spec.variant, queueDelayUs: 10_000 };
  const otherArtefact = { ...spec.variant, artefact: { ...spec.variant.artefact, name: "other" } };
  it.each<[string, Partial<TrialSpec>, Partial<MeasuredSystem>]>([
    ["variant's settings", { variant: otherVariant }, {}],
    ["artefact", { variant: otherArtefact }, {}],
    ["rate", { shape: { kind: "poisson", ratePerS: 1000.26 } }, {}],
    ["kind of load", { shape: { kind: "constant", ratePerS: 1000.25 } }, {}],
    ["seed", { seed: 8 }, {}],
    ["warm-up", { warmupS: 3 }, {}],
    ["window", { measureS: 11 }, {}],
    ["SLO bound", { slo: { ...slo, boundMs: 50 } }, {}],
    ["server", {}, { serverIdentity: "another" }],
    ["replicas", {}, { replicas: 2 }],
    ["model files", {}, { modelHash: "bb" }],
    ["images", {}, { imagesHash: "bb" }],
    ["load generator", {}, { loadGenerator: { transport: "grpc-js", workers: 2 } }],
  ])("changes with the %s", (_what, specChange, systemChange) => {
    expect(trialKey({ ...spec, ...specChange }, { ...system, ...systemChange })).not.toBe(key);
  });

  it.each<[string, Partial<TrialSpec>]>([
    ["SLO's quantile", { slo: { ...slo, quantile: 0.99 } }],
    ["purpose", { purpose: "confirm" }],
    ["published figure", { variant: { ...spec.variant, published: null } }],
  ])("does not change with the %s, which does not act on the measurement", (_what, change) => {
    expect(trialKey({ ...spec, ...change }, system)).toBe(key);
  });
});
