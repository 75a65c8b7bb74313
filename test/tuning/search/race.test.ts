import { describe, expect, it } from "vitest";
import { findVariant } from "../../../model-repo/catalogue";
import { budgetFor } from "../../../tuning/search/budget";
import { leaderOf } from "../../../tuning/search/race";
import { serviceLawFor } from "../../../serving-model/t4";
import { lawToJson, type Manifest } from "../../../tuning/results/manifest";
import type { PointRecord } from "../../../tuning/results/point-log";
import { replayRecorded } from "../../../tuning/results/replay-recorded";
import { makeOutcome } from "../make";
import { manifest } from "../results/manifest-fixture";
import { search } from "./virtual-search";

const original = findVariant("original");
const budget = budgetFor("thorough", 1);
const full = search(original, { budget });
const held = full.outcome.sloRate!;
const against = (atLeastPerS: number) =>
  search(original, { budget, leader: { variantName: "faster", atLeastPerS } });

describe("a variant that is clearly worse than the leader", () => {
  const raced = against(1.5 * held.estimate);

  it("is given up early, with a one-sided answer that says why", () => {
    const { racedOut, note, sloRate } = raced.outcome;
    expect(raced.specs.length).toBeLessThan(full.specs.length);
    expect(raced.loadedS).toBeLessThan(0.75 * full.loadedS);
    expect(racedOut).toMatchObject({
      leader: "faster",
      leaderAtLeastPerS: 1.5 * held.estimate,
      level: 0.999,
    });
    expect(racedOut!.atMostPerS).toBeGreaterThan(held.low);
    expect(racedOut!.atMostPerS).toBeLessThan(1.5 * held.estimate);
    expect(note).toContain("holds at most");
    // What it has is as true as before, only wider.
    expect(sloRate!.low).toBeLessThan(held.high);
    expect(sloRate!.high).toBeGreaterThan(held.low);
    expect(raced.outcome.diagnosis.cause).toBe(full.outcome.diagnosis.cause);
  });

  it("that would get no more trials anyway is not called given up", () => {
    const mostTrials = raced.specs.filter(({ purpose }) => purpose !== "probe").length;
    const leader = { variantName: "faster", atLeastPerS: 1.5 * held.estimate };
    const { outcome, specs } = search(original, { budget: { ...budget, mostTrials }, leader });
    expect(specs).toEqual(raced.specs);
    expect(outcome.racedOut).toBeUndefined();
  });

  it("gets the same trials as without a race until then", () => {
    expect(raced.specs).toEqual(full.specs.slice(0, raced.specs.length));
  });
});

describe("a variant that may be as good as the leader", () => {
  it.each([0.5, 0.95, 1])("is searched to the end when the leader holds %s of its rate", (share) => {
    const { outcome, specs } = against(share * held.estimate);
    expect(outcome.racedOut).toBeUndefined();
    expect(specs).toEqual(full.specs);
  });
});

describe("the leader", () => {
  it("is the one whose rate is certain to be the highest", () => {
    const rated = (name: string, low: number, high: number) => ({
      ...makeOutcome(name),
      sloRate: { estimate: (low + high) / 2, low, high, level: 0.95 },
    });
    const none = { ...makeOutcome("none"), sloRate: null };
    expect(leaderOf([none])).toBeNull();
    expect(leaderOf([rated("wide", 80, 300), none, rated("sure", 120, 130)])).toEqual({
      variantName: "sure",
      atLeastPerS: 120,
    });
  });
});

describe("a sweep with a race, judged again from its recorded trials", () => {
  it("asks for no trial that was saved", () => {
    const variants = [findVariant("tftrt_int8"), original];
    const records: PointRecord[] = [];
    const quick = budgetFor("thorough", 1);
    let first = null;
    for (const variant of variants) {
      const leader = first === null ? null : leaderOf([first]);
      const { outcome } = search(variant, { seed: 1, budget: quick, leader }, {}, (spec, result) => {
        records.push({
          schemaVersion: 1,
          key: "",
          attempt: 1,
          finishedAt: "",
          timeDilation: 1,
          spec,
          result,
        });
        return result;
      });
      first ??= outcome;
    }
    const about = (race: boolean): Manifest => ({
      ...manifest,
      seed: 1,
      load: "poisson",
      target: { ...manifest.target, simulated: true },
      options: { effort: "thorough", race },
      variants: variants.map((variant) => ({
        variant: { ...variant, preferredBatchSizes: [...variant.preferredBatchSizes] },
        modelHash: null,
        law: lawToJson(serviceLawFor(variant)),
        timeDilation: 1,
      })),
    });
    const [, again] = replayRecorded(about(true), records);
    expect(again!.missing).toBeNull();
    expect(again!.outcome!.racedOut!.leader).toBe("tftrt_int8");
    // Without the race it would have gone on.
    expect(replayRecorded(about(false), records)[1]!.missing).toContain("requests/s");
  });
});
