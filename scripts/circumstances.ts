/** What the manifests of two sweeps say about their circumstances. Pure. */
import type { Circumstances } from "../tuning/compare/render";
import type { Manifest } from "../tuning/results/manifest";
import { manifestDifferences, notCompared } from "../tuning/results/manifest-differences";

/** @param before null: that sweep has no manifest; so for `after` */
export function circumstancesOf(before: Manifest | null, after: Manifest | null): Circumstances {
  if (before === null || after === null)
    return { differences: [], notCompared: ["all else: one of the sweeps has no manifest"] };
  return { differences: manifestDifferences(before, after), notCompared: notCompared(before, after) };
}
