import { describe, expect, it } from "vitest";
import { catalogue, findVariant } from "../../../model-repo/catalogue";
import type { Variant } from "../../../model-repo/variant";
import type { ServiceLaw } from "../../../serving-model/service-law";
import { serviceLawFor } from "../../../serving-model/t4";
import { truthOf } from "../../../serving-model/truth";
import { diagnose, type DiagnosisInput } from "../../../tuning/diagnosis/diagnose";
import { movesOf } from "../../../tuning/diagnosis/moves";
import { predictionOf, reliefs } from "../../../tuning/diagnosis/relief";

const slo = { quantile: 0.95, boundMs: 100 };

function inputOf(
  variant: Variant,
  law: ServiceLaw = serviceLawFor(variant),
  partial: Partial<DiagnosisInput> = {},
): DiagnosisInput {
  const server = { ...variant, dynamicBatching: true, law };
  const kneeValue = truthOf(server, partial.slo ?? slo, { seeds: [1, 2], measureS: 30, tolerance: 0.005 })!;
  return {
    variant,
    slo,
    mode: "poisson",
    system: { server, overheadMs: 0 },
    fitted: {
      law,
      overheadMs: 0,
      identified: { phases: true, batchSplit: true, ingress: true },
      residual: 0,
      notes: [],
    },
    sloRate: kneeValue,
    kneeValue,
    nearest: null,
    facts: { wireCeilingPerS: null, clientCeilingPerS: null },
    lawOf: () => null,
    ...partial,
  };
}

describe("cause", () => {
  it.each([
    ["original", "gpu-bound", "The GPU is the limit: 10 % less GPU time"],
    ["tftrt_fp16", "host-bound", "The host phase is the limit: 10 % less host time"],
    ["tftrt_int8", "host-bound", "The host phase"],
    ["tftrt_fp16_bs8_count4", "gpu-bound", "The GPU"],
    ["tftrt_int8_bs16_count4", "wire-bound", "The link into the node is the limit"],
  ])("%s is %s", (name, cause, start) => {
    const diagnosis = diagnose(inputOf(findVariant(name)));
    expect(diagnosis.cause).toBe(cause);
    expect(diagnosis.summary.startsWith(start)).toBe(true);
  });

  it("is the queue delay where it eats the bound", () => {
    // 40 of 50 ms go by before a batch starts; what is left is little for what came in meanwhile.
    const variant = { ...catalogue[0]!, queueDelayUs: 40_000 };
    const law = { hostMsPerImage: 0, gpuMsPerBatch: 0, gpuMsPerImage: 1, ingressRequestsPerS: Infinity };
    const diagnosis = diagnose(inputOf(variant, law, { slo: { quantile: 0.95, boundMs: 50 } }));
    expect(diagnosis.cause).toBe("queue-delay");
    expect(diagnosis.nextMove!.change).toMatch(/^queue delay (0|10) ms instead of 40 ms/);
    expect(diagnosis.nextMove!.predictedGain).toBeGreaterThan(1);
  });

  it("is the load generator where its own ceiling is the one that was found", () => {
    const variant = findVariant("tftrt_int8_bs16_count4");
    const facts = { wireCeilingPerS: null, clientCeilingPerS: 2310 };
    const diagnosis = diagnose(inputOf(variant, serviceLawFor(variant), { facts }));
    expect(diagnosis.cause).toBe("client-bound");
    expect(diagnosis.summary).toMatch(/^What the load generator can offer is the limit/);
  });

  it("is not made up when the phases could not be told apart", () => {
    const input = inputOf(catalogue[0]!);
    const fitted = { ...input.fitted, identified: { ...input.fitted.identified, phases: false } };
    const diagnosis = diagnose({ ...input, fitted });
    expect(diagnosis.cause).toBe("none");
    expect(diagnosis.summary).toMatch(/cannot be told/);
  });

  it("shows its evidence", () => {
    const server = {
      meanBatch: 36.4,
      queueMs: 20,
      computeInputMs: 20,
      computeInferMs: 15,
      computeOutputMs: 0,
      gpuBusy: 0.43,
      gpuMemoryUsedBytes: null,
      gpuPowerW: null,
      batchSizes: null,
    };
    const variant = findVariant("tftrt_fp16");
    const { evidence } = diagnose(
      inputOf(variant, serviceLawFor(variant), { nearest: { server, meanResponseMs: 50 } }),
    );
    expect(evidence).toMatchObject({
      "GPU busy": "43 %",
      "mean batch": "36.4 of 64",
      "share of the response time in the queue": "40 %",
      "link into the node": "at most 2300 requests/s",
    });
    expect(evidence["SLO rate with 10 % less host time"]).toMatch(/^\+\d/);
  });
});

