import { describe, expect, it } from "vitest";
import { modelCurve } from "../../../tuning/results/model-curve";
import { context, outcomes, slo, variants } from "../fixtures/outcomes";

const [outcome] = outcomes;
const [variant] = variants;
if (!outcome?.sloRate || !variant) throw new Error("no fixture");
const { estimate } = outcome.sloRate;

describe("modelCurve", () => {
  const curve = modelCurve(outcome, variant, "poisson", slo) ?? [];

  it("meets the bound about at the SLO rate and rises towards it", () => {
    const at = curve.find((point) => Math.abs(point.ratePerS / estimate - 1) < 1e-9);
    // The fixture's rate is that of a long run; one short window near the limit is noisy.
    expect(at?.quantileMs).toBeGreaterThan(70);
    expect(at?.quantileMs).toBeLessThan(140);
    const upper = curve.filter((point) => point.ratePerS > estimate / 2).map((point) => point.quantileMs);
    expect(upper).toEqual([...upper].sort((a, b) => a - b));
  });

  it("has more GPU busy and larger batches at higher rates", () => {
    for (const [index, point] of curve.slice(1).entries()) {
      expect(point.gpuBusy).toBeGreaterThan((curve[index]?.gpuBusy ?? NaN) - 0.02);
      expect(point.meanBatch).toBeGreaterThan((curve[index]?.meanBatch ?? NaN) * 0.95);
    }
  });

  it("adds what the path outside the node takes", () => {
    const slower = modelCurve({ ...outcome, fittedOverheadMs: 7 }, variant, "poisson", slo) ?? [];
    for (const [index, point] of slower.entries())
      expect(point.quantileMs).toBeCloseTo((curve[index]?.quantileMs ?? NaN) + 7, 6);
  });

  it("gives the throughput of users", () => {
    const users = modelCurve({ ...outcome }, variant, "users", slo) ?? [];
    const rates = users.map((point) => point.ratePerS);
    expect(rates).toEqual([...rates].sort((a, b) => a - b));
    expect(rates.at(-1)).toBeGreaterThan(estimate * 0.95);
    expect(rates.at(-1)).toBeLessThan(estimate * 1.15);
  });

  it("is null without a fitted law or a rate, and the same every time", () => {
    expect(modelCurve({ ...outcome, fittedLaw: null }, variant, "poisson", slo)).toBeNull();
    expect(modelCurve({ ...outcome, sloRate: null }, variant, "poisson", slo)).toBeNull();
    expect(modelCurve({ ...outcome }, variant, context.load, slo)).toEqual(curve);
  });
});
