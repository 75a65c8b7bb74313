import { appendFileSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { toConfigPbtxt } from "../../model-repo/config-pbtxt";
import {
  defaultOnnxFolder,
  onnxVariants,
  OnnxModelsError,
  readOnnxModels,
} from "../../model-repo/onnx-models";
import { variantsProblems } from "../../model-repo/validate-variant";
import { preparedModels } from "../local-triton/onnx-model";

const prepared = (): string =>
  preparedModels({ net_fp32: { precision: "FP32" }, net_int8: { precision: "INT8", inputType: "UINT8" } });

describe("prepared ONNX models", () => {
  it("become artefacts, and variants with and without batching", () => {
    const folder = prepared();
    const models = readOnnxModels(folder);
    expect(models.artefacts).toEqual([
      {
        name: "net_fp32",
        platform: "onnxruntime_onnx",
        precision: "original",
        builtMaxBatchSize: null,
        input: { name: "input", type: "FP32", dims: [4, 4, 3], format: "FORMAT_NHWC" },
        output: { name: "probabilities", type: "FP32", dims: [10], format: null },
        labelsFile: "labels.txt",
      },
      expect.objectContaining({ name: "net_int8", precision: "int8" }),
    ]);
    expect(models.modelFileOf("net_int8")).toBe(join(folder, "net_int8", "1", "model.onnx"));
    expect(models.labelsOf("labels.txt")).toMatch(/^class 0\n/);
    expect(models).toMatchObject({ heldOutFolder: null, calibrationImages: new Set() });
    const variants = onnxVariants(models);
    expect(variants.map(({ name, maxBatchSize }) => [name, maxBatchSize])).toEqual([
      ["net_fp32", 1],
      ["net_fp32_bs4", 4],
      ["net_int8", 1],
      ["net_int8_bs4", 4],
    ]);
    expect(variantsProblems(variants)).toEqual([]);
    // On a CPU there is no TensorRT to hand it to.
    const config = toConfigPbtxt(variants[3]!, { instanceKind: "KIND_CPU" });
    expect(config).toMatch(/platform: "onnxruntime_onnx"[^]*TYPE_UINT8[^]*kind: KIND_CPU/);
    expect(config).not.toContain("tensorrt");
    expect(toConfigPbtxt(variants[3]!)).toContain("tensorrt");
  });

  it("say how to prepare them when they are not there", () => {
    expect(() => readOnnxModels("/nowhere/at-all")).toThrow(OnnxModelsError);
    expect(() => readOnnxModels("/nowhere/at-all")).toThrow(
      /^there are no prepared ONNX models in \/nowhere\/at-all: npm run convert -- --local --out \/nowhere\/at-all, or .*--models$/,
    );
    expect(defaultOnnxFolder).toBe("onnx-models");
  });

  it("are refused when a file is not the one that was prepared, or is gone", () => {
    const folder = prepared();
    const file = join(folder, "net_fp32", "1", "model.onnx");
    appendFileSync(file, "x");
    expect(() => readOnnxModels(folder)).toThrow(
      /model\.onnx \(net_fp32\) is not the file that was prepared/,
    );
    rmSync(file);
    expect(() => readOnnxModels(folder)).toThrow(/model\.onnx cannot be read .*npm run convert/);
  });

  it("are refused with a manifest of another form, which names what is wrong", () => {
    const folder = prepared();
    const path = join(folder, "manifest.json");
    const manifest = JSON.parse(readFileSync(path, "utf8")) as { artefacts: { precision: string }[] };
    manifest.artefacts[1]!.precision = "int4";
    writeFileSync(path, JSON.stringify(manifest));
    expect(() => readOnnxModels(folder)).toThrow(
      /is no manifest of this version[^]*artefacts\[1\]\.precision/,
    );
    writeFileSync(path, "{");
    expect(() => readOnnxModels(folder)).toThrow(/manifest\.json cannot be read/);
  });

  it("say how fast they were alone at a variant's batch, and where", () => {
    const folder = prepared();
    const [one, four] = onnxVariants(readOnnxModels(folder));
    const { standAloneOf, machine } = readOnnxModels(folder);
    const alone = { latencyP95Ms: 12.5, basis: "measured", on: "Abacus, 2 threads" };
    expect(standAloneOf(one!)).toEqual({ ...alone, batchSize: 1, imagesPerS: 100 });
    expect(standAloneOf(four!)).toEqual({ ...alone, batchSize: 4, imagesPerS: 400 });
    expect(standAloneOf({ ...four!, maxBatchSize: 3 })).toMatchObject({ batchSize: 1 });
    expect(machine).toMatchObject({ cpu: "Abacus", cores: 3 });
  });

  it("that were prepared before speeds were measured have none, and are no error", () => {
    const folder = prepared();
    const path = join(folder, "manifest.json");
    const { machine, ...manifest } = JSON.parse(readFileSync(path, "utf8")) as {
      machine: unknown;
      artefacts: { standAloneSpeed?: unknown }[];
    };
    expect(machine).toBeDefined();
    for (const artefact of manifest.artefacts) delete artefact.standAloneSpeed;
    writeFileSync(path, JSON.stringify(manifest));
    const models = readOnnxModels(folder);
    expect(models.machine).toBeNull();
    expect(onnxVariants(models).map(models.standAloneOf)).toEqual([null, null, null, null]);
  });

  it("differ by their hash when a model does", () => {
    expect(readOnnxModels(prepared()).hash).toBe(readOnnxModels(prepared()).hash);
    const other = preparedModels({ net_fp32: { precision: "FP32", classes: 10, weight: () => 0 } });
    expect(readOnnxModels(other).hash).not.toBe(readOnnxModels(prepared()).hash);
  });
});
