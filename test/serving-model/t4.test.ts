import { describe, expect, it } from "vitest";
import { trtArtefact } from "../../model-repo/artefacts";
import { catalogue, findVariant } from "../../model-repo/catalogue";
import type { Precision, Variant } from "../../model-repo/variant";
import { simulate, type SimulatedServer } from "../../serving-model/simulate";
import { lawAssumptions, payloadBytesOf, serviceLawFor } from "../../serving-model/t4";
import { capacityPerS, truthOf, truthOfUsers, usersShape } from "../../serving-model/truth";

/** A variant of the documents' shape; the catalogue itself is tested in its own room. */
export function documentsVariant(
  precision: Precision,
  maxBatchSize: number,
  instanceCount: number,
  type: "FP32" | "UINT8" = "FP32",
): Variant {
  const name = `${precision}_bs${maxBatchSize}_count${instanceCount}`;
  return {
    name,
    artefact: {
      name,
      platform: "tensorflow_savedmodel",
      precision,
      builtMaxBatchSize: null,
      input: { name: "input", type, dims: [224, 224, 3], format: "FORMAT_NHWC" },
      output: { name: "probabilities", type: "FP32", dims: [1000], format: null },
      labelsFile: null,
    },
    maxBatchSize,
    instanceCount,
    queueDelayUs: 20_000,
    preferredBatchSizes: [maxBatchSize],
    published: null,
  };
}

function serverOf(variant: Variant, wire = true): SimulatedServer {
  const law = serviceLawFor(variant);
  return { ...variant, dynamicBatching: true, law: wire ? law : { ...law, ingressRequestsPerS: Infinity } };
}

const slo = { quantile: 0.95, boundMs: 100 };
const within = (actual: number, expected: number, relative: number): void => {
  expect(Math.abs(actual / expected - 1), `${actual} against ${expected}`).toBeLessThanOrEqual(relative);
};

/** The documents' variants, what a simulation of their closed-loop users gives, and the GPU's busy share there. */
const users = [
  ["original", 64, 1, 263, 279, 0.83],
  ["fp32", 64, 1, 385, 409, 0.78],
  ["fp16", 64, 1, 1040, 1109, 0.43],
  ["int8", 64, 1, 1191, 1274, 0.34],
  ["fp16", 8, 4, 1303, 1413, 1.0],
  ["int8", 8, 4, 2300, 2500, 0.91],
  ["int8", 16, 4, 2300, 2500, 0.76],
] as const;

describe("the documents' closed-loop users", () => {
  it.each(users)(
    "%s batch %i x %i: throughput %i/s at %i users",
    (precision, batch, instances, rps, count, busy) => {
      const server = serverOf(documentsVariant(precision, batch, instances));
      const truth = truthOfUsers(server, slo, { seeds: [1], measureS: 30 })!;
      within(truth.throughputPerS, rps, 0.03);
      within(truth.users, count, 0.03);
      const run = simulate(server, {
        shape: usersShape(truth.users),
        seed: 1,
        warmupS: 10,
        measureS: 30,
        sloBoundMs: 100,
      });
      expect(run.gpuBusy).toBeCloseTo(busy, 1);
      within(run.gpuBusy, busy, 0.05);
    },
  );
});

describe("Poisson arrivals without the wire", () => {
  it.each([
    ["original", 64, 1, 247],
    ["fp32", 64, 1, 366],
    ["fp16", 64, 1, 1025],
    ["int8", 64, 1, 1168],
    ["fp16", 8, 4, 1283],
  ] as const)("%s batch %i x %i: %i/s", (precision, batch, instances, rate) => {
    const server = serverOf(documentsVariant(precision, batch, instances), false);
    within(truthOf(server, slo, { measureS: 60, tolerance: 0.002 })!, rate, 0.02);
  });
});

