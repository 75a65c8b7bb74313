/** Models of a configuration that was not measured, by the service laws of those that were. Pure. */
import type { Variant } from "../../model-repo/variant";
import { hostMsOf, type ServiceLaw, withHostPhase } from "../../serving-model/service-law";
import { payloadBytesOf } from "../../serving-model/t4";
import { type FittedLaw, identify } from "../identify/identify";
import { observationOf } from "../identify/observation";
import type { SystemFacts, VariantOutcome } from "../outcome";
import type { ModelledSystem } from "../search/model-knee";
import { activeOf, balanceOf, type CrowdedHost, crowdingOf, type CrowdingRange, slowdown } from "./crowding";

export interface Measured {
  readonly variant: Variant;
  readonly outcome: VariantOutcome;
}

/**
 * What is taken for granted of configurations that differ from the measured ones. `likely`: instances crowd the host as the measurements
 * say, and larger batches cost it as much an image. `hopeful`: they crowd it as little as the measurements allow, larger batches cost it
 * less an image, and the GPU needs no longer than the least that any measurement says.
 */
export type Outlook = "likely" | "hopeful";

/**
 * Exponent by which the host phase of an image falls with the batch, hopefully. Recorded (docs/evidence/h200): 0.25, 0.21 and 0.17 ms alone in
 * batches of 32, 64 and 128.
 */
const savedByBatch = 0.3;

/** A measured configuration with what its law says. */
interface Relative {
  readonly variant: Variant;
  readonly law: ServiceLaw;
  readonly overheadMs: number;
}

/** The relatives of one artefact, and how its instances crowd the host. */
interface Family {
  readonly relatives: readonly Relative[];
  readonly crowding: CrowdingRange;
}

/**
 * The models of a configuration: by the laws of the measured ones of its artefact, the nearest first. A law that was fitted roughly, or to
 * a server that another phase limited, knows little about what limits here: the others contradict it then. None: no relative has a law.
 */
export function modelsOf(
  measured: readonly Measured[],
  facts: SystemFacts,
): (variant: Variant, outlook: Outlook) => ModelledSystem[] {
  const fitted = measured.filter(({ outcome }) => outcome.fittedLaw !== null);
  const names = new Set(fitted.map(({ variant }) => variant.artefact.name));
  const families = new Map([...names].map((name) => [name, familyOf(fitted, name)]));
  return (variant, outlook) => {
    const family = families.get(variant.artefact.name);
    if (family === undefined) return [];
    const ingressRequestsPerS = ingressOf(fitted, variant, facts);
    return nearest(family.relatives, variant).map((relative) => {
      const law = crowded(relative, variant, family, outlook);
      return {
        server: {
          ...variant,
          dynamicBatching: true,
          law: { ...law, ingressRequestsPerS },
          scheduler: facts.scheduler,
        },
        overheadMs: relative.overheadMs,
      };
    });
  };
}

function familyOf(fitted: readonly Measured[], artefactName: string): Family {
  const own = fitted.filter(({ variant }) => variant.artefact.name === artefactName);
  const together = own.length < 2 ? null : fitOf(own);
  const relatives = own.map((one) => ({
    variant: one.variant,
    law: { ...one.outcome.fittedLaw!, ...gpuPhaseOf(one, together) },
    overheadMs: one.outcome.fittedOverheadMs ?? 0,
  }));
  return { relatives, crowding: crowdingOf(relatives.map(hostOf)) };
}

/**
 * GPU phase of an artefact, whatever serves it. A configuration whose executions all had about the same size does not tell what another
 * size takes: then it is the one that all trials of the artefact tell together, as long as this one takes at its own size.
 * @param together by the trials of all relatives; null: there are no others
 */
function gpuPhaseOf(
  one: Measured,
  together: FittedLaw | null,
): Pick<ServiceLaw, "gpuMsPerBatch" | "gpuMsPerImage"> {
  const { gpuMsPerBatch, gpuMsPerImage } = one.outcome.fittedLaw!;
  if (!together?.identified.batchSplit || fitOf([one])?.identified.batchSplit !== false)
    return { gpuMsPerBatch, gpuMsPerImage };
  const { law } = together;
  const batch = one.outcome.meanBatch ?? one.variant.maxBatchSize;
  const scale = gpuMsOf(one.outcome.fittedLaw!, batch) / gpuMsOf(law, batch);
  return { gpuMsPerBatch: law.gpuMsPerBatch * scale, gpuMsPerImage: law.gpuMsPerImage * scale };
}

/**
 * With the GPU phase of the relative that needs least for such a batch: what waits for a busy GPU is easily taken for work of it, never the
 * other way round.
 */
