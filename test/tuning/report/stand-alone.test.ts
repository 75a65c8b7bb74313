import { describe, expect, it } from "vitest";
import type { StandAloneSpeed } from "../../../model-repo/stand-alone-speed";
import { renderReport } from "../../../tuning/report/render-report";
import { renderSummary } from "../../../tuning/report/terminal";
import { buildResult, type ResultContext } from "../../../tuning/results/build-result";
import { resultSchema } from "../../../tuning/results/result-schema";
import { context, failedOutcome, outcomes } from "../fixtures/outcomes";

/** Of the conversion VM's kind; the winner's, and that of a variant that leaves the GPU idle. */
const measured: Readonly<Record<string, StandAloneSpeed>> = {
  tftrt_int8_bs16_count4: {
    batchSize: 16,
    imagesPerS: 3200,
    latencyP95Ms: 5.125,
    basis: "measured",
    on: "Tesla T4",
  },
  tftrt_fp16: { batchSize: 64, imagesPerS: 2602, latencyP95Ms: 25, basis: "measured", on: "Tesla T4" },
};

function render(standAloneOf: ResultContext["standAloneOf"], some = outcomes) {
  const result = buildResult(some, { ...context, standAloneOf });
  const page = renderReport(result, null)
    .replaceAll(/<(style|script)>[^]*?<\/\1>/g, "")
    .replaceAll(/<[^>]*>/g, " ")
    .replaceAll("&#39;", "'")
    .replaceAll(/[\s\u00a0]+/g, " ");
  const terminal = renderSummary(result, null, false).replaceAll("\u00a0", " ");
  const of = (name: string) => result.variants.find((variant) => variant.name === name)!;
  return { result, page, terminal, of };
}

describe("speeds that conversions measured", () => {
  const { result, page, terminal, of } = render(({ name }) => measured[name] ?? null);

  it("stand in result.json with the share that is served", () => {
    const { standAlone, sloRate } = of("tftrt_int8_bs16_count4");
    expect(standAlone).toEqual({
      ...measured["tftrt_int8_bs16_count4"],
      servedShare: sloRate!.estimate / 3200,
    });
    expect(of("original").standAlone).toBeNull();
    expect(resultSchema.parse(JSON.parse(JSON.stringify(result)))).toEqual(result);
  });

  it("are shown in words on page and terminal", () => {
    const words =
      "served 2,274/s = 71 % of the artefact's own 3,200 images/s at batch 16 (5.13 ms a batch at p95, Tesla T4, one caller)";
    expect(page).toContain(`Model alone S${words.slice(1)}.`);
    expect(page).toContain(`Model alone ${words}`);
    expect(page).toContain("2,235 to 2,306 71 % of 3,200 alone");
    expect(terminal).toContain(`  Alone      ${words}`);
    expect(terminal).toMatch(/^\* tftrt_int8_bs16_count4 .* 3,200 \(71 %\) /m);
  });

  it("say so in a word where they are missing, and show no zero", () => {
    expect(page).toContain("243 to 250 alone: not known");
    expect(page).toContain("Model alone not known: there is no conversion manifest of this artefact");
    expect(terminal).toMatch(/^ {2}original .* not known {2}/m);
    expect(page).not.toMatch(/ 0 % of /);
    expect(terminal).not.toContain("(0 %)");
  });

  it("lead the diagnosis away from the model where the GPU is idle and the share low", () => {
    const idle = of("tftrt_fp16");
    expect(idle.gpuBusy).toBeLessThan(0.6);
    expect(idle.diagnosis.summary).toMatch(
      /while the GPU waits\. Served is 39 % of what the artefact does alone \(2,602 images\/s at batch 64\), and the GPU is idle for \d\d % of the time: most of what is missing is lost outside the model, not in the conversion\.$/,
    );
    // Neither a high share, nor a missing one, nor a model at its limit gets the sentence.
    for (const name of ["tftrt_int8_bs16_count4", "tftrt_int8", "original"])
      expect(of(name).diagnosis.summary).not.toContain("outside the model");
    expect(page).toContain("one caller, one batch after the other, copies included");
  });

  it("are no reason to blame anything else when the model itself is the limit under a tight objective", () => {
    const { of: busy } = render(() => ({ ...measured["tftrt_fp16"]!, imagesPerS: 1e5 }));
    expect(busy("original").diagnosis.cause).toBe("gpu-bound");
    expect(busy("original").diagnosis.summary).not.toContain("outside the model");
  });
});

describe("a simulated GPU", () => {
  it("has the speed of its phase alone, and says that nothing was measured", () => {
    const speed = { ...measured["tftrt_int8_bs16_count4"]!, basis: "simulated", on: null } as const;
    const { page, terminal } = render(() => speed);
    const words =
      "served 2,274/s = 71 % of the 3,200 images/s at batch 16 of the simulated GPU phase alone (no copies, nothing measured)";
    expect(terminal).toContain(words);
    expect(page).toContain(words);
    expect(page).toContain("no artefact was measured");
  });
});

describe("no manifest at all", () => {
  it("leaves out the column and says that it is not known", () => {
    const { page, terminal, result } = render(undefined);
    expect(result.variants.every(({ standAlone }) => standAlone === null)).toBe(true);
    expect(page).toContain("not known: there is no conversion manifest");
    expect(page).not.toContain("served");
    expect(terminal).not.toMatch(/alone|not known/i);
  });
});

describe("a variant that held no rate", () => {
  it("shows its own speed without a share", () => {
    const { page, of, terminal } = render(
      () => measured["tftrt_fp16"]!,
      [failedOutcome("tftrt_fp16", "even one request at a time takes 130 ms")],
    );
    expect(of("tftrt_fp16").standAlone!.servedShare).toBeNull();
    expect(page).toContain(
      "Model alone the artefact's own 2,602 images/s at batch 64 (25.0 ms a batch at p95",
    );
    expect(terminal).toMatch(/tftrt_fp16 .* 2,602 /);
  });
});
