import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { InvalidVariantError } from "../../model-repo/validate-variant";
import { parseVariantsFile } from "../../targets/variants-file";

const parse = (text: string) => parseVariantsFile(text, "v.yaml");

function problems(text: string): string[] {
  try {
    parse(text);
  } catch (error) {
    if (error instanceof InvalidVariantError) return error.message.split("\n");
    throw error;
  }
  throw new Error("it was accepted");
}

const open = { name: null, type: null, dims: null };

describe("a file of variants", () => {
  it("needs a model only; everything else is left to the server", () => {
    expect(parse("- model: Dense-Net.v2")).toEqual([
      {
        name: null,
        model: "Dense-Net.v2",
        maxBatchSize: null,
        instanceCount: null,
        queueDelayUs: null,
        preferredBatchSizes: null,
        precision: null,
        input: open,
        output: open,
      },
    ]);
  });

  it("takes all settings, in YAML or JSON", () => {
    const yaml = `
# two of one model
- name: small
  model: m
  maxBatchSize: 8
  instanceCount: 2
  queueDelayUs: 500
  preferredBatchSizes: [4, 8]
  precision: fp16
  input: { name: data, type: UINT8, dims: [3, 299, 299] }
  output: { name: scores }
- { name: none, model: m, preferredBatchSizes: [] }
`;
    const [small, none] = parse(yaml);
    expect(small).toEqual({
      name: "small",
      model: "m",
      maxBatchSize: 8,
      instanceCount: 2,
      queueDelayUs: 500,
      preferredBatchSizes: [4, 8],
      precision: "fp16",
      input: { name: "data", type: "UINT8", dims: [3, 299, 299] },
      output: { name: "scores", type: null, dims: null },
    });
    expect(none!.preferredBatchSizes).toEqual([]);
    const json = JSON.stringify([{ name: "small", model: "m", queueDelayUs: 0 }]);
    expect(parse(json)).toMatchObject([{ name: "small", model: "m", queueDelayUs: 0 }]);
  });

  it("names every problem at once with its place", () => {
    expect(
      problems(`
- { modell: m, name: "No Name" }
- { model: m, name: a, maxBatchSize: 0, instanceCount: 1.5, queueDelayUs: -1, preferredBatchSizes: 8 }
- { model: m, name: a, precision: fp8, input: { typ: FP32, dims: [0] }, output: 7 }
- 12
`),
    ).toEqual([
      expect.stringMatching(/^v\.yaml\[0\]\.modell: is no key of a variant; did you mean "model"\?/),
      expect.stringMatching(/^v\.yaml\[0\]\.model: is missing; use the model's name in Triton's repository/),
      expect.stringMatching(/^v\.yaml\[0\]\.name: "No Name" is no name/),
      expect.stringMatching(/^v\.yaml\[1\]\.maxBatchSize: 0 is out of range; use 1 to 1024/),
      expect.stringMatching(/^v\.yaml\[1\]\.instanceCount: 1\.5 is not a whole number/),
      expect.stringMatching(/^v\.yaml\[1\]\.queueDelayUs: -1 is out of range/),
      expect.stringMatching(/^v\.yaml\[1\]\.preferredBatchSizes: 8 is not a list/),
      expect.stringMatching(/^v\.yaml\[2\]\.precision: "fp8" is unknown; use one of original, fp32/),
      expect.stringMatching(/^v\.yaml\[2\]\.input\.typ: is no key of a tensor; did you mean "type"\?/),
      expect.stringMatching(/^v\.yaml\[2\]\.input\.dims: is no shape/),
      expect.stringMatching(/^v\.yaml\[2\]\.output: is no object/),
      expect.stringMatching(/^v\.yaml\[3\]: is no object; use e\.g\./),
      expect.stringMatching(/^v\.yaml\[2\]\.name: "a" is used twice/),
    ]);
  });

  it.each([
    ["", /^v\.yaml: is no list of variants/],
    ["[]", /is no list of variants; write one entry a variant, e\.g\. "- \{ model:/],
    ["model: m", /is no list/],
    ["- {model: m", /^v\.yaml:1:\d+: is no YAML/],
    ["- model: m\n  model: n", /^v\.yaml:2:3: is no YAML: Map keys must be unique/],
  ])("%j", (text, message) => {
    expect(problems(text)).toEqual([expect.stringMatching(message)]);
  });

  it("never throws anything else, whatever is in the file", () => {
    const value = fc.oneof(
      fc.constant(null),
      fc.integer(),
      fc.string(),
      fc.boolean(),
      fc.array(fc.integer()),
    );
    const entry = fc.dictionary(
      fc.constantFrom("model", "name", "maxBatchSize", "input", "output", "x"),
      value,
    );
    fc.assert(
      fc.property(
        fc.oneof(
          fc.array(fc.oneof(entry, value)).map((list) => JSON.stringify(list)),
          fc.string(),
        ),
        (text) => {
          try {
            for (const request of parse(text)) expect(request.model).not.toBe("");
          } catch (error) {
            expect(error).toBeInstanceOf(InvalidVariantError);
          }
        },
      ),
    );
  });
});
