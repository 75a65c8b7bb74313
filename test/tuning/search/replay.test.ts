import { describe, expect, it } from "vitest";
import { catalogue } from "../../../model-repo/catalogue";
import { countedArrivals } from "../../../serving-model/arrival-source";
import { Random } from "../../../serving-model/random";
import { serviceLawFor } from "../../../serving-model/t4";
import { excessCeiling, excessOf } from "../../../tuning/search/quantile-excess";
import { arrivalsOf, plannedSendsUs } from "../../../tuning/search/replay";
import { SimulatedRunner } from "../../../tuning/search/simulated-runner";
import { fitSpeed } from "../../../tuning/search/speed-fit";
import { makeTrialResult, makeTrialSpec } from "../make";

const variant = catalogue[4]!;
const spec = makeTrialSpec({
  variant,
  shape: { kind: "poisson", ratePerS: 1280 },
  warmupS: 1.5,
  measureS: 6,
  seed: 42,
});
const runner = new SimulatedRunner({
  serverFor: (served) => ({ ...served, dynamicBatching: true, law: serviceLawFor(served) }),
});

describe("planned sends", () => {
  it("are the load generator's, of all workers, in order", () => {
    for (const workers of [1, 3]) {
      const sends = plannedSendsUs(spec, workers);
      expect(sends.length / (1280 * 7.5)).toBeCloseTo(1, 1);
      expect([...sends].every((us, i) => i === 0 || us >= sends[i - 1]!)).toBe(true);
      expect(sends.at(-1)!).toBeLessThan(7.5e6);
    }
    expect(plannedSendsUs(spec, 1)[5]).not.toBe(plannedSendsUs(spec, 3)[5]);
    expect(plannedSendsUs({ ...spec, shape: { kind: "constant", ratePerS: 10 } }, 2)[30]).toBeCloseTo(3e6, 3);
  });
});

describe("arrivals of a trial", () => {
  it("are replayed exactly when the reported counts agree", () => {
    const { load } = runner.runNow(spec);
    const known = arrivalsOf(spec, load);
    expect(known.exact).toBe(true);
    expect(known.draw(0)).toEqual({ kind: "listed", timesUs: plannedSendsUs(spec, 1) });
  });

  it("are drawn to agree with the reported counts when they do not", () => {
    const { load } = runner.runNow(spec);
    const known = arrivalsOf({ ...spec, seed: 43 }, load);
    expect(known.exact).toBe(false);
    const draw = known.draw(0);
    if (draw.kind !== "listed") throw new Error("an open loop has listed arrivals");
    const counts = new Array<number>(6).fill(0);
    for (const us of draw.timesUs) if (us >= 1.5e6) counts[Math.floor(us / 1e6 - 1.5)]!++;
    expect(counts).toEqual(load.intervals.map((interval) => interval.planned));
    expect([...draw.timesUs].every((us, i) => i === 0 || us >= draw.timesUs[i - 1]!)).toBe(true);
    expect(known.draw(1)).not.toEqual(draw);
  });

  it("fill every interval evenly", () => {
    const times = countedArrivals([1000, 0, 4000], 0.5, 0, 100, new Random(1));
    expect(times.length).toBe(5000);
    const quarter = times.filter((us) => us >= 1e6 && us < 1.125e6).length;
    expect(Math.abs(quarter - 1000)).toBeLessThan(120);
    expect(times.filter((us) => us >= 0.5e6 && us < 1e6)).toHaveLength(0);
  });
});

describe("speed fit", () => {
  const system = (speed: number) => {
    const law = serviceLawFor(variant);
    const slower = {
      hostMsPerImage: law.hostMsPerImage * speed,
      gpuMsPerBatch: law.gpuMsPerBatch * speed,
      gpuMsPerImage: law.gpuMsPerImage * speed,
      ingressRequestsPerS: law.ingressRequestsPerS / speed,
    };
    return { server: { ...variant, dynamicBatching: true, law: slower }, overheadMs: 0 };
  };

  it("finds by how much the model is wrong, from one short trial", () => {
    for (const wrong of [0.97, 1, 1.04]) {
      const fit = fitSpeed(system(wrong), spec, runner.runNow(spec), 0)!;
      // The model takes `wrong` times as long, so the server is that much faster.
      expect(fit.logSpeed).toBeCloseTo(Math.log(wrong), 2);
      expect(fit.slope).toBeGreaterThan(5);
    }
  });

  it("needs no exact arrivals", () => {
    const result = runner.runNow(spec);
    const fit = fitSpeed(system(1), { ...spec, seed: 77 }, result, 0)!;
    expect(Math.abs(fit.logSpeed)).toBeLessThan(0.02);
  });

  it("gives a limit only when the quantile was never answered", () => {
    const overloaded = { ...spec, shape: { kind: "poisson", ratePerS: 4000 } as const };
    const fit = fitSpeed(system(1), overloaded, runner.runNow(overloaded), 0)!;
    expect(fit).toMatchObject({ slope: 0, excess: excessCeiling });
  });

  it("is nothing without requests", () => {
    const total = { planned: 0, ok: 0, late: 0, failed: 0, shed: 0 };
    expect(fitSpeed(system(1), spec, makeTrialResult({ total }), 0)).toBeNull();
  });
});

describe("quantile excess", () => {
  const slo = { quantile: 0.9, boundMs: 100 };
  const total = { planned: 10, ok: 10, late: 0, failed: 0, shed: 0 };
  const bins: [number, number][] = [
    [50_000, 8],
    [200_000, 2],
  ];

  it("is the logarithm of quantile over bound, by nearest rank", () => {
    expect(excessOf(makeTrialResult({ total, responseHistogram: bins }).load, slo)).toBeCloseTo(
      Math.log(2),
      12,
    );
    expect(
      excessOf(makeTrialResult({ total, responseHistogram: bins }).load, { ...slo, quantile: 0.8 }),
    ).toBeCloseTo(-Math.log(2), 12);
  });

  it("counts failed and shed requests as never answered", () => {
    const failing = { planned: 12, ok: 8, late: 2, failed: 2, shed: 0 };
    expect(excessOf(makeTrialResult({ total: failing, responseHistogram: bins }).load, slo)).toBe(
      excessCeiling,
    );
    const shedding = { planned: 12, ok: 8, late: 4, failed: 0, shed: 2 };
    expect(excessOf(makeTrialResult({ total: shedding, responseHistogram: bins }).load, slo)).toBe(
      excessCeiling,
    );
  });
});
