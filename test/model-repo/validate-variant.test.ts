import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { catalogue, findArtefact } from "../../model-repo/catalogue";
import { toConfigPbtxt } from "../../model-repo/config-pbtxt";
import {
  assertValidVariants,
  InvalidVariantError,
  variantProblems,
  variantsProblems,
} from "../../model-repo/validate-variant";
import type { Variant } from "../../model-repo/variant";
import { variantFromObject } from "../../model-repo/variant-from-object";

const good = catalogue[4]!;

function problems(changes: Partial<Record<keyof Variant, unknown>>): string[] {
  return variantProblems({ ...good, ...changes } as Variant, "v").map(
    ({ path, message }) => `${path}: ${message}`,
  );
}

describe("variantProblems", () => {
  it("calls a batch beyond the artefact's a conversion proposal", () => {
    expect(problems({ maxBatchSize: 16, preferredBatchSizes: [16] })).toEqual([
      "v.maxBatchSize: 16 is above the 8 that artefact tftrt_fp16_bs8 was built for: a larger batch is a conversion proposal, " +
        "not a serving setting. Use at most 8, or convert an artefact for batch 16",
    ]);
    expect(problems({ artefact: findArtefact("original"), maxBatchSize: 128 })).toEqual([]);
  });

  it.each([
    ["maxBatchSize", 0, /^v.maxBatchSize: 0 is out of range; use 1 to 1024$/],
    ["maxBatchSize", 1.5, /^v.maxBatchSize: 1.5 is not a whole number/],
    ["maxBatchSize", "8", /^v.maxBatchSize: "8" is no number/],
    ["instanceCount", 0, /^v.instanceCount: 0 is out of range; use 1 to 32$/],
    ["instanceCount", NaN, /^v.instanceCount: NaN is not a whole number/],
    ["queueDelayUs", -1, /^v.queueDelayUs: -1 is out of range; use 0 to 10000000$/],
    ["name", "Tftrt", /^v.name: "Tftrt" is no name: use lower-case letters, digits and _/],
    ["name", "../x", /^v.name: "..\/x" is no name/],
    ["name", "a".repeat(64), /^v.name: 64 characters are too many; use at most 63$/],
    ["preferredBatchSizes", [4, 4], /^v.preferredBatchSizes\[1\]: 4 is named twice; remove one$/],
    [
      "preferredBatchSizes",
      [4, 9],
      /^v.preferredBatchSizes\[1\]: 9 is above maxBatchSize 8; lower it, or raise maxBatchSize$/,
    ],
    ["preferredBatchSizes", [0], /^v.preferredBatchSizes\[0\]: 0 is no batch size/],
    ["preferredBatchSizes", 8, /^v.preferredBatchSizes: 8 is not a list; use e.g. \[8\] or \[\]$/],
  ])("refuses %s %j with one message", (key, value, message) => {
    const found = problems({ [key]: value });
    expect(found.filter((text) => message.test(text))).toHaveLength(1);
    const related = key === "maxBatchSize" ? found.filter((text) => !text.startsWith("v.preferred")) : found;
    expect(related).toHaveLength(1);
  });

  it("tells all problems at once", () => {
    expect(
      problems({
        name: "",
        maxBatchSize: 9,
        instanceCount: 99,
        queueDelayUs: 0.5,
        preferredBatchSizes: [10],
      }),
    ).toHaveLength(5);
  });

  it("checks the artefact", () => {
    const { artefact } = good;
    const broken = {
      ...artefact,
      name: "a/b",
      builtMaxBatchSize: null,
      input: { ...artefact.input, dims: [-1, 224], name: "" },
    };
    expect(variantProblems({ ...good, artefact: broken }).map(({ path }) => path)).toEqual([
      "variant.artefact.name",
      "variant.artefact.builtMaxBatchSize",
      "variant.artefact.input.name",
      "variant.artefact.input.dims",
    ]);
  });

  it("finds a name that is used twice", () => {
    expect(variantsProblems([good, catalogue[0]!, good])).toEqual([
      { path: "variants[2].name", message: `"${good.name}" is used twice; give every variant its own name` },
    ]);
    expect(() => assertValidVariants([good, good], "stack:variants")).toThrow(/^stack:variants\[1\].name: /);
  });
});

