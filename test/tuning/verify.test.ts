import { describe, expect, it } from "vitest";
import { promisedRate } from "../../tuning/decision/promised-rate";
import { buildResult } from "../../tuning/results/build-result";
import type { TrialResult, TrialSpec } from "../../tuning/trial";
import { verifyRate } from "../../tuning/verify";
import { context, failedOutcome, outcomes } from "./fixtures/outcomes";
import { makeTrialResult, makeVariant } from "./make";

const promised = { variant: makeVariant("a"), slo: { quantile: 0.95, boundMs: 100 }, ratePerS: 100, seed: 7 };

/** A stack whose trials miss these shares, one after the other; null: the trial is invalid. */
async function verify(...missed: readonly (number | null)[]) {
  const specs: TrialSpec[] = [];
  const run = (spec: TrialSpec): Promise<TrialResult> => {
    const share = missed[specs.length] ?? null;
    specs.push(spec);
    if (share === null) return Promise.resolve(makeTrialResult({ valid: false, invalidReasons: ["late"] }));
    const planned = 100 * spec.measureS;
    const late = Math.round(share * planned);
    const intervals = Array.from({ length: spec.measureS }, (_, index) => {
      const missedThen =
        Math.round((late * (index + 1)) / spec.measureS) - Math.round((late * index) / spec.measureS);
      return {
        ...{ index, planned: 100, ok: 100 - missedThen, late: missedThen, failed: 0, shed: 0 },
        ...{ responseSumMs: 4000, answered: 100, inFlight: 4 },
      };
    });
    const total = { planned, ok: planned - late, late, failed: 0, shed: 0 };
    return Promise.resolve(makeTrialResult({ total, intervals }));
  };
  return { ...(await verifyRate(promised, { run })), specs };
}

describe("whether a promised rate is kept", () => {
  it("is clear after one trial where few or many requests miss the bound", async () => {
    const kept = await verify(0.005);
    expect([kept.verdict, kept.specs.length]).toEqual(["pass", 1]);
    const broken = await verify(0.3);
    expect([broken.verdict, broken.specs.length]).toEqual(["fail", 1]);
    expect(kept.specs[0]).toMatchObject({
      ...{ purpose: "verify", measureS: 30, shape: { kind: "poisson", ratePerS: 100 } },
      variant: promised.variant,
    });
  });

  it("takes longer trials, with other arrivals, where a short one does not decide", async () => {
    const { verdict, specs, trials } = await verify(0.05, 0.05, 0.05);
    expect(verdict).toBe("undecided");
    expect(specs.map(({ measureS }) => measureS)).toEqual([30, 60, 120]);
    expect(new Set(specs.map(({ seed }) => seed)).size).toBe(3);
    expect(trials).toHaveLength(3);
    expect((await verify(0.05, 0.005)).verdict).toBe("pass");
  });

  it("is not known from invalid trials, whose reasons are kept", async () => {
    const { verdict, trials, problems } = await verify(null, null, null);
    expect([verdict, trials, problems]).toEqual(["undecided", [], ["late", "late", "late"]]);
    expect((await verify(null, 0.005)).verdict).toBe("pass");
  });
});

describe("what a sweep promises", () => {
  const result = buildResult(outcomes, context);
  const winner = result.variants.find(({ name }) => name === result.recommendation.variant)!;
  const { artefact, ...settings } = winner.settings;
  const served = makeVariant(winner.name, {
    ...settings,
    artefact: { ...makeVariant("a").artefact, name: artefact },
  });

  it("is the operating rate of its winner, under its objective", () => {
    expect(promisedRate(result, served)).toEqual({
      ...{ variant: served, slo: result.slo, ratePerS: winner.operatingRate, seed: result.seed },
    });
  });

  it("is nothing about another variant: the differences are named with the way to it", () => {
    const other = { ...served, instanceCount: 1, preferredBatchSizes: [], name: "old" };
    expect(promisedRate(result, other)).toMatch(
      new RegExp(
        `^${winner.name} was promised, but old is served, with instanceCount 1 instead of ${settings.instanceCount}, ` +
          "preferredBatchSizes \\[\\] instead of \\[\\d+\\]: npm run apply, then pulumi up$",
      ),
    );
    const artefactless = { ...served, artefact: { ...served.artefact, name: "x" } };
    expect(promisedRate(result, artefactless)).toMatch(/with artefact x instead of/);
    expect(promisedRate(buildResult([failedOutcome("original", "slow")], context), served)).toBe(
      "the sweep recommends no variant",
    );
  });
});
