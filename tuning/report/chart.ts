/** A chart over the request rate: one curve a variant, a marker a trial. Pure: specification in, SVG out. */
import type { CurvePoint } from "../results/curve";
import { html, type Html } from "./html";
import { markerAt, px } from "./marker";
import type { Scale } from "./scale";
import type { VariantSeries } from "./series";

/** A trial on the chart. */
export interface ChartPoint extends CurvePoint {
  /** pass, fail or undecided. */
  readonly verdict: string;
  /** Shown when the pointer rests on it. */
  readonly tip: string;
}

export interface ChartCurve {
  readonly series: VariantSeries;
  readonly curve: readonly CurvePoint[];
  readonly points: readonly ChartPoint[];
}

/** A badge with a variant's key at its SLO rate, with the interval as a whisker. */
export interface ChartBadge {
  readonly series: VariantSeries;
  readonly ratePerS: number;
  readonly low: number;
  readonly high: number;
}

export interface Frame {
  readonly width: number;
  readonly height: number;
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
}

export interface ChartSpec {
  /** Unique in the page. */
  readonly id: string;
  readonly title: string;
  readonly description: string;
  readonly frame: Frame;
  readonly x: Scale;
  readonly y: Scale;
  readonly xLabel: string;
  readonly yLabel: string;
  readonly curves: readonly ChartCurve[];
  /** The SLO: a line, and the region above it. */
  readonly limit: { readonly value: number; readonly label: string } | null;
  readonly badges: readonly ChartBadge[];
}

const badgeRadius = 9;
/** Pixels that the limit's label needs between two badges. */
const limitLabelWidth = 180;

export function renderChart(spec: ChartSpec): Html {
  const { frame, id } = spec;
  const [innerRight, innerBottom] = [frame.width - frame.right, frame.height - frame.bottom];
  return html`<svg
    class="chart"
    viewBox="0 0 ${frame.width} ${frame.height}"
    role="img"
    aria-labelledby="${id}-t ${id}-d"
  >
    <title id="${id}-t">${spec.title}</title>
    <desc id="${id}-d">${spec.description}</desc>
    <clipPath id="${id}-c">
      <rect
        x="${frame.left}"
        y="${frame.top - 1}"
        width="${innerRight - frame.left + 6}"
        height="${innerBottom - frame.top + 1}"
      />
    </clipPath>
    ${limitRegion(spec)} ${grid(spec)} ${spec.curves.map((curve) => renderCurve(spec, curve))} ${badges(spec)}
    <text class="axis-label" x="${innerRight}" y="${frame.height - 4}" text-anchor="end">${spec.xLabel}</text>
    <text class="axis-label" x="${frame.left - 34}" y="${frame.top - 12}">${spec.yLabel}</text>
  </svg>`;
}

function grid(spec: ChartSpec): Html {
  const { frame, x, y } = spec;
  const [innerRight, innerBottom] = [frame.width - frame.right, frame.height - frame.bottom];
  const rows = y.ticks.map((tick) => {
    const at = px(y.at(tick.value));
    return html`<line class="grid" x1="${frame.left}" x2="${innerRight}" y1="${at}" y2="${at}" />
      <text class="tick" x="${frame.left - 8}" y="${at}" dy="0.35em" text-anchor="end">${tick.label}</text>`;
  });
  const columns = x.ticks.map(
    (tick) =>
      html`<text class="tick" x="${px(x.at(tick.value))}" y="${innerBottom + 18}" text-anchor="middle">
        ${tick.label}
      </text>`,
  );
  return html`<g>
    ${rows} ${columns}
    <line class="axis" x1="${frame.left}" x2="${innerRight}" y1="${innerBottom}" y2="${innerBottom}" />
  </g>`;
}

