/** How much the predicted SLO rate gains when one resource gets 10 % faster: the resource that gains most is the cause. */
import { type Knee, type KneeEffort, kneeOf, type ModelledSystem } from "../search/model-knee";
import type { LoadMode } from "../search/load-axis";
import type { Slo } from "../trial";

/** Resources that can be relieved in a model. */
export type Resource = "gpu" | "host" | "wire" | "queue-delay" | "outside";

/** Share by which a resource is relieved. */
export const reliefShare = 0.1;

/** Enough to compare systems under the same random numbers, whose chance cancels. */
export const comparingEffort: KneeEffort = { seeds: 1, requests: 30_000, leastS: 20, mostS: 90 };

export interface Relief {
  readonly resource: Resource;
  /** Predicted SLO rate with the relief over that without, minus 1. */
  readonly gain: number;
}

export interface Prediction {
  readonly mode: LoadMode;
  readonly slo: Slo;
  /** Knee of the system as it is, at the comparing effort. */
  readonly base: Knee;
}

/** Knee as it is, against which changes are compared; null when the SLO holds at no load. */
export function predictionOf(
  system: ModelledSystem,
  mode: LoadMode,
  slo: Slo,
  near: number,
): Prediction | null {
  const base = kneeOf(system, mode, slo, comparingEffort, near);
  return base === null ? null : { mode, slo, base };
}

/** Relative gain of a changed system. -1 when the SLO holds at no load any more. */
export function gainOf(changed: ModelledSystem, { mode, slo, base }: Prediction): number {
  const knee = kneeOf(changed, mode, slo, comparingEffort, base.value);
  return knee === null ? -1 : knee.ratePerS / base.ratePerS - 1;
}

/** All resources of the system, the one whose relief gains most first. */
export function reliefs(system: ModelledSystem, prediction: Prediction): Relief[] {
  const { server } = system;
  const { law } = server;
  const keep = 1 - reliefShare;
  const changed: Record<Resource, ModelledSystem> = {
    gpu: withLaw(system, {
      gpuMsPerBatch: law.gpuMsPerBatch * keep,
      gpuMsPerImage: law.gpuMsPerImage * keep,
    }),
    host: withLaw(system, { hostMsPerImage: law.hostMsPerImage * keep }),
    wire: withLaw(system, { ingressRequestsPerS: law.ingressRequestsPerS / keep }),
    "queue-delay": { ...system, server: { ...server, queueDelayUs: server.queueDelayUs * keep } },
    outside: { ...system, overheadMs: system.overheadMs * keep },
  };
  const there: Record<Resource, boolean> = {
    gpu: law.gpuMsPerBatch + law.gpuMsPerImage > 0,
    host: law.hostMsPerImage > 0,
    wire: law.ingressRequestsPerS < Infinity,
    "queue-delay": server.queueDelayUs > 0,
    outside: system.overheadMs > 0,
  };
  return (Object.keys(changed) as Resource[])
    .map((resource) => ({ resource, gain: there[resource] ? gainOf(changed[resource], prediction) : 0 }))
    .sort((a, b) => b.gain - a.gain);
}

/** The system with some figures of its law replaced. */
export function withLaw(
  system: ModelledSystem,
  law: Partial<ModelledSystem["server"]["law"]>,
): ModelledSystem {
  return { ...system, server: { ...system.server, law: { ...system.server.law, ...law } } };
}
