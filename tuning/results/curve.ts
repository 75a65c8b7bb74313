/** A variant's trials as a curve over the request rate. Pure. */
import type { ResultTrial } from "./result-schema";

/** A probe with fixed users finds service times; its rate is not an offered one. Invalid trials say nothing. */
export function isOnCurve(trial: ResultTrial): boolean {
  return trial.valid && !(trial.purpose === "probe" && trial.users !== null);
}

/** Rates closer than this share are one place on a curve. */
const sameRate = 0.004;

export interface CurvePoint {
  readonly ratePerS: number;
  readonly value: number;
}

/** The curve through a series' trials: the median of the trials at each rate. */
export function medianCurve(
  trials: readonly ResultTrial[],
  valueOf: (trial: ResultTrial) => number | null,
): readonly CurvePoint[] {
  const points = trials
    .flatMap((trial) => {
      const value = valueOf(trial);
      return value === null ? [] : [{ ratePerS: trial.ratePerS, value }];
    })
    .sort((a, b) => a.ratePerS - b.ratePerS);
  const groups: CurvePoint[][] = [];
  for (const point of points) {
    const group = groups.at(-1);
    const first = group?.[0];
    if (group && first && point.ratePerS <= first.ratePerS * (1 + sameRate)) group.push(point);
    else groups.push([point]);
  }
  return groups.map((group) => ({
    ratePerS: group.reduce((sum, point) => sum + point.ratePerS, 0) / group.length,
    value: median(group.map((point) => point.value)),
  }));
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const upper = sorted[Math.floor(sorted.length / 2)] ?? NaN;
  const lower = sorted[Math.ceil(sorted.length / 2) - 1] ?? NaN;
  return (lower + upper) / 2;
}
