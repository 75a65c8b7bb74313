/**
 * How steady a server is, by the seconds of its trials: the model gets the trial's own arrivals, so where the server is as steady as its
 * model, every second's mean response time is the model's. What differs is the server's own variation, and one trial of twenty seconds
 * already shows it, while how much trials differ from each other takes ten of them to say.
 */
import type { SimulationResult } from "../../serving-model/window-stats";
import type { LoadResult } from "../../loadgen/load-spec";

/** Sums over the seconds of a trial. */
export interface TimeCourse {
  /** Of squared ln(measured / modelled mean response time). */
  readonly residuals: number;
  /** Of squared -d ln(response time) / d ln(speed): how sharply the seconds tell speeds apart. */
  readonly sensitivity: number;
}

/** Mean response time (ms) of each interval in the model; NaN where nothing was answered. */
export function courseOf({ intervals }: SimulationResult, overheadMs: number): number[] {
  return Array.from(intervals.planned, (planned, i) => {
    const answered = planned - intervals.shed[i]!;
    return answered > 0 ? intervals.responseSumMs[i]! / answered + overheadMs : NaN;
  });
}

/**
 * Null without seconds to compare.
 * @param at modelled courses at the fitted speed, and at speeds (ln) that lie `step` below and above it
 */
export function compareCourses(
  { intervals }: LoadResult,
  at: {
    readonly fitted: readonly number[];
    readonly slower: readonly number[];
    readonly faster: readonly number[];
  },
  step: number,
): TimeCourse | null {
  let [residuals, sensitivity] = [0, 0];
  intervals.forEach(({ responseSumMs, answered }, i) => {
    const residual = Math.log(responseSumMs / answered / at.fitted[i]!);
    const slope = Math.log(at.slower[i]! / at.faster[i]!) / (2 * step);
    if (!Number.isFinite(residual) || !Number.isFinite(slope)) return;
    residuals += residual ** 2;
    sensitivity += slope ** 2;
  });
  return sensitivity > 0 ? { residuals, sensitivity } : null;
}

/** No server's speed wobbles by more (ln): it changed during the trial. */
const mostWobble = 0.1;
/** Nor is a trial that much wilder than the middle one of at least three a sample of the same wobble. */
const mostOverMedian = 3;

/**
 * Standard deviation (ln) of the server's speed from second to second: what its seconds deviate by, over how much they react to the speed
 * (least squares through the origin, over all trials). One trial in which the server throttled does not make it a wild one. 0 when no
 * trial can tell.
 */
export function wobbleOf(courses: readonly (TimeCourse | null)[]): number {
  const told = courses.filter((course) => course !== null);
  const wobbles = told.map(({ residuals, sensitivity }) => Math.sqrt(residuals / sensitivity));
  const median = [...wobbles].sort((a, b) => a - b)[Math.floor(told.length / 2)];
  const most = told.length < 3 ? mostWobble : Math.min(mostWobble, mostOverMedian * median!);
  let [squares, sensitivities] = [0, 0];
  for (const [i, { sensitivity }] of told.entries()) {
    squares += sensitivity * Math.min(most, wobbles[i]!) ** 2;
    sensitivities += sensitivity;
  }
  return sensitivities > 0 ? Math.sqrt(squares / sensitivities) : 0;
}
