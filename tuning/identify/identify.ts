/**
 * Estimates the service law from trials: host phase, GPU phase, ingress ceiling, and the constant time outside the node. Without server
 * metrics the response times of a ladder of concurrencies give the sum of the phases, and the throughput at saturation its split.
 */
import type { ServiceLaw } from "../../serving-model/service-law";
import type { Observation } from "./observation";
import { pathOf } from "./path";
import { withServerMetrics } from "./phases";
import { fromResponses } from "./response-times";

export interface FittedLaw {
  readonly law: ServiceLaw;
  /** Response time outside link, queue and execution, milliseconds. */
  readonly overheadMs: number;
  /** What could be told from these trials, and what is an assumption. */
  readonly identified: {
    /** Host and GPU phase apart from each other. */
    readonly phases: boolean;
    /** Time per batch and per image apart from each other. */
    readonly batchSplit: boolean;
    /** A ceiling of the path into the node was reached; if not, `ingressRequestsPerS` is Infinity and may still lie higher. */
    readonly ingress: boolean;
  };
  /** Root mean square of (predicted / observed - 1) over the observed phase times. */
  readonly residual: number;
  /** Sentences for the report: what is assumed. */
  readonly notes: readonly string[];
}

/** Null when the observations are too few to say anything: at least one with answers is needed. */
export function identify(observations: readonly Observation[]): FittedLaw | null {
  const phases = withServerMetrics(observations) ?? fromResponses(observations);
  if (phases === null) return null;
  const law = { ...phases.law, ingressRequestsPerS: Infinity };
  const { overheadMs, ceilingPerS } = pathOf(observations, law);
  return {
    law: { ...law, ingressRequestsPerS: ceilingPerS ?? Infinity },
    // Without server metrics it is contained in the time per batch: response times cannot tell them apart.
    overheadMs: phases.phases ? overheadMs : 0,
    identified: { phases: phases.phases, batchSplit: phases.batchSplit, ingress: ceilingPerS !== null },
    residual: phases.residual,
    notes: phases.notes,
  };
}
