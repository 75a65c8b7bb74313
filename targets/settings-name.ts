import type { Variant } from "../model-repo/variant";

type Settings = Pick<Variant, "maxBatchSize" | "instanceCount" | "queueDelayUs" | "preferredBatchSizes">;

/** Name of a variant that has none: it tells the settings apart, in characters that variants may have. */
export function settingsName(model: string, settings: Settings): string {
  const { maxBatchSize, instanceCount, queueDelayUs, preferredBatchSizes } = settings;
  const base = model.toLowerCase().replaceAll(/[^a-z0-9]+/g, "_");
  const preferred = preferredBatchSizes.length === 0 ? "" : `_pref${preferredBatchSizes.join("_")}`;
  return `${base}_bs${maxBatchSize}_count${instanceCount}_delay${queueDelayUs}${preferred}`;
}
