/** The variants as series of a chart: a key letter, a colour by precision, a marker and a dash within the precision. */
import type { Result, ResultTrial, ResultVariant } from "../results/result-schema";

export type Marker = "circle" | "square" | "diamond" | "triangle" | "wedge" | "hexagon";

export interface VariantSeries {
  readonly variant: ResultVariant;
  /** A, B ... in the order of the report; then 27, 28 ... */
  readonly key: string;
  /** CSS class that sets the colour. */
  readonly colourClass: string;
  readonly marker: Marker;
  /** SVG dash pattern; empty for a solid line. */
  readonly dash: string;
  /** The recommended one is drawn stronger. */
  readonly recommended: boolean;
  /** Trials that belong on a curve by rate. */
  readonly trials: readonly ResultTrial[];
}

const markers: readonly Marker[] = ["circle", "square", "diamond", "triangle", "wedge", "hexagon"];
const dashes = ["", "7 4", "2 3", "10 3 2 3"];

/** Series in the order of the report: recommended first, then by SLO rate, then those that held none. */
export function seriesOf(result: Result): readonly VariantSeries[] {
  const recommended = result.recommendation.variant;
  const order = (variant: ResultVariant) =>
    variant.name === recommended ? Infinity : (variant.sloRate?.estimate ?? -1);
  const withinPrecision = new Map<string, number>();
  return [...result.variants]
    .sort((a, b) => order(b) - order(a) || 0)
    .map((variant, position) => {
      const { precision } = variant.settings;
      const nth = withinPrecision.get(precision) ?? 0;
      withinPrecision.set(precision, nth + 1);
      return {
        variant,
        key: position < 26 ? String.fromCharCode(65 + position) : String(position + 1),
        colourClass: `c-${precision}`,
        marker: markers[nth % markers.length] ?? "circle",
        dash: dashes[nth % dashes.length] ?? "",
        recommended: variant.name === recommended,
        trials: variant.trials.filter(isOnCurve),
      };
    });
}

/** A probe with fixed users finds service times; its rate is not an offered one. Invalid trials say nothing. */
function isOnCurve(trial: ResultTrial): boolean {
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
