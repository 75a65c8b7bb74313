import { describe, expect, it } from "vitest";
import { budgetFor } from "../../../tuning/search/budget";
import { searchSloRate } from "../../../tuning/search/strategy";
import type { TrialResult, TrialSpec } from "../../../tuning/trial";
import { makeTrialResult, makeVariant } from "../make";

/**
 * Servers that the service model does not describe. The figures of the probes were recorded on a real Triton with a ResNet-50 on an
 * NVIDIA H200 (Python backend, two instances, UINT8 images): there the fitted model promised 14,668 requests/s although every trial
 * above 9,300 had missed the SLO by a factor of ten.
 */
const recordedProbes: Readonly<
  Record<number, { rate: number; p95Ms: number; server: Partial<TrialResult["server"]> }>
> = {
  16: {
    rate: 2395,
    p95Ms: 7.1,
    server: {
      meanBatch: 15.84,
      queueMs: 1.86,
      computeInputMs: 0.44,
      computeInferMs: 3.55,
      computeOutputMs: 0.69,
      gpuBusy: 0.03,
    },
  },
  64: {
    rate: 4748,
    p95Ms: 18.1,
    server: {
      meanBatch: 26.42,
      queueMs: 1.34,
      computeInputMs: 1.49,
      computeInferMs: 8.87,
      computeOutputMs: 1.87,
      gpuBusy: 0.02,
    },
  },
  288: {
    rate: 7180,
    p95Ms: 55.4,
    server: {
      meanBatch: 63.7,
      queueMs: 23.74,
      computeInputMs: 2.12,
      computeInferMs: 11.78,
      computeOutputMs: 2.56,
      gpuBusy: 0,
    },
  },
};

const variant = makeVariant("fp16_in8_count2", {
  instanceCount: 2,
  maxBatchSize: 64,
  queueDelayUs: 2000,
  preferredBatchSizes: [],
});

/** A result in which every response took about `p95Ms`. */
function answer(
  spec: TrialSpec,
  ratePerS: number,
  p95Ms: number,
  server: Partial<TrialResult["server"]>,
): TrialResult {
  const count = Math.max(1, Math.round(ratePerS * spec.measureS));
  const late = p95Ms > spec.slo.boundMs ? count : 0;
  const intervalCount = Math.max(1, Math.ceil(spec.measureS));
  const intervals = Array.from({ length: intervalCount }, (_, index) => {
    const planned = Math.round(count / intervalCount);
    const missed = late > 0 ? planned : 0;
    const counts = { planned, ok: planned - missed, late: missed, failed: 0, shed: 0 };
    return {
      index,
      ...counts,
      responseSumMs: planned * p95Ms,
      answered: planned,
      inFlight: Math.ceil((ratePerS * p95Ms) / 1000),
    };
  });
  const summary = { count, meanMs: p95Ms, p50Ms: p95Ms, p90Ms: p95Ms, p95Ms, p99Ms: p95Ms, maxMs: p95Ms };
  return makeTrialResult(
    {
      intervals,
      total: { planned: count, ok: count - late, late, failed: 0, shed: 0 },
      response: summary,
      service: summary,
      responseHistogram: [[Math.round(p95Ms * 1000), count]],
      measuredToUnixMs: spec.measureS * 1000,
    },
    { batchSizes: null, ...server },
  );
}

/** Answers probes as recorded; at a fixed rate it holds the SLO easily below its knee and not at all above. */
function search(kneePerS: number): ReturnType<typeof run> {
  return run((spec) => {
    if (spec.shape.kind === "users") {
      const recorded = recordedProbes[spec.shape.users] ?? recordedProbes[288]!;
      return answer(spec, recorded.rate, recorded.p95Ms, recorded.server);
    }
    const { ratePerS } = spec.shape;
    const overloaded = ratePerS > kneePerS;
    return answer(spec, ratePerS, overloaded ? 1300 : 14, recordedProbes[64]!.server);
  });
}

function run(serve: (spec: TrialSpec) => TrialResult) {
  const strategy = searchSloRate({
    variant,
    slo: { quantile: 0.95, boundMs: 100 },
    mode: "poisson",
    seed: 1,
    budget: budgetFor("quick", 1),
    facts: { wireCeilingPerS: null, clientCeilingPerS: 20_000 },
  });
  let step = strategy.next(null);
  let trials = 0;
  while (!step.done) {
    trials++;
    step = strategy.next(serve(step.value));
  }
  return { outcome: step.value, trials };
}

describe("a server that the service model does not describe", () => {
  it.each([9000, 900, 60])(
    "never gets a rate that its trials missed (knee at %d/s)",
    (kneePerS) => {
      const { outcome, trials } = search(kneePerS);
      expect(outcome.operatingRate).not.toBeNull();
      expect(outcome.operatingRate!).toBeLessThanOrEqual(kneePerS);
      expect(outcome.sloRate!.estimate).toBeLessThanOrEqual(kneePerS * 1.04);
      // ... and it is found, not only avoided.
      expect(outcome.sloRate!.estimate).toBeGreaterThan(kneePerS * 0.85);
      expect(trials).toBeLessThan(25);
    },
    60_000,
  );

  it("says that no rate held when none did, with the lowest one that was tried", () => {
    const { outcome } = search(0.01);
    expect(outcome.sloRate).toBeNull();
    expect(outcome.operatingRate).toBeNull();
    expect(outcome.note).toMatch(/held the SLO at no rate that was tried/);
  });
});
