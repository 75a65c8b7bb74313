import { describe, expect, it } from "vitest";
import {
  catalogue,
  catalogueArtefacts,
  findArtefact,
  findVariant,
  findVariants,
  namedVariants,
  tensorrtVariants,
  UnknownNameError,
} from "../../model-repo/catalogue";
import { toConfigPbtxt } from "../../model-repo/config-pbtxt";
import { variantsProblems } from "../../model-repo/validate-variant";

describe("catalogue", () => {
  it("holds the documents' seven variants with their published figures", () => {
    expect(
      catalogue.map(({ name, artefact, maxBatchSize, instanceCount, published }) => [
        name,
        artefact.precision,
        maxBatchSize,
        instanceCount,
        published?.rps,
        published?.kind,
      ]),
    ).toEqual([
      ["original", "original", 64, 1, 253.1, "limit"],
      ["tftrt_fp32", "fp32", 64, 1, 381, "limit"],
      ["tftrt_fp16", "fp16", 64, 1, 1072.5, "limit"],
      ["tftrt_int8", "int8", 64, 1, 1085.4, "limit"],
      ["tftrt_fp16_bs8_count4", "fp16", 8, 4, 1260, "limit"],
      ["tftrt_int8_bs8_count4", "int8", 8, 4, 1500, "reached"],
      ["tftrt_int8_bs16_count4", "int8", 16, 4, 2236.6, "limit"],
    ]);
    for (const { queueDelayUs, preferredBatchSizes, maxBatchSize } of catalogue) {
      expect(queueDelayUs).toBe(20_000);
      expect(preferredBatchSizes).toEqual([maxBatchSize]);
    }
  });

  it("is valid, and serves each batch size from an artefact that was built for it", () => {
    expect(variantsProblems(catalogue)).toEqual([]);
    for (const { artefact, maxBatchSize } of catalogue)
      expect(artefact.builtMaxBatchSize).toBe(artefact.name === "original" ? null : maxBatchSize);
  });

  it("goes beyond them with TensorRT plans that take bytes, one instance and several", () => {
    expect(
      tensorrtVariants.map(({ name, artefact, maxBatchSize, instanceCount, published }) => [
        name,
        artefact.name,
        maxBatchSize,
        instanceCount,
        published?.kind ?? null,
      ]),
    ).toEqual([
      ["trt_fp16", "trt_fp16_bs64", 64, 1, "reached"],
      ["trt_fp16_bs64_count2", "trt_fp16_bs64", 64, 2, null],
      ["trt_int8", "trt_int8_bs64", 64, 1, null],
      ["trt_int8_bs64_count2", "trt_int8_bs64", 64, 2, "reached"],
      ["trt_int8_bs16_count4", "trt_int8_bs16", 16, 4, null],
    ]);
    expect(variantsProblems(namedVariants)).toEqual([]);
    for (const { artefact } of tensorrtVariants)
      expect(artefact).toMatchObject({
        platform: "tensorrt_plan",
        input: { type: "UINT8", dims: [224, 224, 3] },
      });
    expect(toConfigPbtxt(findVariant("trt_int8_bs16_count4"))).toMatchInlineSnapshot(`
      "# Generated from the variant catalogue; change the variant, not this file.
      name: "trt_int8_bs16_count4"
      platform: "tensorrt_plan"
      max_batch_size: 16
      input [
        {
          name: "input"
          data_type: TYPE_UINT8
          format: FORMAT_NHWC
          dims: [ 224, 224, 3 ]
        }
      ]
      output [
        {
          name: "probabilities"
          data_type: TYPE_FP32
          dims: [ 1000 ]
          label_filename: "imagenet1k_labels.txt"
        }
      ]
      dynamic_batching {
        preferred_batch_size: [ 16 ]
        max_queue_delay_microseconds: 20000
      }
      instance_group [
        {
          kind: KIND_GPU
          count: 4
        }
      ]
      model_warmup [
        {
          name: "batch_16"
          batch_size: 16
          inputs {
            key: "input"
            value {
              data_type: TYPE_UINT8
              dims: [ 224, 224, 3 ]
              zero_data: true
            }
          }
        },
        {
          name: "batch_1"
          batch_size: 1
          inputs {
            key: "input"
            value {
              data_type: TYPE_UINT8
              dims: [ 224, 224, 3 ]
              zero_data: true
            }
          }
        }
      ]
      "
    `);
  });

  it("keeps conversions for different batch sizes apart", () => {
    expect(catalogueArtefacts.map(({ name }) => name)).toEqual([
      "original",
      "tftrt_fp32_bs64",
      "tftrt_fp16_bs64",
      "tftrt_int8_bs64",
      "tftrt_fp16_bs8",
      "tftrt_int8_bs8",
      "tftrt_int8_bs16",
    ]);
  });
});

describe("look-up", () => {
  it("finds by name", () => {
    for (const variant of namedVariants) expect(findVariant(variant.name)).toBe(variant);
    expect(findVariants(["tftrt_int8", "original"]).map(({ name }) => name)).toEqual([
      "tftrt_int8",
      "original",
    ]);
    expect(findArtefact("tftrt_fp16_bs32")).toMatchObject({ precision: "fp16", builtMaxBatchSize: 32 });
    expect(findArtefact("trt_int8_bs32")).toMatchObject({ platform: "tensorrt_plan", builtMaxBatchSize: 32 });
    for (const { artefact } of namedVariants) expect(findArtefact(artefact.name)).toEqual(artefact);
  });

  it("takes a word for a group", () => {
    expect(findVariants(["documents"])).toEqual(catalogue);
    expect(findVariants(["original", "tensorrt"])).toEqual([catalogue[0], ...tensorrtVariants]);
    expect(findVariants(["all"])).toEqual([...catalogue, ...tensorrtVariants]);
    expect(() => findVariants(["tensorrt", "trt_fp16"])).toThrow(/^variant "trt_fp16" is named twice\./);
    expect(() => findVariants(["tensorr"])).toThrow(/^unknown variant "tensorr"; did you mean "tensorrt"\?/);
  });

  it("lists the known names and the nearest one", () => {
    expect(() => findVariant("tftrt_int8_bs16_count")).toThrow(
      /^unknown variant "tftrt_int8_bs16_count"; did you mean "tftrt_int8_bs16_count4"\? Known variants: original, .*, tftrt_int8_bs16_count4, trt_fp16, .*$/,
    );
    expect(() => findVariant("resnet")).toThrow(/^unknown variant "resnet"; known variants: original, /);
    expect(() => findVariant("resnet")).toThrow(UnknownNameError);
  });

  it("tells every bad name at once", () => {
    expect(() => findVariants(["orignal", "tftrt_int8", "tftrt_int8", "x"])).toThrow(
      /unknown variant "orignal"; did you mean "original"\?; variant "tftrt_int8" is named twice; unknown variant "x"\. Known variants: original/,
    );
  });

  it.each([
    "tftrt_fp16",
    "tftrt_fp16_bs0",
    "tftrt_fp16_bs08",
    "tftrt_fp16_bs512",
    "tftrt_bf16_bs8",
    "trt_original_bs8",
    "trtt_fp16_bs8",
    "__proto__",
    "",
  ])("refuses the artefact %j", (name) => {
    expect(() => findArtefact(name)).toThrow(UnknownNameError);
    expect(() => findArtefact(name)).toThrow(
      /tftrt_<precision>_bs<n> or trt_<precision>_bs<n> with precision fp32, fp16, int8 .* from 1 to 256/,
    );
  });
});
