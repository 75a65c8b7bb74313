import { describe, expect, it } from "vitest";
import { findVariant } from "../../../model-repo/catalogue";
import { truthOf } from "../../../serving-model/truth";
import { sensitivityOf } from "../../../tuning/results/sensitivity";
import { search, serverOf, slo } from "../search/virtual-search";

describe("other objectives", () => {
  const variant = findVariant("tftrt_fp16_bs8_count4");
  const { outcome } = search(variant);
  const others = sensitivityOf(outcome, variant, "poisson", slo)!;

  it("are what the server would hold", () => {
    for (const { quantile, boundMs, sloRate } of others) {
      const truth = truthOf(serverOf(variant), { quantile, boundMs }, { seeds: [1, 2], measureS: 60 });
      if (truth === null) expect(sloRate).toBeNull();
      else expect(Math.abs(sloRate! / truth - 1)).toBeLessThan(0.04);
    }
  });

  it("hold more with a longer bound, and less with a stricter quantile", () => {
    const byBound = others
      .filter(({ quantile }) => quantile === slo.quantile)
      .map(({ sloRate }) => sloRate ?? 0);
    expect([...byBound].sort((a, b) => a - b)).toEqual(byBound);
    const rateOf = (quantile: number) => others.find((other) => other.quantile === quantile)!.sloRate!;
    expect(rateOf(0.99)).toBeLessThan(rateOf(0.9));
  });

  it("are none without a model", () => {
    expect(sensitivityOf({ ...outcome, fittedLaw: null }, variant, "poisson", slo)).toBeNull();
  });
});
