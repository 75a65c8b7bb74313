import { describe, expect, it } from "vitest";
import { catalogue, findVariant } from "../../../model-repo/catalogue";
import { longRunMissShare, truthOf, truthOfUsers } from "../../../serving-model/truth";
import { budgetFor } from "../../../tuning/search/budget";
import type { TrialResult, TrialSpec } from "../../../tuning/trial";
import { causes, search, serverOf, slo } from "./virtual-search";

describe("a quick search on the simulated T4", () => {
  it.each(["original", "tftrt_fp16", "tftrt_int8_bs16_count4"])("finds rate and cause of %s", (name) => {
    const variant = findVariant(name);
    const dilation = variant.instanceCount > 1 ? 4 : 1.5;
    const { outcome, loadedS } = search(variant, { budget: budgetFor("quick", dilation) });
    const truth = truthOf(serverOf(variant), slo, { seeds: [1, 2, 3, 4], measureS: 60, tolerance: 0.002 })!;
    expect(Math.abs(outcome.sloRate!.estimate / truth - 1)).toBeLessThan(0.03);
    expect(outcome.sloRate!.low).toBeLessThan(truth * 1.01);
    expect(outcome.sloRate!.high).toBeGreaterThan(truth * 0.99);
    expect(outcome.operatingRate!).toBeLessThan(outcome.sloRate!.estimate);
    expect(outcome.operatingRate!).toBeLessThan(truth);
    expect(outcome.diagnosis.cause).toBe(causes[name]);
    expect(loadedS).toBeLessThanOrEqual(32 / dilation);
    expect(outcome.note).toBeNull();
  });
});

describe("the course of a search", () => {
  it("is probe, locate, confirm; every trial has its own seed", () => {
    const { specs, outcome } = search(findVariant("tftrt_int8"), { budget: budgetFor("thorough", 4) });
    const purposes = specs.map((spec) => spec.purpose);
    expect(purposes.slice(0, 3)).toEqual(["probe", "probe", "locate"]);
    expect(new Set(purposes.slice(3))).toEqual(new Set(["confirm"]));
    expect(new Set(specs.map((spec) => spec.seed)).size).toBe(specs.length);
    expect(outcome.trials).toHaveLength(specs.length);
    const above = specs.filter(
      (spec) => spec.shape.kind === "poisson" && spec.shape.ratePerS > outcome.sloRate!.estimate,
    );
    expect(above.length).toBeGreaterThan(0);
  });

  it("asks for the same trials when it is fed the same results", () => {
    const [a, b] = [search(catalogue[0]!), search(catalogue[0]!)];
    expect(a.specs).toEqual(b.specs);
    expect(a.outcome).toEqual(b.outcome);
  });

  it("tries the goal itself when it lies near", () => {
    const variant = findVariant("tftrt_fp16_bs8_count4");
    const budget = { ...budgetFor("quick", 4), totalS: 30 };
    const near = search(variant, { budget, goalRatePerS: 1200 });
    expect(near.specs.at(-1)).toMatchObject({
      purpose: "verify",
      shape: { kind: "poisson", ratePerS: 1200 },
    });
    const far = search(variant, { budget, goalRatePerS: 500 });
    expect(far.specs.map((spec) => spec.purpose)).not.toContain("verify");
  });
});

describe("other loads", () => {
  it("constant arrivals reach the capacity", () => {
    const variant = findVariant("tftrt_fp16_bs8_count4");
    const { outcome } = search(variant, { mode: "constant" });
    const truth = truthOf(serverOf(variant), slo, { shape: "constant", seeds: [1], measureS: 30 })!;
    expect(Math.abs(outcome.sloRate!.estimate / truth - 1)).toBeLessThan(0.03);
  });

  it.each(["tftrt_fp16"])("users: throughput at the largest passing number, %s", (name) => {
    const variant = findVariant(name);
    const { outcome, specs } = search(variant, { mode: "users", budget: budgetFor("quick", 2) });
    const truth = truthOfUsers(serverOf(variant), slo, { seeds: [1], measureS: 30 })!;
    expect(Math.abs(outcome.sloRate!.estimate / truth.throughputPerS - 1)).toBeLessThan(0.04);
    expect(outcome.diagnosis.cause).toBe(causes[name]);
    const confirming = specs.at(-1)!.shape;
    expect(confirming.kind === "users" && Math.abs(confirming.users / truth.users - 1) < 0.05).toBe(true);
  });
});

