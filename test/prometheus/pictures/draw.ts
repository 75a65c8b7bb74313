/** Draws dashboards from queried data, as SVG: for the documentation, and to see that no panel is empty. Grafana is not involved. */
import type { Dashboard, Panel } from "@grafana/grafana-foundation-sdk/dashboard";
import type { Prometheus, RangeSeries } from "../harness/prometheus";
import { drawPanel, type DrawnPanel, type Line, type Region } from "./panel-svg";
import { escapeXml, palette } from "./svg";

export interface TimeRange {
  readonly fromS: number;
  readonly toS: number;
  readonly stepS: number;
  /** Stands in for Grafana's `$__rate_interval`. */
  readonly window: string;
}

export interface DrawnDashboard {
  readonly file: string;
  readonly svg: string;
  /** Titles of panels without any data. */
  readonly empty: readonly string[];
}

const columnPx = 64;
const rowPx = 32;
const headerPx = 56;
const gapPx = 8;

/** All dashboards, each over the same time. */
export async function drawDashboards(
  dashboards: Readonly<Record<string, Dashboard>>,
  prometheus: Prometheus,
  range: TimeRange,
): Promise<DrawnDashboard[]> {
  const drawn: DrawnDashboard[] = [];
  for (const [file, dashboard] of Object.entries(dashboards))
    drawn.push(await drawDashboard(file, dashboard, prometheus, range));
  return drawn;
}

async function drawDashboard(
  file: string,
  dashboard: Dashboard,
  prometheus: Prometheus,
  range: TimeRange,
): Promise<DrawnDashboard> {
  const query = (expr: string): Promise<RangeSeries[]> =>
    prometheus.queryRange(
      expr.replaceAll("$__rate_interval", range.window),
      range.fromS,
      range.toS,
      range.stepS,
    );
  const regions = await regionsOf(dashboard, query, range.stepS);
  const panels = (dashboard.panels ?? []).filter((panel): panel is Panel => "targets" in panel);
  const empty: string[] = [];
  const parts: string[] = [];
  let bottomPx = headerPx;
  for (const panel of panels) {
    const lines = await linesOf(panel, query);
    if (lines.length === 0) empty.push(panel.title ?? "");
    const { x, y, w, h } = panel.gridPos ?? { x: 0, y: 0, w: 8, h: 8 };
    const box = {
      x: x * columnPx + gapPx,
      y: y * rowPx + headerPx,
      width: w * columnPx - gapPx,
      height: h * rowPx - gapPx,
    };
    bottomPx = Math.max(bottomPx, box.y + box.height);
    parts.push(drawPanel(drawnPanel(panel, lines, regions), box, range));
  }
  const width = 24 * columnPx + gapPx;
  const height = bottomPx + gapPx;
  const title = `<text x="${gapPx + 4}" y="36" font-size="22" font-weight="600" fill="${palette.text}">${escapeXml(dashboard.title ?? "")}</text>`;
  const svg = [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="Inter, Helvetica, Arial, sans-serif">`,
    `<rect width="${width}" height="${height}" fill="${palette.page}"/>`,
    title,
    ...parts,
    "</svg>",
    "",
  ].join("\n");
  return { file, svg, empty };
}

async function linesOf(panel: Panel, query: (expr: string) => Promise<RangeSeries[]>): Promise<Line[]> {
  const lines: Line[] = [];
  for (const target of panel.targets ?? []) {
    const { expr = "", legendFormat = "" } = target as { expr?: string; legendFormat?: string };
    for (const { labels, points } of await query(expr)) {
      const finite = points.filter(([, value]) => Number.isFinite(value));
      if (finite.length > 0) lines.push({ legend: filled(legendFormat, labels), points: finite });
    }
  }
  return lines;
}

/** Runs of samples of each series of the annotations, as Grafana joins them. */
async function regionsOf(
  dashboard: Dashboard,
  query: (expr: string) => Promise<RangeSeries[]>,
  stepS: number,
): Promise<Region[]> {
  const regions: Region[] = [];
  for (const { expr = "", titleFormat = "", iconColor } of dashboard.annotations?.list ?? []) {
    for (const { labels, points } of await query(expr)) {
      let start: number | undefined;
      points.forEach(([time], index) => {
        start ??= time;
        const next = points[index + 1]?.[0];
        if (next !== undefined && next - time <= 1.5 * stepS) return;
        regions.push({
          title: filled(titleFormat, labels),
          fromS: start,
          toS: time + stepS,
          color: iconColor,
        });
        start = undefined;
      });
    }
  }
  return regions.sort((a, b) => a.fromS - b.fromS);
}

function filled(format: string, labels: Readonly<Record<string, string>>): string {
  return format.replace(/\{\{(\w+)\}\}/g, (_whole, label: string) => labels[label] ?? "");
}

function drawnPanel(panel: Panel, lines: readonly Line[], regions: readonly Region[]): DrawnPanel {
  const defaults = panel.fieldConfig?.defaults;
  const custom = defaults?.custom as { stacking?: { mode?: string } } | undefined;
  return {
    title: panel.title ?? "",
    unit: defaults?.unit ?? "",
    lines,
    regions,
    isStacked: custom?.stacking?.mode === "normal",
    limit: defaults?.thresholds?.steps.find(({ color }) => color === "red")?.value ?? undefined,
    max: defaults?.max,
  };
}
