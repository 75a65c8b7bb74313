/** One panel as SVG: title, lines or stacked areas, limit, regions of annotations, axes, legend. */
import type { TimeRange } from "./draw";
import { escapeXml, lineColors, palette, ticksTo, valueText } from "./svg";

type Point = readonly [timeS: number, value: number];

export interface Line {
  readonly legend: string;
  readonly points: readonly Point[];
}

export interface Region {
  readonly title: string;
  readonly fromS: number;
  readonly toS: number;
  readonly color: string;
}

export interface DrawnPanel {
  readonly title: string;
  readonly unit: string;
  readonly lines: readonly Line[];
  readonly regions: readonly Region[];
  readonly isStacked: boolean;
  readonly limit: number | undefined;
  readonly max: number | undefined;
}

interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

export function drawPanel(panel: DrawnPanel, box: Box, { fromS, toS, stepS }: TimeRange): string {
  const plot = { x: box.x + 62, y: box.y + 34, width: box.width - 76, height: box.height - 84 };
  // Lines that are zero all the time say nothing in a stack.
  const lines = panel.isStacked
    ? stacked(panel.lines.filter(({ points }) => points.some(([, value]) => value !== 0)))
    : panel.lines;
  const largest = Math.max(0, ...lines.flatMap(({ points }) => points.map(([, value]) => value)));
  const ticks = ticksTo(panel.max ?? Math.max(largest, panel.limit ?? 0) * 1.02, panel.unit);
  const top = ticks.at(-1)!;
  const xOf = (timeS: number): number => plot.x + (plot.width * (timeS - fromS)) / (toS - fromS);
  const yOf = (value: number): number => plot.y + plot.height * (1 - Math.min(value, top) / top);
  const parts = [
    `<rect x="${box.x}" y="${box.y}" width="${box.width}" height="${box.height}" rx="4" fill="${palette.panel}" stroke="${palette.border}"/>`,
    text(box.x + 12, box.y + 22, panel.title, { size: 14, weight: 600 }),
    ...drawRegions(panel.regions, plot, xOf),
    ...ticks.map((tick) => {
      const y = yOf(tick).toFixed(1);
      const line = `<line x1="${plot.x}" y1="${y}" x2="${plot.x + plot.width}" y2="${y}" stroke="${palette.grid}"/>`;
      return (
        line +
        text(plot.x - 6, yOf(tick) + 4, valueText(tick, panel.unit), { anchor: "end", fill: palette.faint })
      );
    }),
    ...timeTicks(toS - fromS).map((afterS) =>
      text(xOf(fromS + afterS), plot.y + plot.height + 16, clock(afterS), {
        anchor: "middle",
        fill: palette.faint,
      }),
    ),
  ];
  const colorOf = (index: number): string => lineColors[index % lineColors.length]!;
  // The highest area first, so that the lower ones lie on it.
  const order = panel.isStacked
    ? lines.map((_line, index) => index).reverse()
    : lines.map((_line, index) => index);
  for (const index of order) {
    for (const run of runsOf(lines[index]!.points, 3 * stepS)) {
      const path = run.map(([time, value]) => `${xOf(time).toFixed(1)},${yOf(value).toFixed(1)}`).join(" L");
      if (panel.isStacked) {
        const floor = yOf(0).toFixed(1);
        const area = `M${xOf(run[0]![0]).toFixed(1)},${floor} L${path} L${xOf(run.at(-1)![0]).toFixed(1)},${floor} Z`;
        parts.push(`<path d="${area}" fill="${colorOf(index)}"/>`);
      } else {
        parts.push(
          `<path d="M${path}" fill="none" stroke="${colorOf(index)}" stroke-width="2" stroke-linejoin="round" stroke-linecap="round"/>`,
        );
      }
    }
  }
  if (panel.limit !== undefined) {
    const y = yOf(panel.limit).toFixed(1);
    parts.push(
      `<line x1="${plot.x}" y1="${y}" x2="${plot.x + plot.width}" y2="${y}" stroke="${palette.limit}" stroke-width="1.5" stroke-dasharray="6 4"/>`,
    );
  }
  return [...parts, drawLegend(lines, colorOf, box)].join("\n");
}

