/**
 * Scores the search on random simulated servers with known truth: error of the SLO rate, coverage of its interval, false passes of
 * the operating rate (it lies above the truth), load spent. In virtual time.
 * Run: npx tsx bench/search.ts [--sweeps 120] [--preset quick|thorough] [--dilation 2] [--from 0]
 */
import { parseArgs } from "node:util";
import { budgetFor, type BudgetPreset } from "../tuning/search/budget";
import { SimulatedRunner } from "../tuning/search/simulated-runner";
import { searchSloRate } from "../tuning/search/strategy";
import { randomWorld, type World, worldKinds, worldTruth } from "./search-worlds";

interface Score {
  readonly kind: string;
  /** estimate / truth - 1; null when exactly one of them does not exist. */
  readonly error: number | null;
  readonly covered: boolean;
  readonly falsePass: boolean;
  readonly halfWidth: number;
  readonly loadedS: number;
  readonly trials: number;
  readonly cpuMs: number;
}

const { values } = parseArgs({
  options: {
    sweeps: { type: "string", default: "120" },
    preset: { type: "string", default: "thorough" },
    dilation: { type: "string", default: "2" },
    from: { type: "string", default: "0" },
  },
});
if (values.preset !== "quick" && values.preset !== "thorough") {
  throw new Error(`--preset ${values.preset} is none; use quick or thorough.`);
}
const preset: BudgetPreset = values.preset;

function score(world: World): Score | null {
  const truth = worldTruth(world);
  const runner = new SimulatedRunner({
    serverFor: (_variant, seed) => world.server(seed),
    worldSeed: world.seed,
    overheadMs: world.overheadMs,
    metricNoise: world.metricNoise,
  });
  const before = process.cpuUsage();
  const search = searchSloRate({
    variant: world.variant,
    slo: world.slo,
    mode: "poisson",
    seed: 100 + world.seed,
    budget: budgetFor(preset, Number(values.dilation)),
    facts: { wireCeilingPerS: null, clientCeilingPerS: null },
  });
  let step = search.next(null);
  while (!step.done) step = search.next(runner.runNow(step.value));
  const { sloRate, operatingRate } = step.value;
  if (truth === null && sloRate === null) return null;
  const known = truth !== null && sloRate !== null;
  return {
    kind: world.kind,
    error: known ? sloRate.estimate / truth - 1 : null,
    covered: known && sloRate.low <= truth && truth <= sloRate.high,
    falsePass: operatingRate !== null && operatingRate > (truth ?? 0),
    halfWidth: known ? (sloRate.high / sloRate.low - 1) / 2 : NaN,
    loadedS: runner.loadedS,
    trials: runner.trials,
    cpuMs: process.cpuUsage(before).user / 1000,
  };
}

const from = Number(values.from);
const scores: Score[] = [];
for (let seed = from; seed < from + Number(values.sweeps); seed++) {
  const scored = score(randomWorld(seed));
  if (scored !== null) scores.push(scored);
}

const percent = (value: number): string => `${(100 * value).toFixed(2)} %`.padStart(9);
const mean = (list: readonly number[]): number => list.reduce((sum, value) => sum + value, 0) / list.length;
const quantile = (list: readonly number[], q: number): number =>
  [...list].sort((a, b) => a - b)[Math.min(list.length - 1, Math.floor(q * list.length))] ?? NaN;

console.log(
  "kind         sweeps  median |error|   p90 |error|   covered  false pass  half width  load s  trials  cpu ms",
);
for (const kind of [...worldKinds, "all"]) {
  const list = scores.filter((scored) => kind === "all" || scored.kind === kind);
  if (list.length === 0) continue;
  const errors = list.flatMap(({ error }) => (error === null ? [] : [Math.abs(error)]));
  const share = (test: (scored: Score) => boolean): number => list.filter(test).length / list.length;
  console.log(
    kind.padEnd(12),
    String(list.length).padStart(6),
    percent(quantile(errors, 0.5)).padStart(15),
    percent(quantile(errors, 0.9)).padStart(13),
    percent(share(({ covered }) => covered)),
    percent(share(({ falsePass }) => falsePass)).padStart(11),
    percent(quantile(list.map(({ halfWidth }) => halfWidth).filter(Number.isFinite), 0.5)).padStart(11),
    mean(list.map(({ loadedS }) => loadedS))
      .toFixed(0)
      .padStart(7),
    mean(list.map(({ trials }) => trials))
      .toFixed(1)
      .padStart(7),
    mean(list.map(({ cpuMs }) => cpuMs))
      .toFixed(0)
      .padStart(7),
  );
}