describe("the law of a variant", () => {
  it("follows the precision", () => {
    expect(serviceLawFor(documentsVariant("int8", 16, 4))).toEqual({
      hostMsPerImage: 0.55,
      gpuMsPerBatch: 1,
      gpuMsPerImage: 0.27,
      ingressRequestsPerS: 2300,
    });
    expect(serviceLawFor(documentsVariant("original", 64, 1)).gpuMsPerImage).toBe(2.75);
  });

  it("scales copies with the payload", () => {
    const variant = documentsVariant("int8", 16, 4, "UINT8");
    expect(payloadBytesOf(variant.artefact.input)).toBe(150_528);
    expect(serviceLawFor(variant)).toMatchObject({ hostMsPerImage: 0.1375, ingressRequestsPerS: 9200 });
  });

  it("derives TensorRT plans from published throughputs, and says so", () => {
    const fp16 = serviceLawFor(findVariant("trt_fp16"));
    // Compute-infer times published for batches that are throughput times execution time.
    for (const [batch, ms] of [
      [15.75, 6.804],
      [31.2, 12.81],
      [63.2, 24.487],
    ] as const)
      within(fp16.gpuMsPerBatch + fp16.gpuMsPerImage * batch, ms, 0.025);
    const int8 = findVariant("trt_int8_bs64_count2");
    within(capacityPerS(serverOf(int8)), 5622, 0.01);
    expect(serviceLawFor(int8)).toMatchObject({ hostMsPerImage: 0.1375, ingressRequestsPerS: 9200 });
    expect(lawAssumptions(int8)).toEqual([
      expect.stringMatching(/^Assumed: .*MLPerf Inference v0\.5, ResNet-50/),
      expect.stringMatching(/^Assumed: the host phase and the link are scaled by the bytes/),
    ]);
    expect(lawAssumptions(findVariant("trt_fp16"))[0]).toContain("NVIDIA DeepLearningExamples");
    for (const variant of catalogue) expect(lawAssumptions(variant)).toEqual([]);
  });

  it("carries INT8 plans beyond the documents' best, where the GPU is the limit and not the link", () => {
    const best = truthOf(serverOf(findVariant("tftrt_int8_bs16_count4")), slo, { seeds: [1], measureS: 10 })!;
    const plans = serverOf(findVariant("trt_int8_bs64_count2"));
    const truth = truthOf(plans, slo, { seeds: [1], measureS: 10 })!;
    expect(truth / best).toBeGreaterThan(2);
    const wider = { ...plans, law: { ...plans.law, ingressRequestsPerS: Infinity } };
    within(truthOf(wider, slo, { seeds: [1], measureS: 10 })!, truth, 0.02);
    const faster = { ...plans, law: { ...plans.law, gpuMsPerImage: plans.law.gpuMsPerImage * 0.9 } };
    expect(truthOf(faster, slo, { seeds: [1], measureS: 10 })! / truth).toBeGreaterThan(1.05);
  });

  it("refuses a platform without figures", () => {
    const variant = documentsVariant("int8", 16, 4);
    const onnx = { ...variant, artefact: { ...variant.artefact, platform: "onnxruntime_onnx" as const } };
    expect(() => serviceLawFor(onnx)).toThrow(/int8 on platform onnxruntime_onnx.*real server/);
    const plan = { ...variant, artefact: { ...trtArtefact("fp16", 8), precision: "original" as const } };
    expect(() => serviceLawFor(plan)).toThrow(/original on platform tensorrt_plan/);
  });
});

describe("capacity", () => {
  it("is the slowest of GPU, host phases and link", () => {
    expect(capacityPerS(serverOf(documentsVariant("fp16", 8, 4)))).toBeCloseTo(8000 / (3.5 + 0.33 * 8), 6);
    expect(capacityPerS(serverOf(documentsVariant("int8", 64, 1)))).toBeCloseTo(64_000 / (1 + 0.82 * 64), 6);
    expect(capacityPerS(serverOf(documentsVariant("int8", 16, 4)))).toBe(2300);
  });

  it("no rate holds a bound below the service time", () => {
    expect(
      truthOf(
        serverOf(documentsVariant("original", 64, 1)),
        { quantile: 0.95, boundMs: 20 },
        { seeds: [1], measureS: 5 },
      ),
    ).toBeNull();
    expect(
      truthOfUsers(
        serverOf(documentsVariant("original", 64, 1)),
        { quantile: 0.95, boundMs: 20 },
        { seeds: [1], measureS: 5 },
      ),
    ).toBeNull();
  });
});