function limitRegion(spec: ChartSpec): Html | null {
  const { limit, frame, y } = spec;
  if (!limit) return null;
  const at = px(y.at(limit.value));
  const innerRight = frame.width - frame.right;
  const space = widestGap(spec);
  const label =
    space.end - space.start > limitLabelWidth
      ? html`<text
          class="limit-label"
          x="${px((space.start + space.end) / 2)}"
          y="${at}"
          dy="-0.5em"
          text-anchor="middle"
        >
          ${limit.label}
        </text>`
      : html`<text class="limit-label" x="${innerRight}" y="${frame.top - 12}" text-anchor="end"
          >${limit.label}</text
        >`;
  return html`<g>
    <rect
      class="over-limit"
      x="${frame.left}"
      y="${frame.top}"
      width="${innerRight - frame.left}"
      height="${px(y.at(limit.value) - frame.top)}"
    />
    <line class="limit" x1="${frame.left}" x2="${innerRight}" y1="${at}" y2="${at}" />
    ${label}
  </g>`;
}

/** The widest space that the badges leave on the limit's line, pixels. */
function widestGap(spec: ChartSpec): { start: number; end: number } {
  const { frame, x } = spec;
  const taken = spec.badges.map((badge) => x.at(badge.ratePerS));
  const edges = [frame.left, ...taken.sort((a, b) => a - b), frame.width - frame.right];
  const gaps = edges.slice(1).map((end, index) => ({ start: edges[index] ?? end, end }));
  return gaps.reduce((best, gap) => (gap.end - gap.start > best.end - best.start ? gap : best));
}

function renderCurve(spec: ChartSpec, { series, curve, points }: ChartCurve): Html {
  const { x, y, id } = spec;
  const path = curve
    .map((point, index) => `${index ? "L" : "M"}${px(x.at(point.ratePerS))} ${px(y.at(point.value))}`)
    .join("");
  const marks = points.map((point) => {
    const offScale = point.value > y.max;
    const mark = offScale
      ? markerAt("triangle", x.at(point.ratePerS), y.at(y.max) + 6, 3.2, `mark ${point.verdict}`)
      : markerAt(series.marker, x.at(point.ratePerS), y.at(point.value), 3.6, `mark ${point.verdict}`);
    return html`<g data-tip>${mark}<title>${point.tip}</title></g>`;
  });
  const strength = series.recommended ? "curve strong" : "curve";
  return html`<g class="series ${series.colourClass}" data-key="${series.key}">
    <path
      class="${strength}"
      d="${path}"
      clip-path="url(#${id}-c)"
      stroke-dasharray="${series.dash || "none"}"
    />${marks}</g
  >`;
}

/** Badges sit on the SLO line; those that would overlap are lifted above each other. */
function badges(spec: ChartSpec): readonly Html[] {
  const { limit, x, y } = spec;
  if (!limit) return [];
  const base = y.at(limit.value);
  const placed: { x: number; level: number }[] = [];
  return [...spec.badges]
    .sort((a, b) => a.ratePerS - b.ratePerS)
    .map(({ series, ratePerS, low, high }) => {
      const at = x.at(ratePerS);
      const near = placed.filter((other) => Math.abs(other.x - at) < 2 * badgeRadius + 2);
      const level = firstFree(near.map((other) => other.level));
      placed.push({ x: at, level });
      const centre = base - (badgeRadius + 8) - level * (2 * badgeRadius + 3);
      return html`<g class="series badge ${series.colourClass}" data-key="${series.key}">
        <line class="leader" x1="${px(at)}" x2="${px(at)}" y1="${px(centre)}" y2="${px(base)}" />
        <line
          class="whisker"
          x1="${px(x.at(low))}"
          x2="${px(x.at(high))}"
          y1="${px(base)}"
          y2="${px(base)}"
        />
        <circle cx="${px(at)}" cy="${px(centre)}" r="${badgeRadius}" />
        <text x="${px(at)}" y="${px(centre)}" dy="0.36em" text-anchor="middle">${series.key}</text>
      </g>`;
    });
}

function firstFree(taken: readonly number[]): number {
  let level = 0;
  while (taken.includes(level)) level++;
  return level;
}
