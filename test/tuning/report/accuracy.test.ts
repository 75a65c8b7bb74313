import { describe, expect, it } from "vitest";
import { excludedOutcome } from "../../../tuning/outcome";
import { defaultLimits } from "../../../tuning/accuracy/limits";
import type { AccuracyVerdict } from "../../../tuning/accuracy/gate";
import { renderReport } from "../../../tuning/report/render-report";
import { renderSummary } from "../../../tuning/report/terminal";
import { buildResult } from "../../../tuning/results/build-result";
import { context, outcomes, variants } from "../fixtures/outcomes";

const [, fp32, fp16, int8] = variants;
const reason = "top-1 agreement 12.5 %, at least 85.0 % is asked for";
const figures = {
  images: 24,
  top1Agreement: 1,
  top5Agreement: 1,
  maxDifference: 0.0213,
  meanDifference: 0.0021,
  afterSoftmax: false,
};
const verdicts = new Map<string, AccuracyVerdict>([
  [fp16!.name, { reference: "original", figures, passed: true, reasons: [] }],
  [
    int8!.name,
    {
      reference: "original",
      figures: { ...figures, top1Agreement: 0.125 },
      passed: false,
      reasons: [reason],
    },
  ],
]);
const result = buildResult(
  outcomes.map((outcome) =>
    outcome.variantName === int8!.name
      ? excludedOutcome(int8!.name, `${int8!.name} is excluded: ${reason}`)
      : outcome,
  ),
  {
    ...context,
    accuracy: { reference: "original", images: 24, imagesHash: "abc", limits: { ...defaultLimits } },
    accuracyOf: ({ name }) => verdicts.get(name) ?? null,
    assumptionsOf: ({ name }) => (name === fp32!.name ? ["Assumed: the moon is made of cheese."] : []),
  },
);
const text = renderReport(result, null)
  .replaceAll(/<(style|script)>[^]*?<\/\1>/g, "")
  .replaceAll(/<[^>]*>/g, " ")
  .replaceAll(/[\s\u00a0]+/g, " ");
const terminal = renderSummary(result, null, false).replaceAll("\u00a0", " ");

describe("a variant whose answers are wrong", () => {
  it("has no rank and no rate, and says why everywhere", () => {
    const variant = result.variants.find(({ name }) => name === int8!.name)!;
    expect(variant).toMatchObject({
      rank: null,
      sloRate: null,
      accuracy: { passed: false, reasons: [reason] },
    });
    expect(result.recommendation.reason).toContain(`Excluded: ${int8!.name}.`);
    expect(text).toContain("excluded: wrong answers");
    expect(text).toContain(`failed ( ${reason} )`.replaceAll("( ", "(").replaceAll(" )", ")"));
    expect(terminal).toMatch(new RegExp(`${int8!.name} .*excluded: wrong answers`));
    expect(terminal).toContain(`Note on ${int8!.name}: ${int8!.name} is excluded: ${reason}`);
  });
});

describe("a variant whose answers are right", () => {
  it("shows how near they are, and how near they had to be", () => {
    expect(text).toContain(
      "passed, against original on 24 held-out images: top-1 agreement 100.0 %, top-5 100.0 %, " +
        "probabilities differ by 0.0021 on average and 0.0213 at most",
    );
    expect(text).toContain(
      "the answers of every conversion to 24 held-out images were compared with those of original",
    );
    expect(text).toContain("INT8: top-1 at least 85 %");
  });
});

describe("assumed service times", () => {
  it("are marked in the table, above it, among the variant's facts, and on the terminal", () => {
    expect(text).toContain("Nobody has published measurements of tftrt_fp32.");
    expect(text).toMatch(/tftrt_fp32 assumed/);
    expect(text).toContain("Assumption Assumed: the moon is made of cheese.");
    expect(terminal).toContain("Assumed service times: tftrt_fp32;");
    expect(result.variants.filter(({ assumptions }) => assumptions.length > 0)).toHaveLength(1);
  });
});

describe("inference on the CPU", () => {
  it("is said in report and terminal, which name no GPU for its times", () => {
    const cpu = buildResult(outcomes, { ...context, processor: "cpu", simulated: false });
    const page = renderReport(cpu, null).replaceAll(/<[^>]*>/g, " ");
    expect(page).toContain("inference on the CPU");
    expect(page).not.toMatch(/ms an image; GPU/);
    expect(renderSummary(cpu, null, false)).toContain("[inference on the CPU");
  });
});
