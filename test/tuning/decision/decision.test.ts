import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { planFor, type Demand } from "../../../tuning/decision/decide";
import { kneeRate } from "../../../tuning/decision/knee";
import { renderPlans } from "../../../tuning/decision/plan-table";
import { recommendationYaml, settingsFor, winnerYaml } from "../../../tuning/decision/recommendation";
import { pulumiCommands, stackYaml, variantSetting } from "../../../tuning/decision/stack-settings";
import { variantFromObject } from "../../../model-repo/variant-from-object";
import { buildResult } from "../../../tuning/results/build-result";
import type { ResultVariant } from "../../../tuning/results/result-schema";
import { context, failedOutcome, outcomes } from "../fixtures/outcomes";

const result = buildResult(outcomes, context);
const demand: Demand = { loadPerS: 5000, spareReplicas: 1, margin: 0.1, usdPerReplicaHour: 0.73 };
const plans = planFor(result, demand);
const [best] = plans;
const winner = result.variants.find((variant) => variant.name === "tftrt_int8_bs16_count4");
if (!best || !winner) throw new Error("no fixture");

describe("planFor", () => {
  it("counts replicas by the operating rate less the margin, and adds the spare ones", () => {
    // 5000 / (2274 x 0.972 x 0.9) = 2.51
    expect(best.variant.name).toBe("tftrt_int8_bs16_count4");
    expect(best.ratePerReplicaPerS).toBeCloseTo(2274 * 0.972 * 0.9, 6);
    expect(best.replicas).toBe(4);
    expect(best.loadPerReplicaPerS).toEqual({ all: 1250, withoutSpare: 5000 / 3 });
  });

  it("gives the cost of all replicas, the idle ones too", () => {
    expect(best.cost?.usdPerH).toBeCloseTo(4 * 0.73, 9);
    expect(best.cost?.usdPerYear).toBeCloseTo(4 * 0.73 * 8760, 6);
    expect(best.cost?.usdPerMillion).toBeCloseTo((4 * 0.73 * 1e6) / (5000 * 3600), 9);
    expect(planFor(result, { ...demand, usdPerReplicaHour: null })[0]?.cost).toBeNull();
  });

  it("never loads a replica above its rate, even without the spare ones, and wastes none", () => {
    const load = fc.double({ min: 0.1, max: 1e6, noNaN: true });
    fc.assert(
      fc.property(
        load,
        fc.integer({ min: 0, max: 5 }),
        fc.double({ min: 0, max: 0.9, noNaN: true }),
        (rate, spare, margin) => {
          const all = planFor(result, { ...demand, loadPerS: rate, spareReplicas: spare, margin });
          expect(all).toHaveLength(7);
          for (const plan of all) {
            expect(plan.loadPerReplicaPerS.withoutSpare).toBeLessThanOrEqual(
              plan.ratePerReplicaPerS * (1 + 1e-6),
            );
            const oneFewer = plan.replicas - spare - 1;
            if (oneFewer > 0) expect(rate / oneFewer).toBeGreaterThan(plan.ratePerReplicaPerS);
          }
          expect(all.map((plan) => plan.replicas)).toEqual(
            all.map((plan) => plan.replicas).sort((a, b) => a - b),
          );
        },
      ),
    );
  });

  it("leaves out variants that held no rate", () => {
    const none = buildResult([failedOutcome("original", "too slow")], context);
    expect(planFor(none, demand)).toEqual([]);
    expect(renderPlans(none, demand, [])).toContain("nothing to plan with");
  });

  it("names figures out of range", () => {
    expect(() => planFor(result, { ...demand, margin: 1 })).toThrow("margin is 1");
    expect(() => planFor(result, { ...demand, loadPerS: 0 })).toThrow("load is 0");
    expect(() => planFor(result, { ...demand, spareReplicas: 0.5 })).toThrow("spare is 0.5");
  });
});

describe("autoscaling", () => {
  const withTrials = (points: readonly (readonly [number, number])[], variant = winner): ResultVariant => {
    const trial = variant.trials[5];
    if (!trial) throw new Error("no fixture");
    return {
      ...variant,
      modelCurve: null,
      trials: points.map(([ratePerS, quantileMs]) => ({ ...trial, purpose: "locate", ratePerS, quantileMs })),
    };
  };

  it("finds the corner of a curve", () => {
    const corner = withTrials([
      [200, 30],
      [600, 31],
      [1000, 32],
      [1400, 33],
      [1800, 60],
      [2250, 99],
      [2600, 900],
    ]);
    expect(kneeRate(corner)).toBe(1400);
  });

  it("finds none on a straight line, in too few trials, or without an SLO rate", () => {
    expect(
      kneeRate(
        withTrials([
          [500, 20],
          [1000, 40],
          [1500, 60],
          [2000, 80],
        ]),
      ),
    ).toBeNull();
    expect(
      kneeRate(
        withTrials([
          [500, 20],
          [1000, 21],
          [2000, 80],
        ]),
      ),
    ).toBeNull();
    expect(kneeRate({ ...winner, sloRate: null })).toBeNull();
  });

  it("scales at the knee when that comes before 80 % of the SLO rate", () => {
    const early = withTrials([
      [200, 30],
      [600, 31],
      [1000, 32],
      [1400, 60],
      [1800, 80],
      [2250, 99],
    ]);
    const plan = planFor({ ...result, variants: [early] }, demand)[0];
    expect(plan?.autoscale).toEqual({ ratePerS: 1000, reason: expect.stringContaining("knee") as string });
    expect(best.autoscale).toEqual({
      ratePerS: Math.floor(2274 * 0.8),
      reason: expect.stringContaining("80 %") as string,
    });
  });
});

