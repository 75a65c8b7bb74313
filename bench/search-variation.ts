/** How a simulated server's phase times vary: jitter, rare long ones, a wandering speed, and changes over the sweep's time. */
import type { PhaseVariation } from "../serving-model/node-model";
import { Random } from "../serving-model/random";

export interface VariationSettings {
  /** Coefficient of variation of every phase (lognormal). */
  readonly cv: number;
  /** Share of phases that take `tailFactor` times as long. */
  readonly tailShare: number;
  readonly tailFactor: number;
  /** Standard deviation of a slow wander of the speed (its memory is five seconds). */
  readonly wander: number;
}

/** Speed of a server over the sweep's time against its law: both phases, or the GPU's alone. */
export interface SpeedOverTime {
  readonly phases: "both" | "gpu";
  at(sweepS: number): number;
}

const wanderMemoryUs = 5e6;

/** A variation that starts anew for every run; the same seed gives the same one. `speed` is at a moment of the run, microseconds. */
export function variationOf(
  seed: number,
  { cv, tailShare, tailFactor, wander }: VariationSettings,
  phases: SpeedOverTime["phases"],
  speed: (runUs: number) => number,
): PhaseVariation {
  const random = new Random(seed * 131 + 7);
  const sigma = Math.sqrt(Math.log1p(cv ** 2));
  let level = random.nextNormal();
  let atUs = 0;
  return (nominalUs, phase, startUs) => {
    let factor = Math.exp(sigma * random.nextNormal() - sigma ** 2 / 2);
    if (tailShare > 0 && random.nextUnit() < tailShare) factor *= tailFactor;
    if (wander > 0) {
      // Ornstein-Uhlenbeck: exact over any step.
      const keep = Math.exp(-Math.max(0, startUs - atUs) / wanderMemoryUs);
      level = level * keep + Math.sqrt(1 - keep ** 2) * random.nextNormal();
      atUs = Math.max(atUs, startUs);
      factor *= Math.exp(wander * level);
    }
    if (phases === "both" || phase === "gpu") factor /= speed(startUs);
    return nominalUs * factor;
  };
}
