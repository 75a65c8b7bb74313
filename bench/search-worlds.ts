/**
 * Random servers for scoring searches: service laws, settings, jitter, heavy tails, drift, throttling, planted causes, all drawn from a
 * seed. Everything here is in virtual time.
 */
import { catalogue } from "../model-repo/catalogue";
import type { Precision, Variant } from "../model-repo/variant";
import { Random } from "../serving-model/random";
import type { ServiceLaw } from "../serving-model/service-law";
import type { SimulatedServer } from "../serving-model/simulate";
import type { SystemFacts } from "../tuning/outcome";
import { comparingEffort } from "../tuning/diagnosis/relief";
import { kneeOf } from "../tuning/search/model-knee";
import type { Cause, ServerWindow, Slo } from "../tuning/trial";
import { type SpeedOverTime, variationOf, type VariationSettings } from "./search-variation";

/** One world in twenty for every entry. */
const mixture = [
  ...["exact", "jitter", "heavy-tail", "wander", "drift", "throttle", "jitter", "heavy-tail", "wander"],
  ...["non-monotone", "exact", "jitter", "heavy-tail", "wander", "drift", "throttle", "jitter"],
  ...["no-op", "memory", "client"],
] as const;
export type WorldKind = (typeof mixture)[number];
export const worldKinds: readonly WorldKind[] = [...new Set(mixture)];

/** The kind that belongs to a seed. */
export function kindOf(seed: number): WorldKind {
  return mixture[seed % mixture.length]!;
}

/** What of a server may be changed to see what that would gain. */
export type ServerChange = (server: SimulatedServer) => SimulatedServer;

export interface World {
  readonly seed: number;
  readonly kind: WorldKind;
  readonly variant: Variant;
  readonly law: ServiceLaw;
  readonly slo: Slo;
  readonly overheadMs: number;
  readonly metricNoise: number;
  readonly facts: SystemFacts;
  /** Laws that the conversions were expected to give, of every precision. */
  readonly lawOf: (variant: Variant) => ServiceLaw;
  /** Largest rate that the load generator can offer, requests/s; Infinity when it is no limit. */
  readonly offerablePerS: number;
  /** The cause that was planted, if the sweep saw it: it ended at this moment of its own time. Null: what relief shows. */
  planted(endS: number): Cause | null;
  /** Whether the server's speed depends on the time. */
  readonly changesOverTime: boolean;
  /**
   * A fresh server for a run that starts at this moment; the same seed gives the same variation.
   * @param frozen its speed stays what it is at that moment
   */
  server(seed: number, startedS: number, frozen?: boolean): SimulatedServer;
  /** What the server reports beside the node model's figures. */
  reports(fromS: number, toS: number): Partial<ServerWindow>;
}

const gpuMemoryBytes = 15 * 2 ** 30;
const powerLimitW = 70;
/** GPU time of the precisions, about as published for ResNet-50 on a T4. */
const gpuFactor: Readonly<Record<Precision, number>> = { original: 1, fp32: 0.72, fp16: 0.33, int8: 0.21 };
const leastTruthPerS = 20;

/** The world of a seed. Draws in which the SLO holds at hardly any rate are drawn anew. */
export function randomWorld(seed: number, kind: WorldKind = kindOf(seed)): World {
  for (let draw = 0; ; draw++) {
    const world = drawn(seed, kind, new Random(seed * 7919 + 13 + draw * 104_729));
    const server = { ...world.variant, dynamicBatching: true, law: world.law };
    const knee = kneeOf({ server, overheadMs: world.overheadMs }, "poisson", world.slo, comparingEffort);
    if (knee !== null && knee.value >= leastTruthPerS) return world;
  }
}

