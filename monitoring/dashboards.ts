import { tritonQueries } from "./queries";

export interface DashboardInput {
  /** PromQL rate window, seconds. */
  readonly windowS: number;
  /** SLO bound, milliseconds. */
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
  const panels: readonly Panel[] = [
    { title: "Requests per second", unit: "reqps", series: { "{{model}}": queries.requestRatePerS } },
    { title: "GPU utilisation", unit: "percentunit", series: { GPU: queries.gpuBusy } },
    { title: "Mean batch size", unit: "none", series: { "{{model}}": queries.meanBatch } },
    { title: "GPU memory", unit: "bytes", series: { used: queries.gpuMemoryUsedBytes } },
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
      fieldConfig: { defaults: { unit: panel.unit, min: 0 }, overrides: [] },
      targets: Object.entries(panel.series).map(([legendFormat, expr], position) => ({
        refId: String.fromCharCode("A".charCodeAt(0) + position),
        expr,
        legendFormat,
        datasource,
      })),
    })),
  });
}
