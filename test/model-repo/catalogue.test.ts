import { describe, expect, it } from "vitest";
import {
  catalogue,
  catalogueArtefacts,
  findArtefact,
  findVariant,
  findVariants,
  UnknownNameError,
} from "../../model-repo/catalogue";
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
    for (const variant of catalogue) expect(findVariant(variant.name)).toBe(variant);
    expect(findVariants(["tftrt_int8", "original"]).map(({ name }) => name)).toEqual([
      "tftrt_int8",
      "original",
    ]);
    expect(findArtefact("tftrt_fp16_bs32")).toMatchObject({ precision: "fp16", builtMaxBatchSize: 32 });
    for (const artefact of catalogueArtefacts) expect(findArtefact(artefact.name)).toEqual(artefact);
  });

  it("lists the known names and the nearest one", () => {
    expect(() => findVariant("tftrt_int8_bs16_count")).toThrow(
      /^unknown variant "tftrt_int8_bs16_count"; did you mean "tftrt_int8_bs16_count4"\? Known variants: original, .*, tftrt_int8_bs16_count4$/,
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
    "__proto__",
    "",
  ])("refuses the artefact %j", (name) => {
    expect(() => findArtefact(name)).toThrow(UnknownNameError);
    expect(() => findArtefact(name)).toThrow(
      /tftrt_<precision>_bs<n> with precision fp32, fp16, int8 .* from 1 to 256/,
    );
  });
});
