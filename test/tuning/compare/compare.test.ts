import { describe, expect, it } from "vitest";
import { Random } from "../../../serving-model/random";
import { compareResults, incomparable } from "../../../tuning/compare/compare";
import { renderComparison } from "../../../tuning/compare/render";
import { buildResult } from "../../../tuning/results/build-result";
import type { Result, ResultVariant } from "../../../tuning/results/result-schema";
import { context, outcomes } from "../fixtures/outcomes";

const base = buildResult(outcomes, context);
const nothing = { differences: [], notCompared: [] };

/** The same sweep with one variant changed. */
function changed(result: Result, name: string, change: (variant: ResultVariant) => ResultVariant): Result {
  return { ...result, variants: result.variants.map((one) => (one.name === name ? change(one) : one)) };
}

/** The load generator was the limit: at least this rate. */
function atLeast(result: Result, name: string, rate: number): Result {
  return changed(result, name, (variant) => ({
    ...variant,
    diagnosis: { ...variant.diagnosis, cause: "client-bound" },
    sloRate: { estimate: rate, low: rate, high: rate * 1.2, level: 0.95 },
  }));
}

/** The same sweep with other rates: each has a 95 % interval of this half width (ln). */
function sweep(factorOf: (name: string) => number | null, half = 0.01): Result {
  return {
    ...base,
    variants: base.variants.map((variant) => {
      const factor = factorOf(variant.name);
      if (factor === null) return { ...variant, sloRate: null };
      const estimate = 1000 * factor;
      const interval = {
        estimate,
        low: estimate * Math.exp(-half),
        high: estimate * Math.exp(half),
        level: 0.95,
      };
      return { ...variant, sloRate: interval };
    }),
  };
}

const [first, second] = base.variants.map(({ name }) => name) as [string, string];

describe("comparing two sweeps", () => {
  it("finds no evidence in equal ones, and says what it would have seen", () => {
    const comparison = compareResults(
      sweep(() => 1),
      sweep(() => 1),
    );
    expect(comparison.verdict).toBe("no evidence");
    expect(renderComparison(comparison, nothing)).toMatch(
      /Verdict: no evidence\. A change of more than 2\.0 % of any variant would have been seen/,
    );
  });

  it("raises few false alarms although seven variants are compared", () => {
    const random = new Random(5);
    const [half, sweeps] = [0.02, 2000];
    const noisy = (): Result => sweep(() => Math.exp((half / 1.96) * random.nextNormal()), half);
    let alarms = 0;
    for (let i = 0; i < sweeps; i++) if (compareResults(noisy(), noisy()).verdict !== "no evidence") alarms++;
    expect(alarms / sweeps).toBeLessThan(0.065);
    expect(alarms / sweeps).toBeGreaterThan(0.03);
  });

  it("sees a change beyond the intervals, in either direction; one that is worse decides", () => {
    const slower = sweep((name) => (name === first ? 0.95 : 1));
    const mixed = sweep((name) => (name === first ? 0.95 : name === second ? 1.1 : 1));
    const faster = sweep((name) => (name === second ? 1.1 : 1));
    const same = sweep(() => 1);
    expect(compareResults(same, slower).verdict).toBe("worse");
    expect(compareResults(same, faster).verdict).toBe("better");
    const comparison = compareResults(same, mixed);
    expect(comparison.verdict).toBe("worse");
    expect(comparison.variants.map(({ verdict }) => verdict)).toEqual(
      base.variants.map(({ name }) =>
        name === first ? "worse" : name === second ? "better" : "no evidence",
      ),
    );
    expect(renderComparison(comparison, { ...nothing, differences: ["seed: 1 before, 2 now"] })).toMatch(
      new RegExp(`differs: seed: 1 before, 2 now[^]*Verdict: worse\\. ${first}: beyond what chance explains`),
    );
  });

  it("needs a larger change where the intervals are wider", () => {
    const [wide, slower] = [sweep(() => 1, 0.05), sweep((name) => (name === first ? 0.95 : 1), 0.05)];
    expect(compareResults(wide, slower).verdict).toBe("no evidence");
  });

  it("takes a rate that is gone for worse, and one that came for better", () => {
    const gone = sweep((name) => (name === first ? null : 1));
    expect(
      compareResults(
        sweep(() => 1),
        gone,
      ).verdict,
    ).toBe("worse");
    expect(
      compareResults(
        gone,
        sweep(() => 1),
      ).verdict,
    ).toBe("better");
    expect(compareResults(gone, gone).verdict).toBe("no evidence");
  });

  it("takes a rate that nobody could measure for neither", () => {
    const unmeasured = changed(
      sweep(() => 1),
      first,
      (variant) => ({
        ...variant,
        sloRate: null,
        trials: variant.trials.filter(({ purpose }) => purpose === "probe"),
      }),
    );
    const same = sweep(() => 1);
    for (const pair of [
      [same, unmeasured],
      [unmeasured, same],
    ] as const)
      expect(compareResults(...pair).verdict).toBe("no evidence");
    expect(renderComparison(compareResults(same, unmeasured), nothing)).toMatch(
      new RegExp(`${first} .*no evidence \\(not known after: no valid trial near its limit\\)`),
    );
  });

  it("does not take what a load generator could not offer for what the server does not hold", () => {
    const same = sweep(() => 1);
    const weakClient = atLeast(same, first, 700);
    expect(compareResults(same, weakClient).verdict).toBe("no evidence");
    expect(compareResults(weakClient, same).verdict).toBe("no evidence");
    // At least so much is enough for "better", and what fell below it is worse.
    expect(compareResults(same, atLeast(same, first, 1300)).verdict).toBe("better");
    expect(compareResults(atLeast(same, first, 1300), same).verdict).toBe("worse");
  });

  it("takes a variant whose answers are wrong now for worse", () => {
    const wrong = changed(
      sweep(() => 1),
      first,
      (variant) => ({
        ...variant,
        ...{ sloRate: null, operatingRate: null, trials: [] },
        accuracy: {
          ...{
            reference: "original",
            images: 32,
            top1Agreement: 0.5,
            top5Agreement: 0.6,
            maxDifference: 0.9,
          },
          ...{
            meanDifference: 0.4,
            afterSoftmax: false,
            passed: false,
            reasons: ["top-1 agreement is 50 %"],
          },
        },
      }),
    );
    const comparison = compareResults(
      sweep(() => 1),
      wrong,
    );
    expect(comparison.verdict).toBe("worse");
    expect(comparison.onlyBefore).toEqual([]);
    expect(renderComparison(comparison, nothing)).toContain("worse (its answers are wrong now)");
  });

  it("names variants that only one of them has, and other recommendations", () => {
    const part = { ...sweep(() => 1), recommendation: { ...base.recommendation, variant: null } };
    const less = { ...part, variants: part.variants.slice(1) };
    const comparison = compareResults(
      sweep(() => 1),
      less,
    );
    expect(comparison.onlyBefore).toEqual([first]);
    const text = renderComparison(comparison, nothing);
    expect(text).toContain(`measured before only: ${first}`);
    expect(text).toContain("now: none");
  });

  it("refuses what means different things", () => {
    expect(incomparable(base, base)).toEqual([]);
    expect(incomparable(base, { ...base, slo: { quantile: 0.99, boundMs: 100 } })).toHaveLength(1);
    expect(incomparable(base, { ...base, load: "users", simulated: !base.simulated })).toHaveLength(2);
  });
});
