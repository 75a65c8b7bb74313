/** Where a variant's response times begin to rise steeply. Pure. */
import { isOnCurve, medianCurve, type CurvePoint } from "../results/curve";
import type { ResultVariant } from "../results/result-schema";

/** Fewer places on the curve do not show where it bends. */
const leastPoints = 4;

/**
 * The knee of the curve of response time over rate, up to the SLO rate: the rate that lies farthest below the straight line
 * from the curve's first to its last point (Satopaa et al., "Finding a Kneedle in a Haystack", 2011, for a convex rising curve).
 * Null when the variant has no SLO rate or too few trials below it to show a bend.
 */
export function kneeRate(variant: ResultVariant): number | null {
  const { sloRate } = variant;
  if (!sloRate) return null;
  const curve = curveOf(variant).filter((point) => point.ratePerS <= sloRate.high);
  const [first, last] = [curve[0], curve.at(-1)];
  if (!first || !last || curve.length < leastPoints || last.value <= first.value) return null;
  const below = (point: { ratePerS: number; value: number }) =>
    (point.ratePerS - first.ratePerS) / (last.ratePerS - first.ratePerS) -
    (point.value - first.value) / (last.value - first.value);
  const knee = curve.reduce((best, point) => (below(point) > below(best) ? point : best));
  return below(knee) > 0 ? knee.ratePerS : null;
}

/** The fitted model's curve, or without one that through the trials. */
function curveOf({ modelCurve, trials }: ResultVariant): readonly CurvePoint[] {
  return modelCurve
    ? modelCurve.map(({ ratePerS, quantileMs }) => ({ ratePerS, value: quantileMs }))
    : medianCurve(trials.filter(isOnCurve), (trial) => trial.quantileMs);
}
