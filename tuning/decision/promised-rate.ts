/** What a sweep promises about the variant that a server has now. Pure. */
import type { Variant } from "../../model-repo/variant";
import type { Result } from "../results/result-schema";
import type { Promised } from "../verify";

/**
 * The promise of the recommended variant.
 * @param served what the server has now
 * @returns why there is none: no winner, or something else is served
 */
export function promisedRate(result: Result, served: Variant): Promised | string {
  const winner = result.variants.find(({ name }) => name === result.recommendation.variant);
  if (!winner?.operatingRate) return "the sweep recommends no variant";
  const { settings } = winner;
  const differences = (["maxBatchSize", "instanceCount", "queueDelayUs"] as const)
    .filter((key) => settings[key] !== served[key])
    .map((key) => `${key} ${served[key]} instead of ${settings[key]}`);
  if (settings.artefact !== served.artefact.name)
    differences.unshift(`artefact ${served.artefact.name} instead of ${settings.artefact}`);
  if (settings.preferredBatchSizes.join() !== served.preferredBatchSizes.join())
    differences.push(
      `preferredBatchSizes [${served.preferredBatchSizes.join(", ")}] instead of [${settings.preferredBatchSizes.join(", ")}]`,
    );
  if (differences.length > 0)
    return (
      `${winner.name} was promised, but ${served.name} is served, with ${differences.join(", ")}: ` +
      `npm run apply, then pulumi up`
    );
  return { variant: served, slo: result.slo, ratePerS: winner.operatingRate, seed: result.seed };
}
