import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { listImages } from "../../../loadgen/image-tensor";
import { LocalTriton } from "../../../local-triton/server";
import { findVariants } from "../../../model-repo/catalogue";
import { declaredModelConfig } from "../../../model-repo/model-config";
import { onnxVariants, readOnnxModels } from "../../../model-repo/onnx-models";
import { heldOutFolder } from "../../../model-repo/repository";
import type { Variant } from "../../../model-repo/variant";
import { writeRepository } from "../../../model-repo/write-repository";
import { defaultLimits } from "../../../tuning/accuracy/limits";
import { openScreening, type Screening } from "../../../tuning/accuracy/screening";
import { describeImages } from "../../../tuning/results/images";
import type { OpenTarget } from "../../../tuning/target";
import { preparedModels, swappedWeight, tinyWeight } from "../../local-triton/onnx-model";
import { makeRepository } from "../../local-triton/support";

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), "screening-"));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** The gate on a server in this process that has all variants loaded. */
async function screening(
  variants: readonly Variant[],
  reference: Variant,
  modelRepository: string,
  executor: "simulated-t4" | "onnx",
  calibrationImages?: ReadonlySet<string>,
): Promise<Screening> {
  const server = await LocalTriton.start({ modelRepository, executor, loadTimeMs: 0 });
  onTestFinished(() => server.close());
  const address = `127.0.0.1:${server.ports.grpc}`;
  return openScreening(
    { reference, imageFolder: heldOutFolder, limits: defaultLimits },
    {
      folder: folder(),
      variants,
      target: { identity: executor, calibrationImages } as OpenTarget,
      runner: { prepare: async ({ name }) => ({ modelName: name, address }) },
    },
  );
}

describe("accuracy through the serving API", () => {
  it("lets the simulated T4's conversions pass, with FP32 and UINT8 pixels, and catches a planted wrong one", async () => {
    const variants = findVariants(["original", "tftrt_fp32", "tftrt_int8", "trt_int8", "trt_fp16"]);
    const [original, , , , planted] = variants as [Variant, Variant, Variant, Variant, Variant];
    const models = variants.map((variant) => {
      const config = declaredModelConfig(variant, { warmup: false });
      const output = config.output!.map(({ label_filename: _file, ...rest }) => rest);
      const parameters =
        variant === planted ? { parameters: { simulated_defect: { string_value: "swapped-channels" } } } : {};
      return { name: variant.name, config: { parameters: {}, ...config, output, ...parameters } };
    });
    const { screen, gate, facts } = await screening(
      variants,
      original,
      makeRepository(models),
      "simulated-t4",
    );
    for (const variant of variants.slice(0, 4)) expect(await screen(variant)).toBeNull();
    expect(gate.verdictOf(variants[2]!)!.figures).toMatchObject({
      images: 24,
      top1Agreement: 1,
      top5Agreement: 1,
    });
    expect(gate.verdictOf(variants[2]!)!.figures!.maxDifference).toBeGreaterThan(0);
    expect(await screen(planted)).toMatch(
      /^trt_fp16 is excluded: on 24 held-out images its answers differ from those of original \(top-1 agreement \d/,
    );
    expect(facts).toMatchObject({
      reference: "original",
      images: 24,
      limits: { int8: { top1Agreement: 0.85 } },
    });
  });

  it("tells a good quantisation of a real model from a conversion with swapped colours", async () => {
    const coarse = (value: number, classIndex: number): number =>
      Math.round(tinyWeight(value, classIndex) * 6000) / 6000;
    const models = readOnnxModels(
      preparedModels({
        tiny_fp32: { precision: "FP32" },
        tiny_int8: { precision: "INT8", weight: coarse },
        tiny_bytes: { precision: "FP32", inputType: "UINT8", isConverted: true },
        tiny_swapped: { precision: "INT8", weight: swappedWeight },
      }),
    );
    const variants = onnxVariants(models).filter(({ maxBatchSize }) => maxBatchSize === 4);
    const repository = folder();
    await writeRepository(variants, repository, {
      instanceKind: "KIND_CPU",
      readLabelsFile: models.labelsOf,
      modelFileOf: ({ artefact }) => models.modelFileOf(artefact.name),
    });
    const { screen, gate } = await screening(variants, variants[0]!, repository, "onnx");
    const [, int8, bytes, swapped] = variants as [Variant, Variant, Variant, Variant];
    expect(await screen(int8)).toBeNull();
    expect(gate.verdictOf(int8)!.figures!.maxDifference).toBeGreaterThan(0);
    expect(await screen(bytes)).toBeNull();
    expect(gate.verdictOf(bytes)!.figures!.maxDifference).toBeLessThan(0.001);
    expect(await screen(swapped)).toMatch(/^tiny_swapped_bs4 is excluded: .*top-1 agreement/);
  });

  it("refuses images that INT8 was calibrated with", async () => {
    const [image] = describeImages(await listImages(heldOutFolder));
    const [original] = findVariants(["original"]) as [Variant];
    const repository = makeRepository([{}]);
    await expect(
      screening([original], original, repository, "simulated-t4", new Set([image!.sha256])),
    ).rejects.toThrow(new RegExp(`were calibrated with ${image!.file}.*--held-out`));
  });
});
