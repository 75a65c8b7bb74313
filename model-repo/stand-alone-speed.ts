/** How fast an artefact is without a server in front of it: what its conversion measured and left in its manifest. */
import { z } from "zod";

/** `standAloneSpeed` of a manifest, as `model-repo/convert/speed.py` measures it: one caller, one batch after the other, copies included. */
export const speedsSchema = z.array(
  z.looseObject({
    batchSize: z.number().int().positive(),
    imagesPerS: z.number().positive(),
    /** From the call to the answer, the whole batch's. */
    latencyP95Ms: z.number().nonnegative(),
  }),
);

export type MeasuredSpeed = z.infer<typeof speedsSchema>[number];

/** An artefact's own speed at one batch size: what a served rate is compared with. */
export interface StandAloneSpeed {
  readonly batchSize: number;
  readonly imagesPerS: number;
  /** 95th percentile of a batch's time, milliseconds. */
  readonly latencyP95Ms: number;
  /**
   * `measured`: by its conversion, with one caller, copies to and from the device included. `simulated`: the GPU phase of a simulated
   * GPU, without copies; nothing was measured.
   */
  readonly basis: "measured" | "simulated";
  /** What it was measured on, e.g. "Tesla T4"; null: the manifest does not say. */
  readonly on: string | null;
}

/**
 * The speed at the largest measured batch that a variant serves: no interpolation, so its batch size may be below `maxBatchSize`.
 * Null when none so small was measured.
 */
export function measuredSpeedAt(
  speeds: readonly MeasuredSpeed[],
  maxBatchSize: number,
  on: string | null,
): StandAloneSpeed | null {
  let best: MeasuredSpeed | null = null;
  for (const speed of speeds)
    if (speed.batchSize <= maxBatchSize && (best === null || speed.batchSize > best.batchSize)) best = speed;
  if (best === null) return null;
  const { batchSize, imagesPerS, latencyP95Ms } = best;
  return { batchSize, imagesPerS, latencyP95Ms, basis: "measured", on };
}