function withLeastGpu(law: ServiceLaw, { relatives }: Family, { maxBatchSize }: Variant): ServiceLaw {
  const { gpuMsPerBatch, gpuMsPerImage } = relatives
    .map((relative) => relative.law)
    .reduce((least, one) => (gpuMsOf(one, maxBatchSize) < gpuMsOf(least, maxBatchSize) ? one : least));
  return { ...law, gpuMsPerBatch, gpuMsPerImage };
}

/**
 * With a GPU phase no shorter than what a GPU at work all the time has shown: it passes what it can. A batch as large takes as long there,
 * a smaller one at least as long an image, a larger one no less.
 */
function withShownGpu(law: ServiceLaw, { relatives }: Family, { maxBatchSize }: Variant): ServiceLaw {
  const shown = relatives
    .filter((one) => !activeOf(hostOf(one)).seen)
    .map((one) => hostOf(one).gpuMs * Math.min(1, maxBatchSize / one.variant.maxBatchSize));
  const factor = Math.max(1, Math.max(0, ...shown) / gpuMsOf(law, maxBatchSize));
  return {
    ...law,
    gpuMsPerBatch: law.gpuMsPerBatch * factor,
    gpuMsPerImage: law.gpuMsPerImage * factor,
  };
}

function fitOf(measured: readonly Measured[]): FittedLaw | null {
  const trials = measured.flatMap(({ outcome }) => outcome.trials);
  return identify(trials.flatMap(({ spec, result }) => observationOf(spec, result) ?? []));
}

/** The way into the node is the same for all that send as many bytes. */
function ingressOf(fitted: readonly Measured[], { artefact }: Variant, facts: SystemFacts): number {
  const bytes = payloadBytesOf(artefact.input);
  return Math.min(
    facts.wireCeilingPerS ?? Infinity,
    ...fitted
      .filter(({ variant }) => payloadBytesOf(variant.artefact.input) === bytes)
      .map(({ outcome }) => outcome.fittedLaw!.ingressRequestsPerS),
  );
}

function hostOf({ variant: { instanceCount, maxBatchSize }, law }: Relative): CrowdedHost {
  return {
    instanceCount,
    batch: maxBatchSize,
    hostMs: hostMsOf(law, maxBatchSize),
    gpuMs: gpuMsOf(law, maxBatchSize),
  };
}

/** A relative's law with as many instances in their host phases, and batches as large, as the variant has. */
function crowded(relative: Relative, variant: Variant, family: Family, outlook: Outlook): ServiceLaw {
  const { instanceCount, maxBatchSize } = variant;
  const own = outlook === "hopeful" ? withLeastGpu(relative.law, family, variant) : relative.law;
  const law = withShownGpu(own, family, variant);
  const crowding = outlook === "hopeful" ? family.crowding.least : family.crowding.likely;
  const seen = whereHostIsSeen(relative, variant, family);
  const larger = outlook === "hopeful" ? Math.max(1, maxBatchSize / seen.variant.maxBatchSize) : 1;
  const factor = larger ** -savedByBatch / slowdown(crowding, activeOf(hostOf(seen)).active);
  const { hostMsPerBatch, hostMsPerImage } = withHostPhase(seen.law, factor);
  const alone = { ...law, hostMsPerBatch, hostMsPerImage };
  const hostAloneMs = hostMsOf(alone, maxBatchSize);
  if (hostAloneMs <= 0) return law;
  const { hostMs } = balanceOf({ instanceCount, hostAloneMs, gpuMs: gpuMsOf(law, maxBatchSize), crowding });
  return withHostPhase(alone, hostMs / hostAloneMs);
}

/** Where the GPU hides what a relative does on the host, the nearest one tells that shows it. */
function whereHostIsSeen(relative: Relative, variant: Variant, { relatives }: Family): Relative {
  const seen = [relative, ...nearest(relatives, variant)].find((one) => activeOf(hostOf(one)).seen);
  return seen ?? relative;
}

function nearest<T extends { readonly variant: Variant }>(relatives: readonly T[], variant: Variant): T[] {
  return [...relatives].sort((a, b) => distance(a.variant, variant) - distance(b.variant, variant));
}

function gpuMsOf({ gpuMsPerBatch, gpuMsPerImage }: ServiceLaw, images: number): number {
  return gpuMsPerBatch + gpuMsPerImage * images;
}

/** Instances compete for the host, so they count for more than the batch. */
function distance(one: Variant, other: Variant): number {
  return (
    2 * Math.abs(Math.log(one.instanceCount / other.instanceCount)) +
    Math.abs(Math.log(one.maxBatchSize / other.maxBatchSize))
  );
}