describe("a server that infers on its CPU", () => {
  const variant = { ...findVariant("original"), maxBatchSize: 1, queueDelayUs: 0, preferredBatchSizes: [] };
  const law = { hostMsPerImage: 0.2, gpuMsPerBatch: 10, gpuMsPerImage: 10, ingressRequestsPerS: Infinity };
  const facts = { wireCeilingPerS: null, clientCeilingPerS: null, processor: "cpu" } as const;
  const input = inputOf(variant, law, { facts });

  it("is limited by it, in words that name no GPU", () => {
    const { cause, summary, evidence } = diagnose(input);
    expect(cause).toBe("cpu-bound");
    expect(summary).toMatch(/^The CPU is the limit: 10 % less inference time/);
    expect(JSON.stringify({ summary, evidence })).not.toContain("GPU");
  });

  it("is not told to batch more when no batch was ever seen", () => {
    expect(diagnose(input).nextMove!.change).toMatch(/^max batch/);
    const identified = { ...input.fitted.identified, batchSplit: false };
    expect(diagnose({ ...input, fitted: { ...input.fitted, identified } }).nextMove!.change).not.toMatch(
      /batch/,
    );
  });
});

describe("next move", () => {
  it("is what in fact gains most, by about what is predicted", () => {
    const variant = findVariant("tftrt_int8");
    const input = inputOf(variant);
    const context = {
      variant,
      system: input.system,
      prediction: predictionOf(input.system, "poisson", slo, input.kneeValue)!,
      sloRate: input.sloRate,
      lawOf: () => null,
      instancesAllowed: Infinity,
    };
    const truthAfter = (changed: Variant): number =>
      truthOf({ ...changed, dynamicBatching: true, law: serviceLawFor(changed) }, slo, {
        seeds: [1, 2],
        measureS: 30,
      })!;
    const bytes = {
      ...variant,
      artefact: { ...variant.artefact, input: { ...variant.artefact.input, type: "UINT8" as const } },
    };
    const truths = new Map([
      ["2 instances instead of 1", truthAfter({ ...variant, instanceCount: 2 })],
      ["UINT8 input instead of FP32 (a quarter of the bytes)", truthAfter(bytes)],
      ["max batch 32 instead of 64", truthAfter({ ...variant, maxBatchSize: 32, preferredBatchSizes: [32] })],
    ]);
    const moves = movesOf(context);
    for (const [change, truth] of truths) {
      const { predictedSloRate } = moves.find((move) => move.change === change)!;
      expect(Math.abs(predictedSloRate / truth - 1)).toBeLessThan(0.05);
    }
    const best = [...truths].reduce((a, b) => (b[1] > a[1] ? b : a));
    expect(diagnose(input).nextMove!.change).toBe(best[0]);
  });

  it("takes the law of another artefact in proportion", () => {
    const variant = findVariant("tftrt_fp16_bs8_count4");
    const { nextMove } = diagnose(inputOf(variant, serviceLawFor(variant), { lawOf: serviceLawFor }));
    expect(nextMove!.change).toBe("precision INT8 instead of FP16");
    expect(nextMove!.predictedSloRate).toBeGreaterThan(2100);
    expect(nextMove!.predictedSloRate).toBeLessThan(2320);
  });

  it("cannot go beyond what the link is known to pass", () => {
    const variant = findVariant("tftrt_int8");
    const law = { ...serviceLawFor(variant), ingressRequestsPerS: Infinity };
    const facts = { wireCeilingPerS: 1500, clientCeilingPerS: null };
    const input = inputOf(variant, law, { facts });
    const moves = movesOf({
      variant,
      system: {
        ...input.system,
        server: { ...input.system.server, law: { ...law, ingressRequestsPerS: 1500 } },
      },
      prediction: predictionOf(input.system, "poisson", slo, input.kneeValue)!,
      sloRate: input.sloRate,
      lawOf: () => null,
      instancesAllowed: Infinity,
    });
    const instances = moves.find(({ change }) => change.startsWith("2 instances"))!;
    expect(instances.predictedSloRate).toBeLessThan(1500 * 1.02);
    expect(diagnose(input).nextMove!.predictedSloRate).toBeLessThan(6000);
  });

  it("is another replica when nothing else gains", () => {
    const law = { hostMsPerImage: 0, gpuMsPerBatch: 0, gpuMsPerImage: 4, ingressRequestsPerS: Infinity };
    const variant = { ...catalogue[0]!, maxBatchSize: 1, preferredBatchSizes: [], queueDelayUs: 0 };
    const { nextMove, cause } = diagnose(inputOf(variant, law));
    expect(cause).toBe("gpu-bound");
    expect(nextMove!.change).toMatch(/^another replica/);
    expect(nextMove!.predictedGain).toBe(1);
  });
});

describe("reliefs", () => {
  it("add up to about the whole: everything ten per cent faster is a tenth more load", () => {
    const { system, kneeValue } = inputOf(findVariant("tftrt_fp16_bs8_count4"));
    const gains = reliefs(system, predictionOf(system, "poisson", slo, kneeValue)!);
    const total = gains.reduce((sum, { gain }) => sum + gain, 0);
    expect(total).toBeGreaterThan(0.09);
    expect(total).toBeLessThan(0.14);
    expect(gains[0]!.resource).toBe("gpu");
  });
});
