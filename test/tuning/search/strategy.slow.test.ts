import { describe, expect, it } from "vitest";
import { catalogue, findVariant } from "../../../model-repo/catalogue";
import { truthOf, truthOfUsers } from "../../../serving-model/truth";
import { budgetFor } from "../../../tuning/search/budget";
import { causes, search, serverOf, slo } from "./virtual-search";

const names = catalogue.map((variant) => variant.name);
const seeds = [11, 12, 13, 14];

describe("all variants, several seeds", () => {
  it.each(names)("Poisson: %s and its cause", (name) => {
    const variant = findVariant(name);
    const truth = truthOf(serverOf(variant), slo)!;
    for (const seed of seeds) {
      for (const preset of ["quick", "thorough"] as const) {
        const budget = budgetFor(preset, variant.instanceCount > 1 ? 4 : 1.5);
        const { outcome } = search(variant, { seed, budget });
        expect(Math.abs(outcome.sloRate!.estimate / truth - 1)).toBeLessThan(0.03);
        expect(outcome.operatingRate!).toBeLessThan(truth);
        expect(outcome.diagnosis.cause).toBe(causes[name]);
      }
    }
  });

  it.each(names)("users: %s and its cause", (name) => {
    const variant = findVariant(name);
    const truth = truthOfUsers(serverOf(variant), slo, { seeds: [1, 2], measureS: 60 })!;
    for (const seed of seeds.slice(0, 2)) {
      const budget = budgetFor("quick", variant.instanceCount > 1 ? 4 : 1.5);
      const { outcome } = search(variant, { seed, budget, mode: "users" });
      expect(Math.abs(outcome.sloRate!.estimate / truth.throughputPerS - 1)).toBeLessThan(0.04);
      expect(outcome.diagnosis.cause).toBe(causes[name]);
    }
  });

  it.each(names)("users: %s against the published limit", (name) => {
    const variant = findVariant(name);
    const { outcome } = search(variant, { mode: "users", budget: budgetFor("quick", 3) });
    if (variant.published?.kind !== "limit") {
      expect(outcome.sloRate!.low).toBeGreaterThan(variant.published!.rps);
      return;
    }
    expect(Math.abs(outcome.sloRate!.estimate / variant.published.rps - 1)).toBeLessThan(0.15);
  });
});

describe("a server without metrics", () => {
  it("is found from response times alone, and the cause is not made up", () => {
    for (const name of ["original", "tftrt_int8_bs16_count4"]) {
      const variant = findVariant(name);
      const { outcome } = search(variant, { budget: budgetFor("thorough", 4) }, { metrics: "none" });
      const truth = truthOf(serverOf(variant), slo, { seeds: [1, 2, 3, 4], measureS: 60 })!;
      expect(Math.abs(outcome.sloRate!.estimate / truth - 1)).toBeLessThan(0.04);
      expect(["none", "wire-bound"]).toContain(outcome.diagnosis.cause);
    }
  });
});
