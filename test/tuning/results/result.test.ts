import { readFileSync } from "node:fs";
import { join } from "node:path";
import Ajv2020 from "ajv/dist/2020";
import { describe, expect, it } from "vitest";
import { buildResult } from "../../../tuning/results/build-result";
import { quantileMs } from "../../../tuning/results/result-trial";
import { resultJsonSchema, resultSchema } from "../../../tuning/results/result-schema";
import { context, failedOutcome, loadResult, outcomes, variants } from "../fixtures/outcomes";

const result = buildResult(outcomes, context);
const byName = (name: string) => result.variants.find((variant) => variant.name === name);

describe("the JSON schema in schemas/", () => {
  const committed = readFileSync(join(__dirname, "../../../schemas/result.schema.json"), "utf8");

  it("is the generated one (npm run schemas)", () => {
    expect(committed).toBe(resultJsonSchema());
  });

  it("accepts a built result, also one with members of a later version, and refuses a broken one", () => {
    const validate = new Ajv2020({ strict: true, formats: { "date-time": true } }).compile(
      JSON.parse(committed) as object,
    );
    expect(validate(result), JSON.stringify(validate.errors)).toBe(true);
    expect(validate({ ...result, later: 1 })).toBe(true);
    expect(validate({ ...result, timeDilation: 0.5 })).toBe(false);
    expect(validate({ ...result, variants: [{ ...result.variants[0], sloRate: undefined }] })).toBe(false);
  });
});

describe("buildResult", () => {
  it("has the members that other tools read", () => {
    expect(result).toMatchObject({
      schemaVersion: 1,
      target: "local",
      simulated: true,
      slo: { quantile: 0.95, boundMs: 100 },
      load: "poisson",
      seed: 1,
      elapsedS: 312,
    });
    expect(byName("tftrt_fp16")).toMatchObject({
      name: "tftrt_fp16",
      sloRate: { estimate: 1025, level: 0.95 },
      diagnosis: { cause: "host-bound", nextMove: { predictedGain: 0.25 } },
      published: { rps: 1072.5, kind: "limit", source: expect.any(String) as string },
    });
  });

  it("reads back from JSON unchanged", () => {
    expect(resultSchema.parse(JSON.parse(JSON.stringify(result)))).toEqual(result);
  });

  it("reports the largest time dilation, and each variant's own", () => {
    expect(result.timeDilation).toBe(3.2);
    expect(byName("original")?.timeDilation).toBe(1);
  });

  it("compares with a published limit, not with a goal that was merely reached", () => {
    expect(byName("original")?.published?.ratio).toBeCloseTo(247 / 253.1, 6);
    expect(byName("tftrt_int8_bs8_count4")?.published?.ratio).toBeNull();
  });

  it("counts the measured seconds of all trials", () => {
    expect(byName("original")?.measuredS).toBe(3 * 5 + 6 * 10 + 5 * 22);
  });

  it("gives the cost of a million inferences at the operating rate, only when there is a price", () => {
    expect(result.variants.every((variant) => variant.usdPerMillion === null)).toBe(true);
    const price = { usdPerReplicaHour: 0.73, asOf: "2026-02" };
    const priced = buildResult(outcomes, { ...context, price });
    const rate = 247 * 0.972;
    expect(priced.variants[0]?.usdPerMillion).toBeCloseTo((0.73 / (3600 * rate)) * 1e6, 9);
  });

  it("says which variants are missing and why", () => {
    const partial = buildResult(outcomes.slice(0, 2), { ...context, endedEarly: "interrupted" });
    expect(partial.endedEarly).toBe("interrupted");
    expect(partial.missingVariants).toEqual(variants.slice(2).map((variant) => variant.name));
    expect(partial.recommendation.variant).toBe("tftrt_fp32");
  });

  it("recommends nothing when no variant held the SLO", () => {
    const none = buildResult(
      variants.map((variant) => failedOutcome(variant.name, "even one request at a time takes 130 ms")),
      context,
    );
    expect(none.recommendation).toEqual({
      variant: null,
      reason: expect.any(String) as string,
      tiedWith: [],
    });
    expect(none.variants[0]).toMatchObject({ rank: null, sloRate: null, published: { ratio: null } });
  });

  it("keeps credentials out", () => {
    const text = JSON.stringify(
      buildResult(outcomes, {
        ...context,
        target: "grpc://user:hush@triton:8001",
        targetDescription: "http://a:hush@b/?token=hush",
      }),
    );
    expect(text).not.toContain("hush");
  });

  it("turns what has no value into null, never into 0", () => {
    const [first] = outcomes;
    const trial = first?.trials[0];
    if (!first || !trial) throw new Error("no fixture");
    const empty = loadResult(10, 5, NaN, 0);
    const load = {
      ...empty,
      valid: false,
      invalidReasons: ["worker 2 was lost", "0 % of the requests were sent"],
      response: { ...empty.response, count: 0, p95Ms: 0 },
    };
    const missShare = { estimate: NaN, low: NaN, high: NaN, level: 0.95 };
    const odd = { ...first, trials: [{ ...trial, missShare, result: { ...trial.result, load } }] };
    expect(buildResult([odd], context).variants[0]?.trials[0]).toMatchObject({
      valid: false,
      reason: "worker 2 was lost; 0 % of the requests were sent",
      missShare: null,
      p95Ms: null,
      quantileMs: null,
    });
  });

  it("accepts a fitted law without an ingress limit", () => {
    const [first] = outcomes;
    if (!first?.fittedLaw) throw new Error("no fixture");
    const open = { ...first, fittedLaw: { ...first.fittedLaw, ingressRequestsPerS: Infinity } };
    expect(buildResult([open], context).variants[0]?.fittedLaw?.ingressRequestsPerS).toBeNull();
  });

  it("refuses an outcome of a variant that is not in the sweep", () => {
    expect(() => buildResult([failedOutcome("stranger", "")], context)).toThrow("stranger");
  });
});

describe("quantileMs", () => {
  const load = {
    ...loadResult(10, 10, 90, 0),
    responseHistogram: [
      [1000, 50],
      [2000, 30],
      [5000, 19],
      [9000, 1],
    ] as const,
  };
  it.each([
    [0.5, 1],
    [0.51, 2],
    [0.8, 2],
    [0.9, 5],
    [0.999, 9],
  ])("reads the %s quantile off by nearest rank", (quantile, expected) => {
    expect(quantileMs(load, quantile)).toBe(expected);
  });

  it("uses the exact percentiles where there are some", () => {
    expect(quantileMs(load, 0.95)).toBe(90);
  });

  it("is null for an empty histogram", () => {
    expect(quantileMs({ ...load, responseHistogram: [] }, 0.5)).toBeNull();
  });
});
