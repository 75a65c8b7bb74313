import { describe, expect, it } from "vitest";
import { catalogue } from "../../../model-repo/catalogue";
import type { Variant } from "../../../model-repo/variant";
import { serviceLawFor } from "../../../serving-model/t4";
import { identify } from "../../../tuning/identify/identify";
import { type Observation, observationOf } from "../../../tuning/identify/observation";
import { nextProbe } from "../../../tuning/search/probe";
import { SimulatedRunner, type SimulatedRunnerOptions } from "../../../tuning/search/simulated-runner";
import { makeTrialSpec } from "../make";

const slo = { quantile: 0.95, boundMs: 100 };

/** The probe of a variant on the simulated T4. */
function probed(variant: Variant, options: Partial<SimulatedRunnerOptions> = {}): Observation[] {
  const runner = new SimulatedRunner({
    serverFor: (served) => ({ ...served, dynamicBatching: true, law: serviceLawFor(served) }),
    ...options,
  });
  const seen: Observation[] = [];
  for (let done = 0; ; done++) {
    const step = nextProbe(variant, slo, seen, done);
    if (step === null) return seen;
    const shape = {
      kind: "users",
      users: step.concurrency,
      spawnPerS: 1e6,
      thinkMinS: 0,
      thinkMaxS: 0,
    } as const;
    const spec = makeTrialSpec({
      variant,
      shape,
      seed: done + 1,
      warmupS: step.warmupS,
      measureS: step.measureS,
    });
    seen.push(observationOf(spec, runner.runNow(spec))!);
  }
}

describe("the probe", () => {
  it.each(catalogue.map((variant) => [variant.name, variant] as const))(
    "identifies the law of %s",
    (_name, variant) => {
      const truth = serviceLawFor(variant);
      const { law, overheadMs, residual, identified } = identify(probed(variant, { overheadMs: 1.5 }))!;
      expect(law.hostMsPerImage / truth.hostMsPerImage).toBeCloseTo(1, 1);
      const gpuMs = (at: typeof law, batch: number): number => at.gpuMsPerBatch + at.gpuMsPerImage * batch;
      for (const batch of [variant.maxBatchSize / 4, variant.maxBatchSize]) {
        expect(Math.abs(gpuMs(law, batch) / gpuMs(truth, batch) - 1)).toBeLessThan(0.02);
      }
      expect(residual).toBeLessThan(0.02);
      expect(Math.abs(overheadMs - 1.5)).toBeLessThan(0.6);
      const wireBound = variant.name.startsWith("tftrt_int8_bs");
      expect(identified).toEqual({ phases: true, batchSplit: true, ingress: wireBound });
      if (wireBound) expect(Math.abs(law.ingressRequestsPerS / 2300 - 1)).toBeLessThan(0.005);
      else expect(law.ingressRequestsPerS).toBe(Infinity);
    },
  );

  it("takes a few seconds of load", () => {
    for (const variant of catalogue) {
      const seen = probed(variant);
      expect(seen.length).toBeLessThanOrEqual(3);
      expect(seen.reduce((sum, { measureS }) => sum + measureS, 0)).toBeLessThan(7);
    }
  });

  it("does without GPU metrics, from the times of executions that ran alone", () => {
    const variant = catalogue[4]!;
    const { law, identified } = identify(probed(variant, { metrics: "no-gpu" }))!;
    expect(law).toMatchObject({
      hostMsPerImage: expect.closeTo(0.55, 2) as number,
      gpuMsPerBatch: expect.closeTo(3.5, 1) as number,
      gpuMsPerImage: expect.closeTo(0.33, 2) as number,
    });
    expect(identified.phases).toBe(true);
  });

  it("says that phases cannot be told apart when the server reports nothing", () => {
    for (const variant of [catalogue[0]!, catalogue[4]!]) {
      const { law, identified, notes } = identify(probed(variant, { metrics: "none" }))!;
      expect(identified.phases).toBe(false);
      expect(notes.join(" ")).toMatch(/response times alone/);
      // The sum of the phases is still about right.
      const truth = serviceLawFor(variant);
      const batch = variant.maxBatchSize / 4;
      const total = (at: typeof law): number =>
        at.gpuMsPerBatch + (at.gpuMsPerImage + at.hostMsPerImage) * batch;
      expect(Math.abs(total(law) / total(truth) - 1)).toBeLessThan(0.35);
    }
  });

  it("holds with noisy metrics", () => {
    for (let worldSeed = 0; worldSeed < 5; worldSeed++) {
      const { law, residual } = identify(probed(catalogue[2]!, { metricNoise: 0.02, worldSeed }))!;
      expect(Math.abs(law.hostMsPerImage / 0.55 - 1)).toBeLessThan(0.06);
      expect(residual).toBeGreaterThan(0);
    }
  });
});

describe("too little", () => {
  it("says nothing without observations", () => {
    expect(identify([])).toBeNull();
  });

  it("marks what one batch size cannot tell", () => {
    const variant = catalogue[0]!;
    const [first] = probed(variant);
    const { identified, law, notes } = identify([first!])!;
    expect(identified.batchSplit).toBe(false);
    expect(notes.join(" ")).toMatch(/per batch and per image are not told apart/);
    const ms = law.gpuMsPerBatch + law.gpuMsPerImage * first!.requestBatch!;
    expect(ms).toBeCloseTo(first!.inferMs!, 1);
  });

  it("is nothing when nothing was answered", () => {
    const runner = new SimulatedRunner({
      serverFor: (served) => ({ ...served, dynamicBatching: true, law: serviceLawFor(served) }),
    });
    const spec = makeTrialSpec({ variant: catalogue[0]! });
    const result = runner.runNow(spec);
    expect(
      observationOf(spec, {
        ...result,
        load: { ...result.load, response: { ...result.load.response, count: 0 } },
      }),
    ).toBeNull();
  });
});
