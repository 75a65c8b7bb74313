/**
 * A finished sweep judged again from its recorded trials, without a server: the search asks for the same trials when it is fed the same
 * results, so it comes to the same answer, or to another one if the program's judgement changed since. Pure.
 */
import { serviceLawFor } from "../../serving-model/t4";
import type { VariantOutcome } from "../outcome";
import { budgetFor } from "../search/budget";
import type { LoadMode } from "../search/load-axis";
import { leaderOf } from "../search/race";
import { searchSloRate } from "../search/strategy";
import type { TrialSpec } from "../trial";
import { canonicalJson } from "./canonical";
import type { Manifest } from "./manifest";
import type { PointRecord } from "./point-log";

export interface Replayed {
  readonly name: string;
  /** Null: the search asked for a trial that was not recorded. */
  readonly outcome: VariantOutcome | null;
  /** The trial that is missing, in words; null when none is. */
  readonly missing: string | null;
}

export function replayRecorded(manifest: Manifest, records: readonly PointRecord[]): Replayed[] {
  const byTrial = new Map<string, PointRecord[]>();
  for (const record of records) {
    const key = keyOf(record.spec);
    byTrial.set(key, [...(byTrial.get(key) ?? []), record]);
  }
  const { facts, options, slo, seed } = manifest;
  const outcomes: VariantOutcome[] = [];
  return manifest.variants.map(({ variant, timeDilation }): Replayed => {
    const search = searchSloRate({
      variant,
      slo,
      mode: manifest.load as LoadMode,
      seed,
      budget: budgetFor(options["effort"] === "thorough" ? "thorough" : "quick", timeDilation ?? 1),
      facts: facts ?? { wireCeilingPerS: null, clientCeilingPerS: null },
      leader: options["race"] === true ? leaderOf(outcomes) : null,
      goalRatePerS: typeof options["goalRatePerS"] === "number" ? options["goalRatePerS"] : null,
      lawOf: manifest.target.simulated ? serviceLawFor : undefined,
    });
    let step = search.next(null);
    while (!step.done) {
      const known = byTrial.get(keyOf(step.value));
      if (known === undefined) return { name: variant.name, outcome: null, missing: describe(step.value) };
      // What stayed invalid was fed to the search as nothing.
      step = search.next(known.find(({ result }) => result.load.valid)?.result ?? null);
    }
    outcomes.push(step.value);
    return { name: variant.name, outcome: step.value, missing: null };
  });
}

/** What decides which trial it is. */
function keyOf({ variant, shape, seed, warmupS, measureS }: TrialSpec): string {
  return canonicalJson({ name: variant.name, shape, seed, warmupS, measureS });
}

function describe({ shape, measureS, purpose }: TrialSpec): string {
  const load = shape.kind === "users" ? `${shape.users} users` : `${shape.ratePerS.toFixed(2)} requests/s`;
  return `${purpose}, ${load}, ${measureS} s`;
}