/**
 * Trials are bands with their names, where there is room and the one before has another; alerts overlap, so they are thin bars at the
 * bottom, as Grafana draws them.
 */
function drawRegions(regions: readonly Region[], plot: Box, xOf: (timeS: number) => number): string[] {
  let freeFrom = -Infinity;
  let named = "";
  return regions.map(({ title, fromS, toS, color }) => {
    const from = Math.max(plot.x, xOf(fromS));
    const width = Math.max(2, Math.min(plot.x + plot.width, xOf(toS)) - from);
    const rect = (y: number, height: number, fill: string, opacity: number) =>
      `<rect x="${from.toFixed(1)}" y="${y}" width="${width.toFixed(1)}" height="${height}" fill="${fill}" fill-opacity="${opacity}"/>`;
    if (color === "red") return rect(plot.y + plot.height - 4, 4, palette.limit, 0.45);
    const isNamed = title !== named && from >= freeFrom;
    if (isNamed) {
      freeFrom = from + textWidth(title);
      named = title;
    }
    const name = isNamed ? text(from + 2, plot.y + 9, title, { size: 10, fill: palette.trial }) : "";
    const edge = `<line x1="${from.toFixed(1)}" y1="${plot.y}" x2="${from.toFixed(1)}" y2="${plot.y + plot.height}" stroke="${palette.trial}" stroke-opacity="0.35"/>`;
    return rect(plot.y, plot.height, palette.trial, 0.06) + edge + name;
  });
}

function drawLegend(lines: readonly Line[], colorOf: (index: number) => string, box: Box): string {
  const parts: string[] = [];
  const y = box.y + box.height - 12;
  const rightX = box.x + box.width - 70;
  let x = box.x + 14;
  // What is zero all the time comes last: there is not room for all.
  const order = lines.map((line, index) => ({
    ...line,
    index,
    isZero: line.points.every(([, value]) => value === 0),
  }));
  order.sort((a, b) => Number(a.isZero) - Number(b.isZero) || a.index - b.index);
  for (const [position, { legend, index }] of order.entries()) {
    const width = 32 + textWidth(legend);
    if (x + width > rightX && position < order.length - 1) {
      parts.push(text(x, y, `and ${order.length - position} more`, { fill: palette.faint }));
      break;
    }
    parts.push(`<rect x="${x}" y="${y - 7}" width="12" height="4" rx="2" fill="${colorOf(index)}"/>`);
    parts.push(text(x + 17, y, legend, { fill: palette.text }));
    x += width;
  }
  return parts.join("\n");
}

/** Roughly, in the size of legends. */
function textWidth(content: string): number {
  return [...content].reduce((sum, letter) => sum + (/[A-Z_]/.test(letter) ? 7.6 : 6), 0);
}

/** Each line on top of those before it. */
function stacked(lines: readonly Line[]): Line[] {
  const sums = new Map<number, number>();
  return lines.map(({ legend, points }) => ({
    legend,
    points: points.map(([time, value]): Point => {
      const sum = (sums.get(time) ?? 0) + value;
      sums.set(time, sum);
      return [time, sum];
    }),
  }));
}

/** Parts of a line between gaps. */
function runsOf(points: readonly Point[], gapS: number): Point[][] {
  const runs: Point[][] = [];
  for (const point of points) {
    const run = runs.at(-1);
    const last = run?.at(-1);
    if (run !== undefined && last !== undefined && point[0] - last[0] <= gapS) run.push(point);
    else runs.push([point]);
  }
  return runs;
}

function timeTicks(spanS: number): number[] {
  const step = [15, 30, 60, 120, 300, 600].find((candidate) => spanS / candidate <= 6) ?? 3600;
  return Array.from({ length: Math.floor(spanS / step) + 1 }, (_unused, index) => index * step);
}

/** Minutes and seconds since the start. */
function clock(seconds: number): string {
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}

interface TextStyle {
  readonly size?: number;
  readonly weight?: number;
  readonly anchor?: "start" | "middle" | "end";
  readonly fill?: string;
}

function text(x: number, y: number, content: string, style: TextStyle = {}): string {
  const { size = 11, weight = 400, anchor = "start", fill = palette.text } = style;
  return `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" font-size="${size}" font-weight="${weight}" text-anchor="${anchor}" fill="${fill}">${escapeXml(content)}</text>`;
}