describe("variantFromObject", () => {
  it("fills in the documents' defaults and names the variant as they do", () => {
    expect(variantFromObject({ artefact: "tftrt_fp16_bs8", instanceCount: 4 })).toEqual({
      ...good,
      published: null,
    });
    expect(variantFromObject({ artefact: "original" })).toEqual({ ...catalogue[0]!, published: null });
    expect(variantFromObject({ artefact: "original", precision: "original", name: "mine" }).name).toBe(
      "mine",
    );
  });

  it("gives different settings different valid names", () => {
    const settings = fc.record({
      artefact: fc.constantFrom("original", "tftrt_fp16_bs8", "tftrt_fp16_bs64", "tftrt_int8_bs16"),
      maxBatchSize: fc.constantFrom(1, 2, 4, 8),
      instanceCount: fc.integer({ min: 1, max: 32 }),
      queueDelayUs: fc.integer({ min: 0, max: 10_000_000 }),
      preferredBatchSizes: fc.constantFrom([], [1], [1, 2], [2]).map((sizes) => sizes),
    });
    fc.assert(
      fc.property(settings, settings, (one, other) => {
        const clamp = (object: typeof one) => ({
          ...object,
          preferredBatchSizes: object.preferredBatchSizes.filter((size) => size <= object.maxBatchSize),
        });
        const [a, b] = [variantFromObject(clamp(one)), variantFromObject(clamp(other))];
        expect(variantProblems(a)).toEqual([]);
        const same = JSON.stringify({ ...a, name: "" }) === JSON.stringify({ ...b, name: "" });
        expect(a.name === b.name).toBe(same);
      }),
    );
  });

  it("tells every problem at once, with the key's path", () => {
    const input = {
      artefact: "tftrt_fp61_bs8",
      maxBatchSise: 3,
      instanceCount: 0,
      queueDelayUs: null,
      preferredBatchSizes: [2, "x"],
    };
    try {
      variantFromObject(input, "variants[1]");
      expect.unreachable();
    } catch (error) {
      expect(error).toBeInstanceOf(InvalidVariantError);
      expect(
        (error as Error).message
          .split("\n")
          .map((line) => line.replace(/(known|Known) (keys|artefacts).*/, "...")),
      ).toEqual([
        'variants[1].maxBatchSise: is no key of a variant; did you mean "maxBatchSize"? ...',
        'variants[1].artefact: unknown artefact "tftrt_fp61_bs8"; did you mean "tftrt_fp16_bs8"? ...',
        "variants[1].instanceCount: 0 is out of range; use 1 to 32",
        "variants[1].queueDelayUs: null is no number; use 0 to 10000000",
        'variants[1].preferredBatchSizes[1]: "x" is no batch size; use whole numbers from 1 to 64',
      ]);
    }
  });

  it.each([
    [null, /^variant: is no object/],
    [[], /^variant: is no object/],
    ["tftrt_fp16", /^variant: is no object/],
    [{}, /^variant.artefact: is missing; use original or e.g. tftrt_fp16_bs8$/],
    [{ artefact: 3 }, /^variant.artefact: is no text/],
    [
      { artefact: "tftrt_fp16_bs8", precision: "int8" },
      /^variant.precision: "int8" is not the precision of tftrt_fp16_bs8/,
    ],
    [
      { artefact: "tftrt_fp16_bs8", maxBatchSize: 16 },
      /^variant.maxBatchSize: 16 is above .* conversion proposal/,
    ],
    [{ artefact: "tftrt_fp16_bs8", name: null }, /^variant.name: null is no name/],
  ])("refuses %j", (input, message) => {
    expect(() => variantFromObject(input)).toThrow(message);
    expect(() => variantFromObject(input)).toThrow(InvalidVariantError);
  });

  it("refuses or accepts anything, and what it accepts can be written", () => {
    const value = fc.oneof(
      fc.jsonValue(),
      fc.integer({ min: -1, max: 70 }),
      fc.constantFrom("tftrt_int8_bs8", [8], [1, 2]),
    );
    const keys = fc.constantFrom(
      "name",
      "artefact",
      "precision",
      "maxBatchSize",
      "instanceCount",
      "queueDelayUs",
      "preferredBatchSizes",
    );
    fc.assert(
      fc.property(fc.dictionary(keys, value), (input) => {
        try {
          toConfigPbtxt(variantFromObject(input));
        } catch (error) {
          expect(error).toBeInstanceOf(InvalidVariantError);
        }
      }),
    );
  });
});
