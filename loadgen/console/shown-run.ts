/** A measurement as the console lists it: without what is long, so that two hundred of them go through a slow port-forward. */
import type { RunSummary, ShownSpec } from "../history/history-store";
import type { LoadProfile } from "../load-profile";
import type { LoadChange, LoadResult } from "../load-spec";

/** Recorded arrivals are told by their number. */
type ShownShape =
  Exclude<LoadProfile, { kind: "recorded" }> | { readonly kind: "recorded"; readonly arrivals: number };

export interface ShownRun extends Omit<RunSummary, "spec" | "changes" | "result"> {
  readonly spec: Omit<ShownSpec, "shape"> & { readonly shape: ShownShape };
  readonly changes: readonly (Omit<LoadChange, "shape"> & { readonly shape: ShownShape })[];
  readonly result: Omit<LoadResult, "intervals" | "responseHistogram"> | null;
}

export function shownRun({ spec, changes, result, ...run }: RunSummary): ShownRun {
  return {
    ...run,
    spec: { ...spec, shape: shownShape(spec.shape) },
    changes: changes.map((change) => ({ ...change, shape: shownShape(change.shape) })),
    result: result && withoutLists(result),
  };
}

function withoutLists({
  intervals: _intervals,
  responseHistogram: _histogram,
  ...result
}: LoadResult): NonNullable<ShownRun["result"]> {
  return result;
}

function shownShape(shape: LoadProfile): ShownShape {
  return shape.kind === "recorded" ? { kind: "recorded", arrivals: shape.atS.length } : shape;
}
