/** A process that scores sweeps: it is sent a seed and answers with the scores of all strategies there. */
import type { BudgetPreset } from "../tuning/search/budget";
import { scoreOf, type Score, type SweepAnswer } from "./search-answer";
import { baselines, runBaseline } from "./search-baselines";
import { TruthCache } from "./search-cache";
import { runOurs } from "./search-ours";
import { randomWorld } from "./search-worlds";

/** What is scored, and kept, apart: our search, and what people do today, which stays the same when our search is changed. */
export type Part = "ours" | "others";

export interface Job {
  readonly seed: number;
  readonly parts: readonly Part[];
  readonly preset: BudgetPreset;
  /** Truths of this seed that are known. */
  readonly truths: readonly (readonly [string, unknown])[];
}

/** A part of a seed that is finished. */
export interface Sweep {
  readonly seed: number;
  readonly scores: readonly Score[];
  /** Processor time of the strategies, without scoring, milliseconds. */
  readonly cpuMs: number;
}

export interface Done {
  readonly sweeps: readonly (readonly [Part, Sweep])[];
  readonly added: readonly (readonly [string, unknown])[];
}

export const oursName = "this project";

export function scoreSeed({ seed, parts, preset, truths }: Job): Done {
  const cache = new TruthCache(null, "");
  for (const [key, value] of truths) cache.put(key, value);
  cache.takeAdded();
  const world = randomWorld(seed);
  const sweepOf = (part: Part): Sweep => {
    const before = process.cpuUsage();
    const answers: [string, SweepAnswer][] =
      part === "ours"
        ? [[oursName, runOurs(world, preset)]]
        : baselines.map((baseline) => [baseline.name, runBaseline(baseline, world)]);
    const cpuMs = process.cpuUsage(before).user / 1000;
    return { seed, scores: answers.map(([name, answer]) => scoreOf(name, answer, world, cache)), cpuMs };
  };
  return { sweeps: parts.map((part) => [part, sweepOf(part)]), added: cache.takeAdded() };
}

process.on("message", (job: Job) => {
  // With a callback: a parent that is gone meanwhile is no error of this process.
  process.send?.(scoreSeed(job), undefined, undefined, () => undefined);
});
// The parent is gone.
process.on("disconnect", () => process.exit());
