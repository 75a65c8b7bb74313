/** How much the predicted SLO rate gains when one resource gets 10 % faster: the resource that gains most is the cause. */
import { hostMsOf, withHostPhase } from "../../serving-model/service-law";
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
  const there = relievedSystems(system).map(({ resource, system: relieved }) => ({
    resource,
    gain: gainOf(relieved, prediction),
  }));
  return there.sort((a, b) => b.gain - a.gain);
}

/** The system with 10 % less of every resource that it has. */
export function relievedSystems(system: ModelledSystem): { resource: Resource; system: ModelledSystem }[] {
  const { server } = system;
  const { law } = server;
  const keep = 1 - reliefShare;
  const list: { resource: Resource; system: ModelledSystem }[] = [];
  const add = (resource: Resource, there: boolean, relieved: () => ModelledSystem): void => {
    if (there) list.push({ resource, system: relieved() });
  };
  add("gpu", law.gpuMsPerBatch + law.gpuMsPerImage > 0, () =>
    withLaw(system, {
      gpuMsPerBatch: law.gpuMsPerBatch * keep,
      gpuMsPerImage: law.gpuMsPerImage * keep,
    }),
  );
  add("host", hostMsOf(law, 1) > 0, () => withLaw(system, withHostPhase(law, keep)));
  add("wire", law.ingressRequestsPerS < Infinity, () =>
    withLaw(system, { ingressRequestsPerS: law.ingressRequestsPerS / keep }),
  );
  add("queue-delay", server.queueDelayUs > 0, () => ({
    ...system,
    server: { ...server, queueDelayUs: server.queueDelayUs * keep },
  }));
  add("outside", system.overheadMs > 0, () => ({ ...system, overheadMs: system.overheadMs * keep }));
  return list;
}

/** The system with some figures of its law replaced. */
export function withLaw(
  system: ModelledSystem,
  law: Partial<ModelledSystem["server"]["law"]>,
): ModelledSystem {
  return { ...system, server: { ...system.server, law: { ...system.server.law, ...law } } };
}
