/** Configurations that nobody wrote down: the settings of known artefacts, in every combination that a server takes. Pure. */
import { limits } from "../../model-repo/validate-variant";
import type { ModelArtefact, Variant } from "../../model-repo/variant";

/** Values of each setting. */
export interface Space {
  readonly batchSizes: readonly number[];
  readonly instanceCounts: readonly number[];
  readonly queueDelaysUs: readonly number[];
}

/**
 * Powers of two up to the largest batch that the documents served and twice it; instances up to twice what they tried; delays from none to the
 * documents' 50 ms in steps of about two.
 */
export const defaultSpace: Space = {
  batchSizes: [1, 2, 4, 8, 16, 32, 64, 128],
  instanceCounts: [1, 2, 3, 4, 6, 8],
  queueDelaysUs: [0, 1000, 2000, 5000, 10_000, 20_000, 50_000],
};

/**
 * All configurations of the artefacts that some variants have. A batch beyond what an artefact was built for is a conversion and not a
 * setting, and none goes beyond the largest that was served where the artefact takes any; preferred sizes follow the artefact's variants:
 * the largest batch, or none.
 */
export function configurationsOf(variants: readonly Variant[], space: Space = defaultSpace): Variant[] {
  const artefacts = new Map(variants.map(({ artefact }) => [artefact.name, artefact]));
  return [...artefacts.values()].flatMap((artefact) => {
    const known = variants.filter((variant) => variant.artefact.name === artefact.name);
    const most = artefact.builtMaxBatchSize ?? 2 * Math.max(...known.map(({ maxBatchSize }) => maxBatchSize));
    const prefers = known.every(({ preferredBatchSizes }) => preferredBatchSizes.length > 0);
    return space.batchSizes
      .filter((size) => size <= most)
      .flatMap((maxBatchSize) =>
        space.instanceCounts.flatMap((instanceCount) =>
          space.queueDelaysUs.map((queueDelayUs) => ({
            name: nameOf(artefact, maxBatchSize, instanceCount, queueDelayUs),
            artefact,
            maxBatchSize,
            instanceCount,
            queueDelayUs,
            preferredBatchSizes: prefers && maxBatchSize > 1 ? [maxBatchSize] : [],
            published: null,
          })),
        ),
      );
  });
}

/** Whether two variants ask the server for the same. */
export function sameConfiguration(one: Variant, other: Variant): boolean {
  return (
    one.artefact.name === other.artefact.name &&
    one.maxBatchSize === other.maxBatchSize &&
    one.instanceCount === other.instanceCount &&
    one.queueDelayUs === other.queueDelayUs &&
    one.preferredBatchSizes.join() === other.preferredBatchSizes.join()
  );
}

/** After its artefact, whose name tells what it was built for; a smaller batch is named too. */
function nameOf(
  artefact: ModelArtefact,
  maxBatchSize: number,
  instanceCount: number,
  delayUs: number,
): string {
  const batch = artefact.name.endsWith(`_bs${maxBatchSize}`) ? "" : `_max${maxBatchSize}`;
  const settings = `${batch}_count${instanceCount}_delay${delayUs / 1000}ms`.replace(".", "_");
  const base = artefact.name.toLowerCase().replaceAll(/[^a-z0-9_]+/g, "_");
  return `${base.slice(0, limits.nameLength - settings.length)}${settings}`;
}
