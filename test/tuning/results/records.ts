/** Point records for the tests of this folder. */
import { sha256Hex } from "../../../tuning/results/canonical";
import type { PointRecord } from "../../../tuning/results/point-log";
import { loadResult, outcomes, slo, variants } from "../fixtures/outcomes";

const [firstVariant] = variants;
if (!firstVariant) throw new Error("no variants in the fixtures");

export function record(name: string, change: { valid?: boolean; attempt?: number } = {}): PointRecord {
  const load = loadResult(240.5, 8, 93.25, 0.041, name);
  const trial = outcomes[0]?.trials[0];
  if (!trial || !firstVariant) throw new Error("no trials in the fixtures");
  return {
    schemaVersion: 1,
    key: sha256Hex(name),
    attempt: change.attempt ?? 1,
    finishedAt: "2026-03-02T09:31:00.000Z",
    timeDilation: 1.5,
    spec: {
      variant: firstVariant,
      shape: { kind: "poisson", ratePerS: 240.5 },
      slo,
      seed: 3,
      warmupS: 2,
      measureS: 8,
      purpose: "locate",
    },
    result: { load: { ...load, valid: change.valid ?? true }, server: trial.result.server },
  };
}
