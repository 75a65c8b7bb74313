/** Makers of plain values for tests of tuning/: every field has a harmless default, a test names only what it is about. */
import type { LoadResult } from "../../loadgen/load-spec";
import type { Variant } from "../../model-repo/variant";
import type { VariantOutcome } from "../../tuning/outcome";
import type { ServerWindow, TrialResult, TrialSpec } from "../../tuning/trial";

export function makeVariant(name: string, overrides: Partial<Variant> = {}): Variant {
  return {
    name,
    artefact: {
      name: "artefact",
      platform: "tensorflow_savedmodel",
      precision: "fp32",
      builtMaxBatchSize: 64,
      input: { name: "input", type: "FP32", dims: [224, 224, 3], format: "FORMAT_NHWC" },
      output: { name: "probabilities", type: "FP32", dims: [1000], format: null },
      labelsFile: null,
    },
    maxBatchSize: 64,
    instanceCount: 1,
    queueDelayUs: 20_000,
    preferredBatchSizes: [64],
    published: null,
    ...overrides,
  };
}

export function makeTrialSpec(overrides: Partial<TrialSpec> = {}): TrialSpec {
  return {
    variant: makeVariant("a"),
    shape: { kind: "poisson", ratePerS: 100 },
    slo: { quantile: 0.95, boundMs: 100 },
    seed: 1,
    warmupS: 1,
    measureS: 5,
    purpose: "locate",
    ...overrides,
  };
}

export function makeTrialResult(
  load: Partial<LoadResult> = {},
  server: Partial<ServerWindow> = {},
): TrialResult {
  const total = { planned: 500, ok: 490, late: 10, failed: 0, shed: 0 };
  const summary = { count: 500, meanMs: 40, p50Ms: 38, p90Ms: 60, p95Ms: 70, p99Ms: 95, maxMs: 130 };
  return {
    load: {
      id: "t",
      valid: true,
      invalidReasons: load.valid === false ? ["lateness p99 was 9 ms"] : [],
      intervalS: 1,
      intervals: [0, 1, 2, 3, 4].map((index) => ({
        index,
        planned: 100,
        ok: 98,
        late: 2,
        failed: 0,
        shed: 0,
        responseSumMs: 4000,
        answered: 100,
        inFlight: 4,
      })),
      total,
      response: summary,
      service: summary,
      responseHistogram: [],
      health: { latenessP99Ms: 0.5, loopDelayP99Ms: 1, cpuShare: 0.3, wireMBPerS: 60, achievedShare: 1 },
      errors: {},
      perAddress: {},
      workers: 1,
      measuredFromUnixMs: 0,
      measuredToUnixMs: 5000,
      ...load,
    },
    server: {
      meanBatch: 8,
      queueMs: 10,
      computeInputMs: 1,
      computeInferMs: 20,
      computeOutputMs: 0.1,
      gpuBusy: 0.8,
      gpuMemoryUsedBytes: null,
      gpuPowerW: null,
      batchSizes: null,
      ...server,
    },
  };
}

export function makeOutcome(variantName: string): VariantOutcome {
  return {
    variantName,
    sloRate: null,
    operatingRate: null,
    predictedSloRate: null,
    p95Ms: null,
    meanBatch: null,
    gpuBusy: null,
    fittedLaw: null,
    diagnosis: { cause: "none", summary: "", evidence: {}, nextMove: null },
    trials: [],
    note: null,
  };
}
