import { describe, expect, it } from "vitest";
import { findVariant } from "../../../model-repo/catalogue";
import { serviceLawFor } from "../../../serving-model/t4";
import {
  conversionWithoutEffect,
  instancesThatFit,
  memoryLimit,
  throttled,
} from "../../../tuning/diagnosis/special-causes";
import { makeTrialResult } from "../make";

const server = (change: object) => makeTrialResult({}, change).server;
const fp16 = findVariant("tftrt_fp16");

describe("a conversion without effect", () => {
  it("is one whose GPU time is still that of FP32", () => {
    const fp32 = serviceLawFor(findVariant("tftrt_fp32"));
    const found = conversionWithoutEffect(fp16, fp32, 32, serviceLawFor)!;
    expect(found.cause).toBe("conversion-noop");
    expect(found.summary).toMatch(/^The conversion to FP16 had no effect: .* 100 % of the GPU time of FP32/);
  });

  it("is not one that works, nor the unconverted model, nor one that cannot be compared", () => {
    expect(conversionWithoutEffect(fp16, serviceLawFor(fp16), 32, serviceLawFor)).toBeNull();
    const original = findVariant("original");
    expect(conversionWithoutEffect(original, serviceLawFor(original), 32, serviceLawFor)).toBeNull();
    expect(conversionWithoutEffect(fp16, serviceLawFor(fp16), 32, () => null)).toBeNull();
  });
});

describe("throttling", () => {
  it("is a server that got slower with its GPU at the power limit", () => {
    const found = throttled(-0.105, server({ gpuPowerW: 69.2, gpuPowerLimitW: 70 }))!;
    expect(found).toMatchObject({
      cause: "throttled",
      evidence: { "slower than at first": "10 %", "GPU power": "69 of 70 W" },
    });
  });

  it("is not one that got slower for another reason, or did not", () => {
    expect(throttled(-0.1, server({ gpuPowerW: 50, gpuPowerLimitW: 70 }))).toBeNull();
    expect(throttled(-0.1, server({ gpuPowerW: null }))).toBeNull();
    expect(throttled(null, server({ gpuPowerW: 69.2, gpuPowerLimitW: 70 }))).toBeNull();
  });
});

describe("memory", () => {
  const gib = 2 ** 30;
  const plan = {
    ...fp16,
    artefact: { ...fp16.artefact, platform: "tensorrt_plan" as const },
    instanceCount: 2,
  };

  it("holds as many instances as fit at the present ones' size", () => {
    const used = server({ gpuMemoryUsedBytes: 6 * gib, gpuMemoryTotalBytes: 15 * gib });
    expect(instancesThatFit(plan, used)).toBe(5);
    expect(
      instancesThatFit(plan, server({ gpuMemoryUsedBytes: 14 * gib, gpuMemoryTotalBytes: 15 * gib })),
    ).toBe(2);
    expect(memoryLimit(5, used)?.summary).toMatch(/memory holds 5: 6\.0 GiB of 15\.0 GiB/);
  });

  it("is not judged where it is not known, or where the framework takes all of it anyway", () => {
    expect(instancesThatFit(plan, null)).toBe(Infinity);
    expect(instancesThatFit(plan, server({ gpuMemoryUsedBytes: 6 * gib }))).toBe(Infinity);
    expect(
      instancesThatFit(fp16, server({ gpuMemoryUsedBytes: 14 * gib, gpuMemoryTotalBytes: 15 * gib })),
    ).toBe(Infinity);
  });
});
