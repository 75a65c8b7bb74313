/** What is known about batches where the trials saw executions of one size only. Pure. */
import type { Variant } from "../../model-repo/variant";
import type { ServiceLaw } from "../../serving-model/service-law";
import type { SystemFacts } from "../outcome";
import type { ModelledSystem } from "../search/model-knee";
import { withLaw } from "./relief";

/**
 * Executions of one size do not tell time per batch and per image apart. Where a law of this variant is known from elsewhere, the
 * measured time is divided in the same proportion. Without one, the fit's own assumption (identify/least-squares.ts) stands, and
 * another largest batch would be a guess; only for a GPU that is given single images it is named all the same: such a server cannot
 * have shown a batch, and by all published figures of GPUs batches gain most there.
 * @param meanBatch images an execution, where the server reports them
 */
export function withKnownBatches(
  system: ModelledSystem,
  variant: Variant,
  meanBatch: number | null,
  facts: SystemFacts,
  lawOf: (variant: Variant) => ServiceLaw | null,
): { readonly system: ModelledSystem; readonly batchesKnown: boolean } {
  const known = lawOf(variant);
  const batch = meanBatch ?? variant.maxBatchSize;
  const expectedMs = known === null ? 0 : known.gpuMsPerBatch + known.gpuMsPerImage * batch;
  if (known === null || !(expectedMs > 0))
    return { system, batchesKnown: variant.maxBatchSize === 1 && facts.processor !== "cpu" };
  const { gpuMsPerBatch, gpuMsPerImage } = system.server.law;
  const factor = (gpuMsPerBatch + gpuMsPerImage * batch) / expectedMs;
  const divided = {
    gpuMsPerBatch: known.gpuMsPerBatch * factor,
    gpuMsPerImage: known.gpuMsPerImage * factor,
  };
  return { system: withLaw(system, divided), batchesKnown: true };
}
