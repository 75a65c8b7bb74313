/** One sweep of this project's search in a random world. */
import { budgetFor, type BudgetPreset } from "../tuning/search/budget";
import { SimulatedRunner } from "../tuning/search/simulated-runner";
import { searchSloRate } from "../tuning/search/strategy";
import { trialGapS, type SweepAnswer } from "./search-answer";
import type { World } from "./search-worlds";

export function runOurs(world: World, preset: BudgetPreset): SweepAnswer {
  const runner = new SimulatedRunner({
    serverFor: (_variant, seed, startedS) => world.server(seed, startedS),
    worldSeed: world.seed,
    overheadMs: world.overheadMs,
    metricNoise: world.metricNoise,
    gapS: trialGapS,
    alsoReports: (fromS, toS) => world.reports(fromS, toS),
  });
  const search = searchSloRate({
    variant: world.variant,
    slo: world.slo,
    mode: "poisson",
    seed: 100 + world.seed,
    // In real time, as on a real server.
    budget: budgetFor(preset, 1),
    facts: world.facts,
    lawOf: world.lawOf,
  });
  const trials: { ratePerS: number; fromS: number; toS: number }[] = [];
  let nowS = 0;
  let step = search.next(null);
  while (!step.done) {
    const { shape, warmupS, measureS } = step.value;
    const result = runner.runNow(step.value);
    const ratePerS = shape.kind === "users" ? NaN : shape.ratePerS;
    trials.push({ ratePerS, fromS: nowS, toS: nowS + warmupS + measureS });
    nowS += warmupS + measureS + trialGapS;
    // A load beyond what can be offered makes an invalid trial, however often it is repeated.
    step = search.next(ratePerS > world.offerablePerS ? null : result);
  }
  const { sloRate, operatingRate, diagnosis } = step.value;
  return {
    estimate: sloRate?.estimate ?? null,
    interval: sloRate,
    promised: operatingRate,
    trials,
    measuredS: runner.loadedS,
    diagnosis,
  };
}
