/**
 * Random servers with known truth, for scoring searches: service laws, settings, jitter, heavy tails, drift and throttling drawn
 * from a seed. Everything here is in virtual time.
 */
import { catalogue } from "../model-repo/catalogue";
import type { Variant } from "../model-repo/variant";
import type { PhaseVariation } from "../serving-model/node-model";
import { Random } from "../serving-model/random";
import type { ServiceLaw } from "../serving-model/service-law";
import type { SimulatedServer } from "../serving-model/simulate";
import { truthOf } from "../serving-model/truth";
import type { Slo } from "../tuning/trial";

export type WorldKind = "exact" | "jitter" | "heavy-tail" | "wander";

export interface World {
  readonly seed: number;
  readonly kind: WorldKind;
  readonly variant: Variant;
  readonly law: ServiceLaw;
  readonly slo: Slo;
  readonly overheadMs: number;
  readonly metricNoise: number;
  /** A fresh server; the same seed gives the same variation. */
  server(seed: number): SimulatedServer;
}

export const worldKinds: readonly WorldKind[] = ["exact", "jitter", "heavy-tail", "wander"];

export function randomWorld(seed: number, kind?: WorldKind): World {
  const random = new Random(seed * 7919 + 13);
  const pick = <T>(values: readonly T[]): T => values[Math.floor(random.nextUnit() * values.length)]!;
  const logUniform = (low: number, high: number): number => low * (high / low) ** random.nextUnit();
  const worldKind = kind ?? worldKinds[seed % worldKinds.length]!;
  const maxBatchSize = pick([1, 4, 8, 16, 32, 64]);
  const law: ServiceLaw = {
    hostMsPerImage: logUniform(0.05, 1.5),
    gpuMsPerBatch: logUniform(0.5, 6),
    gpuMsPerImage: logUniform(0.15, 3),
    ingressRequestsPerS: random.nextUnit() < 0.3 ? logUniform(200, 2500) : Infinity,
  };
  const variant: Variant = {
    ...catalogue[0]!,
    name: `world_${seed}`,
    maxBatchSize,
    instanceCount: pick([1, 1, 2, 4]),
    queueDelayUs: pick([1000, 5000, 20_000]),
    preferredBatchSizes: random.nextUnit() < 0.7 ? [maxBatchSize] : [],
    published: null,
  };
  const cv = worldKind === "jitter" ? logUniform(0.05, 0.4) : worldKind === "heavy-tail" ? 0.1 : 0.03;
  const tailShare = worldKind === "heavy-tail" ? logUniform(0.002, 0.02) : 0;
  const tailFactor = logUniform(3, 8);
  const wander = worldKind === "wander" ? logUniform(0.01, 0.05) : 0;
  return {
    seed,
    kind: worldKind,
    variant,
    law,
    slo: { quantile: pick([0.95, 0.95, 0.99]), boundMs: pick([60, 100, 200]) },
    overheadMs: 4 * random.nextUnit(),
    metricNoise: 0.01,
    server: (runSeed) => ({
      ...variant,
      dynamicBatching: true,
      law,
      variation:
        worldKind === "exact" ? undefined : variationOf(runSeed, { cv, tailShare, tailFactor, wander }),
    }),
  };
}

interface VariationSettings {
  /** Coefficient of variation of every phase (lognormal). */
  readonly cv: number;
  /** Share of phases that take `tailFactor` times as long. */
  readonly tailShare: number;
  readonly tailFactor: number;
  /** Standard deviation of a slow wander of the speed (its memory is five seconds). */
  readonly wander: number;
}

function variationOf(seed: number, { cv, tailShare, tailFactor, wander }: VariationSettings): PhaseVariation {
  const random = new Random(seed * 131 + 7);
  const sigma = Math.sqrt(Math.log1p(cv ** 2));
  const memoryUs = 5e6;
  let level = random.nextNormal();
  let atUs = 0;
  return (nominalUs, _phase, startUs) => {
    let factor = Math.exp(sigma * random.nextNormal() - sigma ** 2 / 2);
    if (tailShare > 0 && random.nextUnit() < tailShare) factor *= tailFactor;
    if (wander > 0) {
      // Ornstein-Uhlenbeck: exact over any step.
      const keep = Math.exp(-Math.max(0, startUs - atUs) / memoryUs);
      level = level * keep + Math.sqrt(1 - keep ** 2) * random.nextNormal();
      atUs = Math.max(atUs, startUs);
      factor *= Math.exp(wander * level);
    }
    return nominalUs * factor;
  };
}

/** SLO rate of a world; null when the SLO holds at no rate. */
export function worldTruth(world: World, measureS = 120): number | null {
  const slo = { ...world.slo, boundMs: world.slo.boundMs - world.overheadMs };
  return truthOf((seed) => world.server(seed), slo, { measureS });
}
