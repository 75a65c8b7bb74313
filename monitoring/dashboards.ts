import { loadQueries, tritonQueries, type LoadQueries } from "./queries";

export interface DashboardInput {
  /** PromQL rate window, seconds. */
  readonly windowS: number;
  /** SLO: this percentile within this bound. */
  readonly sloPercentile: number;
  readonly sloBoundMs: number;
  /** Uid of the provisioned data source. */
  readonly dataSourceUid: string;
}

/** Uid of the provisioned Prometheus data source. */
export const prometheusUid = "prometheus";

interface Panel {
  readonly title: string;
  /** Grafana unit id. */
  readonly unit: string;
  /** Queries by legend. */
  readonly series: Readonly<Record<string, string>>;
  /** Line to draw, in the panel's unit. */
  readonly limit?: number;
}

/** Grafana's data-source provisioning for one Prometheus. */
export function dataSources(prometheusUrl: string, scrapeIntervalS: number): string {
  return JSON.stringify({
    apiVersion: 1,
    datasources: [
      {
        name: "Prometheus",
        uid: prometheusUid,
        type: "prometheus",
        access: "proxy",
        url: prometheusUrl,
        isDefault: true,
        editable: false,
        jsonData: { timeInterval: `${scrapeIntervalS}s` },
      },
    ],
  });
}

/** The panels that the tuning documents build by hand, and the split of the latency beside them. */
export function servingDashboard(input: DashboardInput): string {
  const queries = tritonQueries(input.windowS);
  const load = loadQueries(input.windowS);
  const panels: readonly Panel[] = [
    { title: "Requests per second", unit: "reqps", series: { "{{model}}": queries.requestRatePerS } },
    { title: "GPU utilisation", unit: "percentunit", series: { GPU: queries.gpuBusy } },
    { title: "Mean batch size", unit: "none", series: { "{{model}}": queries.meanBatch } },
    { title: "GPU memory", unit: "bytes", series: { used: queries.gpuMemoryUsedBytes } },
    sloPanel(input, load),
    {
      title: "Server time of a request",
      unit: "ms",
      series: {
        "queue {{model}}": queries.meanQueueMs,
        "input {{model}}": queries.meanComputeInputMs,
        "inference {{model}}": queries.meanComputeInferMs,
        "output {{model}}": queries.meanComputeOutputMs,
      },
    },
    { title: "Failures per second", unit: "reqps", series: { "{{model}}": queries.failureRatePerS } },
  ];
  return dashboard("triton-serving", "Triton: serving", panels, input.dataSourceUid);
}

/** The load generator's side: whether it kept its plan, and what came back. */
export function loadDashboard(input: DashboardInput): string {
  const load = loadQueries(input.windowS);
  const panels: readonly Panel[] = [
    { title: "Requests per second", unit: "reqps", series: { planned: load.requestRatePerS } },
    sloPanel(input, load),
    {
      title: "Answers within the bound",
      unit: "percentunit",
      series: { share: load.withinBound(input.sloBoundMs) },
      limit: input.sloPercentile / 100,
    },
    { title: "Sent", unit: "MBs", series: { "all workers": load.sentMBPerS } },
    { title: "Lateness of sends, 99th percentile", unit: "ms", series: { worst: load.latenessMs } },
    { title: "In flight", unit: "none", series: { requests: load.inFlight, workers: load.workers } },
  ];
  return dashboard("triton-load", "Triton: load", panels, input.dataSourceUid);
}

function sloPanel({ sloPercentile, sloBoundMs }: DashboardInput, load: LoadQueries): Panel {
  return {
    title: `Response time, ${sloPercentile}th percentile`,
    unit: "ms",
    series: { [`p${sloPercentile}`]: load.quantileMs(sloPercentile / 100), p50: load.quantileMs(0.5) },
    limit: sloBoundMs,
  };
}

function dashboard(uid: string, title: string, panels: readonly Panel[], dataSourceUid: string): string {
  const datasource = { type: "prometheus", uid: dataSourceUid };
  return JSON.stringify({
    uid,
    title,
    schemaVersion: 39,
    editable: false,
    refresh: "10s",
    time: { from: "now-30m", to: "now" },
    panels: panels.map((panel, index) => ({
      id: index + 1,
      type: "timeseries",
      title: panel.title,
      datasource,
      gridPos: { x: (index % 2) * 12, y: Math.floor(index / 2) * 8, w: 12, h: 8 },
      fieldConfig: { defaults: { unit: panel.unit, min: 0, ...limitLine(panel.limit) }, overrides: [] },
      targets: Object.entries(panel.series).map(([legendFormat, expr], position) => ({
        refId: String.fromCharCode("A".charCodeAt(0) + position),
        expr,
        legendFormat,
        datasource,
      })),
    })),
  });
}

/** A red line at a value. */
function limitLine(limit: number | undefined): object {
  if (limit === undefined) return {};
  const steps = [
    { color: "transparent", value: null },
    { color: "red", value: limit },
  ];
  return { thresholds: { mode: "absolute", steps }, custom: { thresholdsStyle: { mode: "line" } } };
}
