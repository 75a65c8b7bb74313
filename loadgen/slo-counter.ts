/** Exact counters of the SLO verdict by interval. They merge by addition and have no bucket error. */
import type { Counts, IntervalResult } from "./load-spec";

/**
 * Length of an interval, model seconds. Ten times the default SLO bound, so neighbouring intervals share few requests, and short
 * enough that a 10 s window still has ten of them for batch means and for the stationarity test.
 */
export const INTERVAL_S = 1;

/** How one request ended: in time, late, failed, or never sent because the in-flight cap was reached. */
export type Ending = "ok" | "late" | "failed" | "shed";

/** Counters of one interval as they travel; everything else follows from them. */
export interface IntervalSums {
  /** Index from the start of the measured window. */
  index: number;
  ok: number;
  /** Includes shed ones. */
  late: number;
  failed: number;
  shed: number;
  /** Sum of the response times of correctly answered requests, microseconds. */
  responseSumUs: number;
  /** In flight at the interval's end. */
  inFlight: number;
}

export class SloCounter {
  private readonly byIndex = new Map<number, IntervalSums>();

  /** Counts a request of interval `index`. `responseUs` only matters for `ok` and `late`. */
  add(index: number, ending: Ending, responseUs = 0): void {
    const sums = this.at(index);
    if (ending === "failed") {
      sums.failed++;
    } else if (ending === "shed") {
      sums.late++;
      sums.shed++;
    } else {
      sums[ending]++;
      sums.responseSumUs += Math.round(responseUs);
    }
  }

  /** Adds what is in flight at the end of interval `index`. */
  addInFlight(index: number, inFlight: number): void {
    this.at(index).inFlight += inFlight;
  }

  merge(intervals: readonly IntervalSums[]): void {
    for (const other of intervals) {
      const sums = this.at(other.index);
      sums.ok += other.ok;
      sums.late += other.late;
      sums.failed += other.failed;
      sums.shed += other.shed;
      sums.responseSumUs += other.responseSumUs;
      sums.inFlight += other.inFlight;
    }
  }

  clear(): void {
    this.byIndex.clear();
  }

  /** Intervals that have something, by index. */
  sums(): IntervalSums[] {
    return [...this.byIndex.values()].sort((one, other) => one.index - other.index);
  }

  /** Intervals 0 .. count - 1, empty ones included. */
  intervals(count: number): IntervalResult[] {
    return Array.from({ length: count }, (_, index) => {
      const sums = this.byIndex.get(index) ?? emptySums(index);
      return {
        index,
        ...countsOf(sums),
        responseSumMs: sums.responseSumUs / 1000,
        answered: sums.ok + sums.late - sums.shed,
        inFlight: sums.inFlight,
      };
    });
  }

  total(): Counts {
    const total = emptySums(0);
    for (const sums of this.byIndex.values()) {
      total.ok += sums.ok;
      total.late += sums.late;
      total.failed += sums.failed;
      total.shed += sums.shed;
    }
    return countsOf(total);
  }

  private at(index: number): IntervalSums {
    let sums = this.byIndex.get(index);
    if (sums === undefined) {
      if (!Number.isSafeInteger(index) || index < 0)
        throw new RangeError(`an interval's index must be an integer >= 0, got ${index}`);
      sums = emptySums(index);
      this.byIndex.set(index, sums);
    }
    return sums;
  }
}

function emptySums(index: number): IntervalSums {
  return { index, ok: 0, late: 0, failed: 0, shed: 0, responseSumUs: 0, inFlight: 0 };
}

function countsOf({ ok, late, failed, shed }: IntervalSums): Counts {
  return { planned: ok + late + failed, ok, late, failed, shed };
}
