/** The dashboards as Grafana gets them: everything that it needs to draw them, and a word in the documentation for every panel. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { dashboards, dashboardUids, type DashboardInput } from "../../monitoring/dashboards";
import { dataSources, prometheusUid } from "../../monitoring/data-sources";
import { knownMetrics, metricNames } from "./metric-names";

const input: DashboardInput = {
  sloPercentile: 95,
  sloBoundMs: 100,
  scrapeIntervalS: 5,
  dataSourceUid: prometheusUid,
  serverUsdPerH: 0.5,
};

/** The part of a dashboard's JSON that is looked at. */
interface Written {
  readonly uid: string;
  readonly title: string;
  readonly tags: readonly string[];
  readonly panels: readonly {
    readonly id: number;
    readonly type: string;
    readonly title: string;
    readonly description: string;
    readonly datasource: { readonly type: string; readonly uid: string };
    readonly fieldConfig: {
      readonly defaults: {
        readonly unit: string;
        readonly thresholds?: {
          readonly steps: readonly { readonly color: string; readonly value: number | null }[];
        };
        readonly custom?: { readonly thresholdsStyle?: { readonly mode: string } };
      };
    };
    readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
    readonly targets: readonly {
      readonly refId: string;
      readonly expr: string;
      readonly legendFormat: string;
      readonly datasource: { readonly uid: string };
    }[];
  }[];
  readonly annotations: { readonly list: readonly Annotation[] };
}

interface Annotation {
  readonly name: string;
  readonly enable: boolean;
  readonly expr: string;
  readonly step: string;
  readonly titleFormat: string;
  readonly datasource: { readonly uid: string };
}

const written = Object.entries(dashboards(input)).map(
  ([file, dashboard]) => [file, JSON.parse(JSON.stringify(dashboard)) as Written] as const,
);
const operationsGuide = readFileSync(join(__dirname, "../../docs/operations.md"), "utf8");

it("knows a metric's name from a function's", () => {
  expect(metricNames('sum by (model) (rate(nv_inference_count{a="b"}[20s])) / clamp_min(up, 1)')).toEqual([
    "nv_inference_count",
    "up",
  ]);
});

it("have uids and titles of their own, which links can use", () => {
  expect(written.map(([, { uid }]) => uid)).toEqual(Object.values(dashboardUids));
  expect(new Set(written.map(([, { title }]) => title)).size).toBe(written.length);
});

describe.each(written)("%s", (_file, { panels, annotations, tags }) => {
  it("has panels with ids, references and places of their own", () => {
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    for (const { gridPos, targets, type } of panels) {
      expect(type).toBe("timeseries");
      expect(gridPos.x + gridPos.w).toBeLessThanOrEqual(24);
      expect(targets.length).toBeGreaterThan(0);
      expect(new Set(targets.map(({ refId }) => refId)).size).toBe(targets.length);
      expect(new Set(targets.map(({ legendFormat }) => legendFormat)).size).toBe(targets.length);
    }
    const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_unused, cell) => `${x + (cell % w)},${y + Math.floor(cell / w)}`),
    );
    expect(new Set(cells).size).toBe(cells.length);
  });

  it("has a unit, a legend, a description and the provisioned data source in every panel", () => {
    for (const { fieldConfig, datasource, description, targets } of panels) {
      expect(fieldConfig.defaults.unit).not.toBe("");
      expect(description.length).toBeGreaterThan(10);
      expect(datasource).toEqual({ type: "prometheus", uid: prometheusUid });
      for (const target of targets) {
        expect(target.legendFormat).not.toBe("");
        expect(target.datasource.uid).toBe(prometheusUid);
      }
    }
  });

  it("asks only for metrics that there are, and over windows that follow the zoom", () => {
    for (const expr of panels.flatMap(({ targets }) => targets.map((target) => target.expr))) {
      const names = metricNames(expr.replaceAll("$__rate_interval", "20s"));
      expect(names.filter((name) => !knownMetrics.has(name))).toEqual([]);
      for (const [, range] of expr.matchAll(/\[([^\]]*)\]/g)) expect(range).toBe("$__rate_interval");
    }
  });

  it("marks trials or alerts, and finds the other dashboards", () => {
    expect(annotations.list.length).toBeGreaterThan(0);
    for (const { expr, enable, step, titleFormat, datasource } of annotations.list) {
      expect(metricNames(expr).every((name) => knownMetrics.has(name))).toBe(true);
      expect({ enable, step, uid: datasource.uid }).toEqual({ enable: true, step: "5s", uid: prometheusUid });
      expect(titleFormat).toMatch(/^\{\{\w+\}\}$/);
    }
    expect(tags).toEqual(["triton-slo"]);
  });

  it.each(panels.map(({ title }) => title))("the guide says what %s means", (title) => {
    expect(operationsGuide).toMatch(new RegExp(`^\\| ${title} \\|`, "m"));
  });
});

it("the objective is a line where response times are drawn", () => {
  const lines = written.flatMap(([, { panels }]) => panels.filter(({ title }) => title === "Response time"));
  expect(lines).toHaveLength(3);
  for (const { fieldConfig } of lines) {
    expect(fieldConfig.defaults.thresholds?.steps.at(-1)).toEqual({ color: "red", value: 100 });
    expect(fieldConfig.defaults.custom?.thresholdsStyle?.mode).toBe("line");
  }
});

it("cost is drawn where prices are known", () => {
  const titles = (serverUsdPerH: number | null) =>
    (dashboards({ ...input, serverUsdPerH })["operations.json"]?.panels ?? []).map(({ title }) => title);
  expect(titles(0.5)).toContain("Cost per million requests");
  expect(titles(null)).not.toContain("Cost per million requests");
});

it("the data source knows the interval, from which Grafana makes windows of four readings", () => {
  const { datasources } = JSON.parse(dataSources("http://p:9090", 5)) as {
    datasources: [Record<string, unknown>];
  };
  expect(datasources[0]).toMatchObject({
    uid: prometheusUid,
    url: "http://p:9090",
    editable: false,
    jsonData: { timeInterval: "5s" },
  });
});
