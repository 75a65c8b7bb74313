/** A process that scores sweeps: it is sent a seed and answers with the scores of all strategies there. */
import type { BudgetPreset } from "../tuning/search/budget";
import { scoreOf, type Score } from "./search-answer";
import { baselines, runBaseline } from "./search-baselines";
import { runOurs } from "./search-ours";
import { TruthCache } from "./search-truth";
import { randomWorld } from "./search-worlds";

export interface Job {
  readonly seed: number;
  readonly preset: BudgetPreset;
  /** Truths of this seed that are known. */
  readonly truths: readonly (readonly [string, unknown])[];
}

export interface Done {
  readonly seed: number;
  readonly scores: readonly Score[];
  readonly added: readonly (readonly [string, unknown])[];
  /** Processor time of our own search, milliseconds. */
  readonly oursCpuMs: number;
}

export const oursName = "this project";

export function scoreSeed({ seed, preset, truths }: Job): Done {
  const cache = new TruthCache(null, "");
  for (const [key, value] of truths) cache.put(key, value);
  cache.takeAdded();
  const world = randomWorld(seed);
  const before = process.cpuUsage();
  const ours = runOurs(world, preset);
  const oursCpuMs = process.cpuUsage(before).user / 1000;
  const scores = [
    scoreOf(oursName, ours, world, cache),
    ...baselines.map((baseline) => scoreOf(baseline.name, runBaseline(baseline, world), world, cache)),
  ];
  return { seed, scores, added: cache.takeAdded(), oursCpuMs };
}

process.on("message", (job: Job) => {
  // With a callback: a parent that is gone meanwhile is no error of this process.
  process.send?.(scoreSeed(job), undefined, undefined, () => undefined);
});
// The parent is gone.
process.on("disconnect", () => process.exit());
