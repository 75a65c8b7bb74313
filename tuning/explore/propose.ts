/** Which configuration is worth measuring next, by the service laws that were fitted to the measured ones. Pure. */
import type { Variant } from "../../model-repo/variant";
import { capacityPerS } from "../../serving-model/truth";
import { comparingEffort } from "../diagnosis/relief";
import type { SystemFacts } from "../outcome";
import type { LoadMode } from "../search/load-axis";
import { kneeOf, type ModelledSystem } from "../search/model-knee";
import type { Slo } from "../trial";
import { type Measured, modelsOf } from "./relatives";
import { configurationsOf, sameConfiguration, type Space } from "./space";

export interface ProposalContext {
  readonly slo: Slo;
  readonly mode: LoadMode;
  readonly facts: SystemFacts;
  /** Default: `defaultSpace`. */
  readonly space?: Space;
}

export interface Proposal {
  /** Null: no configuration is worth measuring, for the reason given. */
  readonly best: { readonly variant: Variant; readonly predictedSloRate: number } | null;
  /** Configurations that were simulated for it; all others cannot be better by their capacity alone. */
  readonly simulated: number;
  readonly reason: string;
}

/** A prediction must beat the best measured rate by this factor: less is within the intervals. */
const worthwhile = 1.02;
/** Predictions closer than this are the same; then the configuration that asks for less is taken. */
const same = 0.005;

/**
 * The configuration with the highest predicted SLO rate, if that is worth measuring; if none is, the one with the highest that may be
 * hoped for.
 */
export function propose(measured: readonly Measured[], context: ProposalContext): Proposal {
  const known = measured.filter(({ outcome }) => outcome.sloRate !== null);
  if (known.every(({ outcome }) => outcome.fittedLaw === null))
    return { best: null, simulated: 0, reason: "No measured variant has a service model to predict from." };
  const systemsOf = modelsOf(known, context.facts);
  const unknown = configurationsOf(
    measured.map(({ variant }) => variant),
    context.space,
  ).filter((candidate) => !measured.some((one) => answers(one, candidate)));
  const atLeast = worthwhile * Math.max(...known.map(({ outcome }) => outcome.sloRate!.estimate));
  let simulated = 0;
  for (const outlook of ["likely", "hopeful"] as const) {
    const candidates = unknown.flatMap((variant) => {
      const systems = systemsOf(variant, outlook);
      return systems.length === 0 ? [] : [{ variant, systems, capacity: leastCapacity(systems) }];
    });
    const found = bestOf(candidates, atLeast, context);
    simulated += found.simulated;
    if (found.best !== null) return { best: found.best, simulated, reason: "" };
  }
  const percent = Math.round(100 * (worthwhile - 1));
  const reason = `Of ${unknown.length} other configurations none is predicted to beat the best measured one by ${percent} %.`;
  return { best: null, simulated, reason };
}

/** Whether this measurement leaves nothing to ask of a configuration: it is the same, or asks for more than what could not be served. */
function answers({ variant, outcome }: Measured, candidate: Variant): boolean {
  if (sameConfiguration(variant, candidate)) return true;
  return (
    outcome.sloRate === null &&
    outcome.trials.length === 0 &&
    variant.artefact.name === candidate.artefact.name &&
    variant.maxBatchSize <= candidate.maxBatchSize &&
    variant.instanceCount <= candidate.instanceCount
  );
}

interface Candidate {
  readonly variant: Variant;
  readonly systems: readonly ModelledSystem[];
  /** What it can pass at all, requests/s. */
  readonly capacity: number;
}

/**
 * What a configuration can pass at all is known without simulating it, so they are gone through from the highest capacity down, until
 * none can beat what was found.
 */
function bestOf(
  candidates: readonly Candidate[],
  atLeast: number,
  context: ProposalContext,
): Pick<Proposal, "best" | "simulated"> {
  const falling = [...candidates].sort(
    (a, b) => b.capacity - a.capacity || effortOf(a.variant) - effortOf(b.variant),
  );
  let best: Proposal["best"] = null;
  let simulated = 0;
  for (const { variant, systems, capacity } of falling) {
    const least = best === null ? atLeast : best.predictedSloRate * (1 + same);
    if (capacity <= least) break;
    const ratePerS = leastKnee(systems, context, least);
    simulated++;
    if (ratePerS > least) best = { variant, predictedSloRate: ratePerS };
  }
  return { best, simulated };
}

function leastCapacity(systems: readonly ModelledSystem[]): number {
  return Math.min(...systems.map(({ server }) => capacityPerS(server)));
}

/**
 * What all the models of a configuration let it hold, requests/s. @param least: below it the rest is not asked
 */
function leastKnee(
  systems: readonly ModelledSystem[],
  { mode, slo }: ProposalContext,
  least: number,
): number {
  let ratePerS = Infinity;
  for (const system of systems) {
    ratePerS = Math.min(ratePerS, kneeOf(system, mode, slo, comparingEffort, least)?.ratePerS ?? 0);
    if (ratePerS <= least) break;
  }
  return ratePerS;
}

/** Memory and waiting that a configuration costs: instances first. */
function effortOf({ instanceCount, maxBatchSize, queueDelayUs }: Variant): number {
  return instanceCount + maxBatchSize / 1000 + queueDelayUs / 1e9;
}
