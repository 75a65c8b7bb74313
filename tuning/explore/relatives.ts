/** Models of a configuration that was not measured, by the service laws of those that were. Pure. */
import type { Variant } from "../../model-repo/variant";
import { hostMsOf, type ServiceLaw, withHostPhase } from "../../serving-model/service-law";
import { payloadBytesOf } from "../../serving-model/t4";
import { type FittedLaw, identify } from "../identify/identify";
import { observationOf } from "../identify/observation";
import type { SystemFacts, VariantOutcome } from "../outcome";
import type { ModelledSystem } from "../search/model-knee";
import {
  type ActiveInstances,
  activeOf,
  balanceOf,
  type CrowdedHost,
  crowdingOf,
  type CrowdingRange,
  slowdown,
} from "./crowding";

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
  /** Its instances in their host phase. */
  readonly host: ActiveInstances;
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
    const near = { ...family, relatives: nearest(family.relatives, variant) };
    return near.relatives.map((relative) => {
      const law = crowded(relative, variant, near, outlook);
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
  const relatives = own.map((one): Relative => {
    const { variant, outcome } = one;
    const law = { ...outcome.fittedLaw!, ...gpuPhaseOf(one, together) };
    return { variant, law, overheadMs: outcome.fittedOverheadMs ?? 0, host: activeOf(hostOf(variant, law)) };
  });
  return { relatives, crowding: crowdingOf(relatives.map(({ variant, law }) => hostOf(variant, law))) };
}

/**
 * GPU phase of an artefact, whatever serves it. A configuration whose executions all had about the same size does not tell what another
 * size takes: then it is the one that all trials of the artefact tell together, as long as this one takes at its own size.
 * @param together by the trials of all relatives; null: there are no others
 */
function gpuPhaseOf(one: Measured, together: FittedLaw | null): GpuPhase {
  const own = one.outcome.fittedLaw!;
  if (!together?.identified.batchSplit || fitOf([one])?.identified.batchSplit !== false) return gpuPhase(own);
  const batch = one.outcome.meanBatch ?? one.variant.maxBatchSize;
  return gpuPhase(together.law, gpuMsOf(own, batch) / gpuMsOf(together.law, batch));
}

type GpuPhase = Pick<ServiceLaw, "gpuMsPerBatch" | "gpuMsPerImage">;

/** A law's GPU phase; so many times as long, where a factor is given. */
function gpuPhase({ gpuMsPerBatch, gpuMsPerImage }: ServiceLaw, factor = 1): GpuPhase {
  return { gpuMsPerBatch: gpuMsPerBatch * factor, gpuMsPerImage: gpuMsPerImage * factor };
}

/**
 * With the GPU phase of the relative that needs least for such a batch: what waits for a busy GPU is easily taken for work of it, never the
 * other way round.
 */
function withLeastGpu(law: ServiceLaw, { relatives }: Family, { maxBatchSize }: Variant): ServiceLaw {
  const least = relatives
    .map((relative) => relative.law)
    .reduce((one, other) => (gpuMsOf(other, maxBatchSize) < gpuMsOf(one, maxBatchSize) ? other : one));
  return { ...law, ...gpuPhase(least) };
}

/**
 * With a GPU phase no shorter than what a GPU at work all the time has shown: it passes what it can. A batch as large takes as long there,
 * a smaller one at least as long an image, a larger one no less.
 */
function withShownGpu(law: ServiceLaw, { relatives }: Family, { maxBatchSize }: Variant): ServiceLaw {
  const shown = relatives
    .filter(({ host }) => !host.seen)
    .map(
      (one) =>
        gpuMsOf(one.law, one.variant.maxBatchSize) * Math.min(1, maxBatchSize / one.variant.maxBatchSize),
    );
  const factor = Math.max(1, Math.max(0, ...shown) / gpuMsOf(law, maxBatchSize));
  return { ...law, ...gpuPhase(law, factor) };
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

function hostOf({ instanceCount, maxBatchSize }: Variant, law: ServiceLaw): CrowdedHost {
  return {
    instanceCount,
    batch: maxBatchSize,
    hostMs: hostMsOf(law, maxBatchSize),
    gpuMs: gpuMsOf(law, maxBatchSize),
  };
}

/**
 * A relative's law with as many instances in their host phases, and batches as large, as the variant has.
 * @param family the nearest to the variant first
 */
function crowded(relative: Relative, variant: Variant, family: Family, outlook: Outlook): ServiceLaw {
  const { instanceCount, maxBatchSize } = variant;
  const own = outlook === "hopeful" ? withLeastGpu(relative.law, family, variant) : relative.law;
  const law = withShownGpu(own, family, variant);
  const crowding = outlook === "hopeful" ? family.crowding.least : family.crowding.likely;
  const seen = whereHostIsSeen(relative, family);
  const larger = outlook === "hopeful" ? Math.max(1, maxBatchSize / seen.variant.maxBatchSize) : 1;
  const factor = larger ** -savedByBatch / slowdown(crowding, seen.host.active);
  const { hostMsPerBatch, hostMsPerImage } = withHostPhase(seen.law, factor);
  const alone = { ...law, hostMsPerBatch, hostMsPerImage };
  const hostAloneMs = hostMsOf(alone, maxBatchSize);
  if (hostAloneMs <= 0) return law;
  const { hostMs } = balanceOf({ instanceCount, hostAloneMs, gpuMs: gpuMsOf(law, maxBatchSize), crowding });
  return withHostPhase(alone, hostMs / hostAloneMs);
}

/** Where the GPU hides what a relative does on the host, the first of its family tells that shows it. */
function whereHostIsSeen(relative: Relative, { relatives }: Family): Relative {
  return [relative, ...relatives].find(({ host }) => host.seen) ?? relative;
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