describe("a search that cannot finish", () => {
  it("ends with nothing when no trial is valid", () => {
    const { outcome, specs } = search(catalogue[0]!, {}, {}, () => null);
    expect(specs.length).toBeLessThan(8);
    expect(outcome).toMatchObject({
      sloRate: null,
      operatingRate: null,
      trials: [],
      diagnosis: { cause: "none" },
    });
    expect(outcome.note).toMatch(/No trial of original was valid \(\d+ were tried\)/);
  });

  it("has only a prediction when the probe alone was valid", () => {
    const { outcome } = search(catalogue[0]!, {}, {}, (spec, result) =>
      spec.purpose === "probe" ? result : null,
    );
    expect(outcome.sloRate).toBeNull();
    expect(outcome.predictedSloRate).toBeGreaterThan(200);
    expect(outcome.note).toMatch(/only a prediction/);
  });

  it("does without the probe", () => {
    const { outcome, specs } = search(
      catalogue[3]!,
      { budget: budgetFor("thorough", 2) },
      {},
      (spec, result) => (spec.purpose === "probe" ? null : result),
    );
    expect(specs.filter((spec) => spec.purpose === "probe")).toHaveLength(2);
    expect(Math.abs(outcome.sloRate!.estimate / 1161 - 1)).toBeLessThan(0.04);
  });

  it("uses what it has when later trials are lost", () => {
    let trials = 0;
    const { outcome } = search(catalogue[2]!, {}, {}, (_spec, result) => (++trials > 3 ? null : result));
    expect(Math.abs(outcome.sloRate!.estimate / 1020 - 1)).toBeLessThan(0.04);
  });

  it("says when the SLO holds at no rate", () => {
    const { outcome } = search(catalogue[0]!, { slo: { quantile: 0.95, boundMs: 20 } });
    expect(outcome.sloRate).toBeNull();
    expect(outcome.note).toMatch(
      /original held the SLO at no rate that was tried: even at [\d.]+ requests\/s the 95th percentile was \d+ ms, over 20 ms/,
    );
  });

  it("names the load generator when that is the limit", () => {
    const limit = 900;
    const invalid = (spec: TrialSpec, result: TrialResult): TrialResult | null =>
      spec.shape.kind === "poisson" && spec.shape.ratePerS > limit ? null : result;
    const { outcome } = search(
      findVariant("tftrt_int8_bs16_count4"),
      { budget: budgetFor("thorough", 4) },
      {},
      invalid,
    );
    expect(outcome.diagnosis.cause).toBe("client-bound");
    expect(outcome.diagnosis.summary).toMatch(/load generator could not offer/);
    expect(outcome.sloRate!.estimate).toBeGreaterThan(limit / 1.2);
    expect(outcome.sloRate!.estimate).toBeLessThanOrEqual(limit);
    expect(outcome.operatingRate).toBe(outcome.sloRate!.estimate);
    expect(outcome.note).toMatch(/not the limit/);
  });
});

it("names the limit that was set when no more may be offered", () => {
  const facts = { wireCeilingPerS: null, clientCeilingPerS: 900 };
  const { outcome } = search(findVariant("tftrt_int8_bs16_count4"), {
    ...{ budget: budgetFor("thorough", 4), facts },
  });
  expect(outcome.diagnosis.cause).toBe("client-bound");
  expect(outcome.diagnosis.summary).toMatch(/No more than 900 requests\/s may be offered.*--max-rate/);
  expect(outcome.sloRate!.estimate).toBeGreaterThan(900 / 1.2);
  expect(outcome.sloRate!.estimate).toBeLessThanOrEqual(900);
});

describe("a server that misses at low loads, too", () => {
  it("is found at its upper limit, with a word about the lower one", () => {
    // A request alone waits 97 of 100 ms for a batch that never fills.
    const variant = { ...findVariant("tftrt_fp16_bs8_count4"), queueDelayUs: 97_000 };
    const { outcome } = search(variant, { budget: budgetFor("quick", 2) });
    const truth = truthOf(serverOf(variant), slo, { seeds: [1, 2], measureS: 30 })!;
    expect(Math.abs(outcome.sloRate!.estimate / truth - 1)).toBeLessThan(0.03);
    const from = Number(/below about (\d+) requests\/s/.exec(outcome.note!)![1]);
    const holds = (ratePerS: number) =>
      longRunMissShare(serverOf(variant), { kind: "poisson", ratePerS }, slo, { seeds: [1], measureS: 30 }) <=
      0.05;
    expect(holds(from * 1.2)).toBe(true);
    expect(holds(from / 1.2)).toBe(false);
  });
});
