/** The point log as the sweep sees it: trials in, results out, keys inside. */
import type { Variant } from "../../model-repo/variant";
import type { TrialStore } from "../sweep";
import type { PointLog } from "./point-log";
import { trialKey, type MeasuredSystem } from "./trial-key";

/**
 * @param systemOf what is measured with this variant, for the key
 * @param timeDilationOf wall seconds per model second used for this variant, recorded with each point
 */
export function pointLogStore(
  log: PointLog,
  systemOf: (variant: Variant) => MeasuredSystem,
  timeDilationOf: (variant: Variant) => number,
): TrialStore {
  return {
    find: (spec) => log.find(trialKey(spec, systemOf(spec.variant)))?.result ?? null,
    append: async (spec, result) => {
      const key = trialKey(spec, systemOf(spec.variant));
      log.append({
        schemaVersion: 1,
        key,
        attempt: log.attempts(key) + 1,
        finishedAt: new Date().toISOString(),
        timeDilation: timeDilationOf(spec.variant),
        spec,
        result,
      });
    },
  };
}
