import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { findArtefact, variantWords } from "../../model-repo/catalogue";
import { InvalidVariantError } from "../../model-repo/validate-variant";
import { variantsOfArtefacts } from "../../targets/artefact-variants";
import { parseVariantsFile } from "../../targets/variants-file";
import { defaultLimits } from "../../tuning/accuracy/limits";

const read = (text: string) => variantsOfArtefacts(parseVariantsFile(text, "v.yaml"), findArtefact);

function problems(text: string): string[] {
  try {
    read(text);
  } catch (error) {
    if (error instanceof InvalidVariantError) return error.message.split("\n");
    throw error;
  }
  throw new Error("it was accepted");
}

describe("docs/variants.md", () => {
  const guide = readFileSync(join(__dirname, "../../docs/variants.md"), "utf8");
  const [plans = "", served = ""] = [...guide.matchAll(/```yaml\n([^]*?)```/g)].map(([, text]) => text);

  it("has examples that can be used", () => {
    expect(read(plans).map(({ name, instanceCount }) => [name, instanceCount])).toEqual([
      ["plans_1", 1],
      ["plans_2", 2],
      ["plans_2_quick", 2],
    ]);
    expect(parseVariantsFile(served, "v.yaml").map(({ precision }) => precision)).toEqual([
      "original",
      "fp16",
      "int8",
    ]);
  });

  it("names every group, variant, option and limit", () => {
    for (const word of variantWords) expect(guide).toContain(`\`${word}\``);
    for (const [precision, limits] of Object.entries(defaultLimits))
      expect(guide).toContain(
        `| ${precision} | ${limits.top1Agreement * 100} % | ${limits.top5Agreement * 100} % | ${limits.maxDifference} | ${limits.meanDifference} |`,
      );
  });
});

describe("variants of known artefacts", () => {
  it("take what is left out from the artefact and the documents", () => {
    expect(
      read(`
- { model: tftrt_int8_bs32 }
- { name: mine, model: trt_int8_bs64, maxBatchSize: 32, instanceCount: 3, queueDelayUs: 5000, preferredBatchSizes: [] }
- { model: original }
`),
    ).toEqual([
      {
        name: "tftrt_int8_bs32_bs32_count1_delay20000_pref32",
        artefact: findArtefact("tftrt_int8_bs32"),
        maxBatchSize: 32,
        instanceCount: 1,
        queueDelayUs: 20_000,
        preferredBatchSizes: [32],
        published: null,
      },
      {
        name: "mine",
        artefact: findArtefact("trt_int8_bs64"),
        maxBatchSize: 32,
        instanceCount: 3,
        queueDelayUs: 5000,
        preferredBatchSizes: [],
        published: null,
      },
      expect.objectContaining({ name: "original_bs64_count1_delay20000_pref64", maxBatchSize: 64 }),
    ]);
  });

  it("are checked like every variant, all problems at once", () => {
    expect(
      problems(`
- { name: a, model: tftrt_int8_bs8, maxBatchSize: 16 }
- { name: b, model: resnet }
- { name: c, model: trt_fp16_bs8, precision: int8, input: { type: FP32, dims: [3, 224, 224] }, output: { name: scores } }
- { name: d, model: original, input: { name: input, type: FP32 }, precision: original }
`),
    ).toEqual([
      expect.stringMatching(/^b: unknown artefact "resnet"/),
      expect.stringMatching(/^c\.input\.type: is UINT8 in the model, not FP32$/),
      expect.stringMatching(/^c\.input\.dims: is 224, 224, 3 in the model, not 3, 224, 224$/),
      expect.stringMatching(/^c\.output\.name: is probabilities in the model, not scores$/),
      expect.stringMatching(
        /^c\.precision: "int8" is not the precision of trt_fp16_bs8 \(fp16\); leave it out$/,
      ),
      expect.stringMatching(/^variants\[0\]\.maxBatchSize: 16 is above the 8 .*a conversion proposal/),
    ]);
  });
});