describe("stack settings", () => {
  it("names a catalogue variant, and spells out one that the catalogue does not have", () => {
    expect(variantSetting(winner)).toBe("tftrt_int8_bs16_count4");
    const tuned = { ...winner, settings: { ...winner.settings, instanceCount: 3 } };
    expect(variantSetting(tuned)).toMatchObject({ name: winner.name, instanceCount: 3 });
    const unnamed = { ...tuned, name: "tftrt_int8_bs16_count3" };
    expect(variantFromObject(variantSetting(unnamed))).toMatchObject({
      name: "tftrt_int8_bs16_count3",
      artefact: { name: winner.settings.artefact },
      maxBatchSize: 16,
      instanceCount: 3,
    });
  });

  it("are the same as YAML and as commands", () => {
    const settings = { variant: { name: "a", preferredBatchSizes: [4, 8] }, replicas: 2 };
    expect(parse(stackYaml("p", settings))).toEqual({
      config: { "p:variant": settings.variant, "p:replicas": 2 },
    });
    expect(pulumiCommands(settings).split("\n")).toEqual([
      "pulumi config set --path variant.name a",
      "pulumi config set --path 'variant.preferredBatchSizes[0]' 4",
      "pulumi config set --path 'variant.preferredBatchSizes[1]' 8",
      "pulumi config set replicas 2",
      "pulumi up",
    ]);
  });

  it("let no name become a command or another key", () => {
    const evil = `a; rm -rf / #\n'$(x)': b`;
    expect(pulumiCommands({ variant: evil })).toBe(
      `pulumi config set variant 'a; rm -rf / #\n'\\''$(x)'\\'': b'\npulumi up`,
    );
    expect(parse(stackYaml("p", { variant: evil }))).toEqual({ config: { "p:variant": evil } });
  });
});

describe("recommendation.yaml", () => {
  it("is stack configuration with its reasons as comments", () => {
    const text = recommendationYaml(result, demand, best);
    expect(parse(text)).toEqual({
      config: {
        "triton-slo-stack:variant": "tftrt_int8_bs16_count4",
        "triton-slo-stack:replicas": 4,
        "triton-slo-stack:autoscaleRatePerS": 1819,
      },
    });
    expect(text).toContain("# SIMULATED T4: measure on the real GPU before relying on it");
    expect(text).toContain(
      "# replicas: 4, of which 1 spare; each gets 1,250/s, or 1,667/s when the spare ones are lost",
    );
    expect(text).toContain("# cost: $2.92 an hour, $25,579.20 a year, $0.162 per million inferences");
    expect(settingsFor(best)).toMatchObject({ replicas: 4 });
  });

  it("of a sweep without a load has the winner and the autoscaler's target", () => {
    const text = winnerYaml(result)!;
    expect(parse(text)).toEqual({
      config: {
        "triton-slo-stack:variant": "tftrt_int8_bs16_count4",
        "triton-slo-stack:autoscaleRatePerS": 1819,
      },
    });
    expect(text).toContain(
      "# autoscaleRatePerS, for the case that autoscale is on: 80 % of the SLO rate, since a new replica takes minutes",
    );
    expect(winnerYaml({ ...result, recommendation: { ...result.recommendation, variant: null } })).toBeNull();
  });

  it("keeps hostile texts in their comments", () => {
    const evil = { ...result, targetDescription: "x\nconfig:\n  a: b" };
    expect(
      Object.keys((parse(recommendationYaml(evil, demand, best)) as { config: object }).config),
    ).toHaveLength(3);
  });
});

it("renderPlans shows all plans and how to apply the first", () => {
  const text = renderPlans(result, demand, plans);
  expect(text).toContain("5,000 requests/s within p95 ≤ 100 ms, 1 spare, 10 % margin [simulated T4]");
  expect(text).toMatch(/tftrt_int8_bs16_count4 +4 +1,250 +1,667 +1,989 +\$25,579 +\$0\.162/);
  expect(text).toMatch(/original +25 /);
  expect(text).toContain("  pulumi config set replicas 4");
});