function drawn(seed: number, kind: WorldKind, random: Random): World {
  const pick = <T>(values: readonly T[]): T => values[Math.floor(random.nextUnit() * values.length)]!;
  const uniform = (low: number, high: number): number => low + (high - low) * random.nextUnit();
  const logUniform = (low: number, high: number): number => low * (high / low) ** random.nextUnit();
  const slo: Slo = { quantile: pick([0.95, 0.95, 0.99]), boundMs: pick([60, 100, 200]) };
  const overheadMs = 4 * random.nextUnit();
  let law: ServiceLaw = {
    hostMsPerImage: logUniform(0.05, 1.5),
    gpuMsPerBatch: logUniform(0.5, 6),
    gpuMsPerImage: logUniform(0.15, 3),
    ingressRequestsPerS: random.nextUnit() < 0.3 ? logUniform(200, 2500) : Infinity,
  };
  let settings = {
    maxBatchSize: pick([1, 4, 8, 16, 32, 64]),
    instanceCount: pick([1, 1, 2, 4]),
    queueDelayUs: pick([1000, 5000, 20_000]),
    preferred: random.nextUnit() < 0.7,
  };
  let precision: Precision = pick(["original", "fp32", "fp16", "int8"]);
  let inputType: "FP32" | "UINT8" = pick(["FP32", "FP32", "UINT8"]);
  // What the planted causes need to be causes.
  if (kind === "throttle" || kind === "no-op")
    law = { ...law, hostMsPerImage: logUniform(0.02, 0.1), ingressRequestsPerS: Infinity };
  if (kind === "no-op") precision = pick(["fp16", "int8"]);
  if (kind === "memory") {
    law = {
      hostMsPerImage: uniform(0.6, 1.5),
      gpuMsPerBatch: uniform(0.5, 1.5),
      gpuMsPerImage: uniform(0.1, 0.25),
      ingressRequestsPerS: Infinity,
    };
    precision = "int8";
    inputType = "UINT8";
    settings = { ...settings, maxBatchSize: pick([8, 16, 32]), instanceCount: pick([1, 2]) };
  }
  if (kind === "non-monotone") {
    law = { ...law, gpuMsPerBatch: uniform(1, 3), gpuMsPerImage: uniform(0.15, 0.5) };
    const queueDelayUs = Math.round(uniform(0.95, 0.99) * slo.boundMs) * 1000;
    settings = { ...settings, maxBatchSize: pick([4, 8, 16]), preferred: true, queueDelayUs };
  }
  const { maxBatchSize, instanceCount, queueDelayUs } = settings;
  const base = catalogue[0]!;
  const variant: Variant = {
    ...base,
    artefact: {
      ...base.artefact,
      platform: "tensorrt_plan",
      precision,
      input: { ...base.artefact.input, type: inputType },
    },
    name: `world_${seed}`,
    maxBatchSize,
    instanceCount,
    queueDelayUs,
    preferredBatchSizes: settings.preferred ? [maxBatchSize] : [],
    published: null,
  };
  const variation: VariationSettings = {
    cv: kind === "jitter" ? logUniform(0.05, 0.4) : kind === "heavy-tail" ? 0.1 : 0.03,
    tailShare: kind === "heavy-tail" ? logUniform(0.002, 0.02) : 0,
    tailFactor: logUniform(3, 8),
    wander: kind === "wander" ? logUniform(0.01, 0.05) : 0,
  };
  const drift = (random.nextUnit() < 0.5 ? -1 : 1) * logUniform(0.01, 0.05);
  const throttledFromS = uniform(15, 120);
  const throttledSpeed = uniform(0.78, 0.93);
  const ramp = (sweepS: number): number => Math.min(1, Math.max(0, (sweepS - throttledFromS) / 5));
  const speed: SpeedOverTime =
    kind === "drift"
      ? { phases: "both", at: (sweepS) => 1 + (drift * Math.min(sweepS, 600)) / 300 }
      : kind === "throttle"
        ? { phases: "gpu", at: (sweepS) => 1 - (1 - throttledSpeed) * ramp(sweepS) }
        : { phases: "both", at: () => 1 };
  const changesOverTime = kind === "drift" || kind === "throttle";
  // An instance more than these does not fit; without the plant there is room for many.
  const perInstance =
    kind === "memory" ? gpuMemoryBytes / (instanceCount + uniform(0.2, 0.8)) : 0.6 * 2 ** 30;
  const capacity =
    (1000 * maxBatchSize) / (law.gpuMsPerBatch + (law.gpuMsPerImage + law.hostMsPerImage) * maxBatchSize);
  const offerablePerS =
    kind === "client" ? Math.min(capacity, law.ingressRequestsPerS) * uniform(0.3, 0.6) : Infinity;
  const published = (of: Precision): ServiceLaw => {
    const ratio = gpuFactor[of] / gpuFactor[precision];
    return { ...law, gpuMsPerBatch: law.gpuMsPerBatch * ratio, gpuMsPerImage: law.gpuMsPerImage * ratio };
  };
  // The conversion was to make it faster, and did not.
  const real = kind === "no-op" ? published("fp32") : law;
  return {
    seed,
    kind,
    variant,
    law: real,
    slo,
    overheadMs,
    metricNoise: 0.01,
    facts: { wireCeilingPerS: null, clientCeilingPerS: null },
    lawOf: ({ artefact }) => {
      const of = published(artefact.precision);
      const size = (artefact.input.type === "UINT8" ? 1 : 4) / (inputType === "UINT8" ? 1 : 4);
      return {
        ...of,
        hostMsPerImage: of.hostMsPerImage * size,
        ingressRequestsPerS: of.ingressRequestsPerS / size,
      };
    },
    offerablePerS,
    planted: (endS) =>
      kind === "throttle"
        ? endS > throttledFromS + 30
          ? "throttled"
          : null
        : kind === "no-op"
          ? "conversion-noop"
          : kind === "memory"
            ? "memory-limit"
            : kind === "client"
              ? "client-bound"
              : null,
    changesOverTime,
    server: (runSeed, startedS, frozen = false) => ({
      ...variant,
      dynamicBatching: true,
      law: real,
      variation:
        kind === "exact"
          ? undefined
          : variationOf(runSeed, variation, speed.phases, (runUs) =>
              speed.at(frozen ? startedS : startedS + runUs / 1e6),
            ),
    }),
    reports: (fromS, toS) => ({
      gpuMemoryUsedBytes: 0.3 * 2 ** 30 + perInstance * 0.97 * instanceCount,
      gpuMemoryTotalBytes: gpuMemoryBytes,
      gpuPowerLimitW: powerLimitW,
      gpuPowerW: kind === "throttle" ? 52 + (powerLimitW - 52.5) * ramp((fromS + toS) / 2) : 55,
    }),
  };
}
