/** The report's three charts over the request rate. */
import { medianCurve, type CurvePoint } from "../results/curve";
import type { Result, ResultTrial, ResultVariant } from "../results/result-schema";
import { renderChart, type ChartBadge, type ChartCurve, type ChartSpec, type Frame } from "./chart";
import { formatBatch, formatMs, formatQuantile, formatRate, formatShare, formatSlo } from "./format";
import type { Html } from "./html";
import { linearScale, powerOfTwoScale, roundUp, type Scale } from "./scale";
import type { VariantSeries } from "./series";

/** Wide for screens and paper, narrow for phones: text keeps its size. */
export type ChartSize = "wide" | "half" | "narrow";

const frames: Readonly<Record<ChartSize, Frame>> = {
  wide: { width: 1080, height: 430, left: 46, right: 24, top: 36, bottom: 46 },
  half: { width: 524, height: 290, left: 46, right: 20, top: 36, bottom: 46 },
  narrow: { width: 350, height: 300, left: 42, right: 16, top: 34, bottom: 46 },
};

const xTickCount: Readonly<Record<ChartSize, number>> = { wide: 12, half: 6, narrow: 4 };

type ModelPoint = NonNullable<ResultVariant["modelCurve"]>[number];
type Value = (trial: ResultTrial) => number | null;
type Predicted = (point: ModelPoint) => number;

/** Response time at the SLO's quantile by rate, up to twice the bound; what lies higher is marked at the upper edge. */
export function rateLatencyChart(result: Result, all: readonly VariantSeries[], size: ChartSize): Html {
  const frame = frames[size];
  const { boundMs, quantile } = result.slo;
  const y = linearScale(
    2 * boundMs,
    frame.height - frame.bottom,
    frame.top,
    size === "narrow" ? 4 : 8,
    (value) => formatRateLabel(value),
  );
  const badges = all.flatMap((series): ChartBadge[] => {
    const { sloRate } = series.variant;
    return sloRate ? [{ series, ratePerS: sloRate.estimate, low: sloRate.low, high: sloRate.high }] : [];
  });
  return renderChart({
    ...common(result, all, size, `latency-${size}`),
    title: `${formatQuantile(quantile)} response time by request rate`,
    description:
      `One curve a variant. The line is the SLO, ${formatSlo(result.slo)}; letters mark each variant's SLO rate. ` +
      all
        .map(
          ({ key, variant }) => `${key}: ${variant.name}, ${formatRate(variant.sloRate?.estimate ?? null)}`,
        )
        .join("; "),
    y,
    yLabel: `${formatQuantile(quantile)} response time, ms`,
    curves: curvesOf(
      result,
      all,
      (trial) => trial.quantileMs,
      (point) => point.quantileMs,
      formatMs,
    ),
    limit: { value: boundMs, label: `SLO: ${formatSlo(result.slo)}` },
    badges,
  });
}

/** Mean batch by rate; null when no server reported batches. */
export function meanBatchChart(result: Result, all: readonly VariantSeries[], size: ChartSize): Html | null {
  const value: Value = (trial) => trial.meanBatch;
  const measured = largestValue(all, value);
  if (measured === null) return null;
  const predicted = all.flatMap(({ variant }) => variant.modelCurve?.map((point) => point.meanBatch) ?? []);
  const largest = Math.max(measured, ...predicted);
  const frame = frames[size];
  return renderChart({
    ...common(result, all, size, `batch-${size}`),
    title: "Mean batch by request rate",
    description: "Requests that one execution carries on average, on an axis of powers of two.",
    y: powerOfTwoScale(largest, frame.height - frame.bottom, frame.top),
    yLabel: "mean batch",
    curves: curvesOf(result, all, value, (point) => point.meanBatch, formatBatch),
  });
}

/** Busy share of the GPU by rate; null when the server has no GPU metrics. */
export function gpuBusyChart(result: Result, all: readonly VariantSeries[], size: ChartSize): Html | null {
  const value: Value = (trial) => trial.gpuBusy;
  if (largestValue(all, value) === null) return null;
  const frame = frames[size];
  return renderChart({
    ...common(result, all, size, `gpu-${size}`),
    title: "GPU busy by request rate",
    description: "Share of the time in which the GPU executes something.",
    y: linearScale(1, frame.height - frame.bottom, frame.top, 5, (share) => String(Math.round(share * 100))),
    yLabel: "GPU busy, %",
    curves: curvesOf(
      result,
      all,
      value,
      (point) => point.gpuBusy,
      (share) => formatShare(share),
    ),
  });
}

function common(
  result: Result,
  all: readonly VariantSeries[],
  size: ChartSize,
  id: string,
): Pick<ChartSpec, "id" | "frame" | "x" | "xLabel" | "limit" | "badges"> {
  return {
    id,
    frame: frames[size],
    x: rateScale(result, all, size),
    xLabel: "requests/s",
    limit: null,
    badges: [],
  };
}

function rateScale(result: Result, all: readonly VariantSeries[], size: ChartSize): Scale {
  const rates = all.flatMap((series) => series.trials.map((trial) => trial.ratePerS));
  const ends = result.variants.map((variant) => variant.sloRate?.high ?? 0);
  const max = roundUp(Math.max(1, ...rates, ...ends) * 1.02);
  const frame = frames[size];
  return linearScale(max, frame.left, frame.width - frame.right, xTickCount[size], formatRateLabel);
}

function formatRateLabel(value: number): string {
  return value.toLocaleString("en-US", { maximumFractionDigits: 2 });
}

function largestValue(all: readonly VariantSeries[], value: Value): number | null {
  const values = all.flatMap((series) => series.trials.map(value)).filter((each) => each !== null);
  return values.length > 0 ? Math.max(...values) : null;
}

/** The line of a variant: the fitted model's, or without one that through the medians of its trials. */
function curveOf(
  { variant, trials }: VariantSeries,
  value: Value,
  predicted: Predicted,
): readonly CurvePoint[] {
  if (!variant.modelCurve) return medianCurve(trials, value);
  return variant.modelCurve.map((point) => ({ ratePerS: point.ratePerS, value: predicted(point) }));
}

function curvesOf(
  result: Result,
  all: readonly VariantSeries[],
  value: Value,
  predicted: Predicted,
  format: (value: number) => string,
): readonly ChartCurve[] {
  return all.map((series) => ({
    series,
    curve: curveOf(series, value, predicted),
    points: series.trials.flatMap((trial) => {
      const y = value(trial);
      if (y === null) return [];
      const tip =
        `${series.variant.name}: ${format(y)} at ${formatRate(trial.ratePerS)} requests/s, ${trial.verdict} ` +
        `(${formatQuantile(result.slo.quantile)} ${formatMs(trial.quantileMs)}, ${trial.purpose})`;
      return [{ ratePerS: trial.ratePerS, value: y, verdict: trial.verdict, tip }];
    }),
  }));
}
