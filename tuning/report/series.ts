/** The variants as series of a chart: a key letter, a colour by precision, a marker and a dash within the precision. */
import { isOnCurve } from "../results/curve";
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
