/** Which configuration is worth measuring next, by the service laws that were fitted to the measured ones. Pure. */
import type { Variant } from "../../model-repo/variant";
import { payloadBytesOf } from "../../serving-model/t4";
import { hostMsOf, withHostPhase } from "../../serving-model/service-law";
import { capacityPerS } from "../../serving-model/truth";
import { comparingEffort } from "../diagnosis/relief";
import type { SystemFacts, VariantOutcome } from "../outcome";
import type { LoadMode } from "../search/load-axis";
import { kneeOf, type ModelledSystem } from "../search/model-knee";
import type { Slo } from "../trial";
import { configurationsOf, sameConfiguration, type Space } from "./space";

export interface Measured {
  readonly variant: Variant;
  readonly outcome: VariantOutcome;
}

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
/**
 * With another number of instances than was measured the host phase is taken for longer by this factor: on a GPU server gains came out 4 to
 * 24 % below such predictions (docs/evidence/h200), and what holds the SLO only if nothing gets slower is no good proposal.
 */
const caution = 1.1;
/** Predictions closer than this are the same; then the configuration that asks for less is taken. */
const same = 0.005;

/**
 * The configuration with the highest predicted SLO rate, if that is worth measuring. What a configuration can pass at all is known
 * without simulating it, so they are gone through from the highest capacity down, until none can beat what was found.
 */
export function propose(measured: readonly Measured[], context: ProposalContext): Proposal {
  const known = measured.filter(({ outcome }) => outcome.sloRate !== null);
  const fitted = known.filter(({ outcome }) => outcome.fittedLaw !== null);
  if (fitted.length === 0)
    return { best: null, simulated: 0, reason: "No measured variant has a service model to predict from." };
  const highest = Math.max(...known.map(({ outcome }) => outcome.sloRate!.estimate));
  const candidates = configurationsOf(
    measured.map(({ variant }) => variant),
    context.space,
  )
    .filter((candidate) => !measured.some(({ variant }) => sameConfiguration(variant, candidate)))
    .flatMap((variant) => {
      const systems = systemsOf(variant, fitted, context.facts);
      const capacity = Math.min(...systems.map(({ server }) => capacityPerS(server)));
      return systems.length === 0 ? [] : [{ variant, systems, capacity }];
    })
    .sort((a, b) => b.capacity - a.capacity || effortOf(a.variant) - effortOf(b.variant));
  let best: Proposal["best"] = null;
  let simulated = 0;
  for (const { variant, systems, capacity } of candidates) {
    const least = best === null ? highest * worthwhile : best.predictedSloRate * (1 + same);
    if (capacity <= least) break;
    const ratePerS = leastKnee(systems, context, least);
    simulated++;
    if (ratePerS > least) best = { variant, predictedSloRate: ratePerS };
  }
  const reason = `Of ${candidates.length} other configurations none is predicted to beat the best measured one by ${Math.round(100 * (worthwhile - 1))} %.`;
  return { best, simulated, reason };
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

/**
 * The models of a configuration: by the laws of the measured ones of its artefact, the nearest first. A law that was fitted roughly, or to
 * a server that another phase limited, knows little about what limits here: the others contradict it then.
 */
function systemsOf(variant: Variant, fitted: readonly Measured[], facts: SystemFacts): ModelledSystem[] {
  const relatives = fitted.filter((one) => one.variant.artefact.name === variant.artefact.name);
  const trend = hostTrend(relatives);
  // The way into the node is the same for all that send as many bytes.
  const bytes = payloadBytesOf(variant.artefact.input);
  const ingressRequestsPerS = Math.min(
    facts.wireCeilingPerS ?? Infinity,
    ...fitted
      .filter((one) => payloadBytesOf(one.variant.artefact.input) === bytes)
      .map((one) => one.outcome.fittedLaw!.ingressRequestsPerS),
  );
  return [...relatives]
    .sort((a, b) => distance(a.variant, variant) - distance(b.variant, variant))
    .map(({ variant: { instanceCount }, outcome }) => {
      const crowding = (variant.instanceCount / instanceCount) ** trend;
      const factor = variant.instanceCount === instanceCount ? crowding : crowding * caution;
      const law = { ...withHostPhase(outcome.fittedLaw!, factor), ingressRequestsPerS };
      return {
        server: { ...variant, dynamicBatching: true, law, scheduler: facts.scheduler },
        overheadMs: outcome.fittedOverheadMs ?? 0,
      };
    });
}

/**
 * How the host phase of an image grows with the number of instances, as an exponent: 0 where they do not mind each other, 1 where all of
 * them together pass no more than one. Known once two numbers of instances were measured; recorded on a GPU server with ten cores (see
 * docs/evidence/h200): 0.47 from one to four.
 */
export function hostTrend(relatives: readonly Measured[]): number {
  const points = relatives.map(({ variant: { instanceCount, maxBatchSize }, outcome }) => ({
    x: Math.log(instanceCount),
    y: Math.log(Math.max(1e-6, hostMsOf(outcome.fittedLaw!, maxBatchSize) / maxBatchSize)),
  }));
  const mean = (values: readonly number[]): number =>
    values.reduce((sum, value) => sum + value, 0) / values.length;
  const [x, y] = [mean(points.map((point) => point.x)), mean(points.map((point) => point.y))];
  const spread = points.reduce((sum, point) => sum + (point.x - x) ** 2, 0);
  if (spread === 0) return 0;
  const slope = points.reduce((sum, point) => sum + (point.x - x) * (point.y - y), 0) / spread;
  return Math.min(1, Math.max(0, slope));
}

/** Instances compete for the host, so they count for more than the batch. */
function distance(one: Variant, other: Variant): number {
  return (
    2 * Math.abs(Math.log(one.instanceCount / other.instanceCount)) +
    Math.abs(Math.log(one.maxBatchSize / other.maxBatchSize))
  );
}

/** Memory and waiting that a configuration costs: instances first. */
function effortOf({ instanceCount, maxBatchSize, queueDelayUs }: Variant): number {
  return instanceCount + maxBatchSize / 1000 + queueDelayUs / 1e9;
}
