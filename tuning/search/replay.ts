/**
 * The arrivals of a trial, again. The load generator's schedule is a pure function of shape, seed and workers, so a prediction can
 * be made for the very arrivals that the server got: the chance of the arrivals, which is most of a short window's noise, cancels.
 */
import type { LoadResult } from "../../loadgen/load-spec";
import { createPlan } from "../../loadgen/schedule";
import { countedArrivals, type SimulatedShape } from "../../serving-model/arrival-source";
import { Random } from "../../serving-model/random";
import type { TrialSpec } from "../trial";

/** Planned sends of all workers of an open loop, in order, microseconds from the start of the load. */
export function plannedSendsUs(spec: TrialSpec, workers: number): Float64Array {
  const endS = spec.warmupS + spec.measureS;
  const plans = Array.from({ length: workers }, (_, index) =>
    createPlan(spec.shape, spec.seed, { index, count: workers }),
  );
  const expected = spec.shape.kind === "users" ? 0 : Math.ceil(spec.shape.ratePerS * endS * 1.2 + 64);
  let sends = new Float64Array(expected);
  let count = 0;
  for (;;) {
    let next = plans[0]!;
    for (const plan of plans) if (plan.nextAtS < next.nextAtS) next = plan;
    if (!(next.nextAtS < endS)) return sends.subarray(0, count);
    if (count === sends.length) {
      const longer = new Float64Array(2 * count);
      longer.set(sends);
      sends = longer;
    }
    sends[count++] = next.nextAtS * 1e6;
    next.take();
  }
}

export interface KnownArrivals {
  /** Whether these are the very arrivals; if not, every draw is another guess that agrees with what is known. */
  readonly exact: boolean;
  draw(index: number): SimulatedShape;
}

/**
 * What the server of this trial got, as far as it is known: the planned sends, if their counts per interval are the reported ones;
 * else draws that agree with the reported counts. A closed loop's arrivals depend on the answers: its shape is the draw.
 */
export function arrivalsOf(spec: TrialSpec, load: LoadResult): KnownArrivals {
  const { shape } = spec;
  if (shape.kind === "constant") return { exact: true, draw: () => shape };
  if (shape.kind === "users") return { exact: false, draw: () => shape };
  const timesUs = plannedSendsUs(spec, Math.max(1, load.workers));
  const counts = load.intervals.map((interval) => interval.planned);
  if (matches(timesUs, counts, spec.warmupS, load.intervalS))
    return { exact: true, draw: () => ({ kind: "listed", timesUs }) };
  return {
    exact: false,
    draw: (index) => {
      const random = new Random(spec.seed * 31 + index);
      return {
        kind: "listed",
        timesUs: countedArrivals(counts, load.intervalS, spec.warmupS, shape.ratePerS, random),
      };
    },
  };
}

/** Whether arrivals were the planned ones: a request at an interval's edge may be counted on either side. */
function matches(
  sends: Float64Array,
  counts: readonly number[],
  warmupS: number,
  intervalS: number,
): boolean {
  const planned = new Array<number>(counts.length).fill(0);
  for (const us of sends) {
    const interval = Math.floor((us / 1e6 - warmupS) / intervalS);
    if (interval >= 0 && interval < planned.length) planned[interval]!++;
  }
  return counts.every((count, i) => Math.abs(count - planned[i]!) <= 2);
}
