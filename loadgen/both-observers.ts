/** Two that want to see the same measurements. */
import type { MeasurementObserver } from "./controller-run";

export function bothObservers(one: MeasurementObserver, other: MeasurementObserver): MeasurementObserver {
  return {
    started: (spec) => {
      one.started(spec);
      other.started(spec);
    },
    began: (spec, startMs) => {
      one.began?.(spec, startMs);
      other.began?.(spec, startMs);
    },
    counted: (spec, measured, sentBytes, warmup) => {
      one.counted(spec, measured, sentBytes, warmup);
      other.counted(spec, measured, sentBytes, warmup);
    },
    changed: (spec, change) => {
      one.changed?.(spec, change);
      other.changed?.(spec, change);
    },
    ended: (result) => {
      one.ended(result);
      other.ended(result);
    },
  };
}
