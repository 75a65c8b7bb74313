import {
  AnnotationQueryBuilder,
  DashboardBuilder,
  DashboardCursorSync,
  DashboardLinkBuilder,
  DashboardLinkType,
  type Dashboard,
} from "@grafana/grafana-foundation-sdk/dashboard";
import { loadMetrics } from "./metrics";
import { operationsPanels } from "./operations-panels";
import { panelBuilder, type PanelSpec } from "./panel";
import { servingPanels } from "./serving-panels";
import { tuningPanels } from "./tuning-panels";

export interface DashboardInput {
  /** SLO: this percentile within this bound. */
  readonly sloPercentile: number;
  readonly sloBoundMs: number;
  /** Seconds between two scrapes. */
  readonly scrapeIntervalS: number;
  /** Uid of the provisioned data source. */
  readonly dataSourceUid: string;
  /** Price of one server with its node, US dollars an hour; null when it is not known: then cost is not drawn. */
  readonly serverUsdPerH: number | null;
}

/** Uids of the dashboards: part of their addresses, so that reports can link to them. */
export const dashboardUids = {
  serving: "triton-serving",
  tuning: "triton-tuning",
  operations: "triton-operations",
} as const;

/** Tag by which the dashboards find each other. */
const tag = "triton-slo";

/** Shows what an expression says as regions over all panels of a dashboard. */
interface AnnotationSpec {
  readonly name: string;
  readonly expr: string;
  readonly color: string;
  /** `{{label}}` stands for the label's value. */
  readonly title: string;
  readonly text: string;
}

/** Each trial, from the controller: which variant, for what, under which load. */
const trials: AnnotationSpec = {
  name: "Trials",
  expr: loadMetrics.measurementRunning,
  color: "blue",
  title: "{{variant}}",
  text: "{{trial}}",
};

const alerts: AnnotationSpec = {
  name: "Alerts",
  expr: 'max by (alertname, severity) (ALERTS{alertstate="firing"})',
  color: "red",
  title: "{{alertname}}",
  text: "{{severity}}",
};

/** The stack's dashboards by file name. */
export function dashboards(input: DashboardInput): Readonly<Record<string, Dashboard>> {
  return {
    "serving.json": dashboard(input, {
      uid: dashboardUids.serving,
      title: "Triton: serving",
      panels: servingPanels(input),
      annotations: [trials],
    }),
    "tuning.json": dashboard(input, {
      uid: dashboardUids.tuning,
      title: "Triton: tuning",
      panels: tuningPanels(input),
      annotations: [trials],
    }),
    "operations.json": dashboard(input, {
      uid: dashboardUids.operations,
      title: "Triton: operations",
      panels: operationsPanels(input),
      annotations: [alerts],
    }),
  };
}

interface DashboardSpec {
  readonly uid: string;
  readonly title: string;
  readonly panels: readonly PanelSpec[];
  readonly annotations: readonly AnnotationSpec[];
}

function dashboard(input: DashboardInput, { uid, title, panels, annotations }: DashboardSpec): Dashboard {
  const builder = new DashboardBuilder(title)
    .uid(uid)
    .tags([tag])
    .readonly()
    .refresh("10s")
    .time({ from: "now-30m", to: "now" })
    .tooltip(DashboardCursorSync.Crosshair)
    .link(new DashboardLinkBuilder("Triton").type(DashboardLinkType.Dashboards).tags([tag]).keepTime(true));
  for (const { name, expr, color, title: heading, text } of annotations) {
    builder.annotation(
      new AnnotationQueryBuilder()
        .name(name)
        .datasource({ type: "prometheus", uid: input.dataSourceUid })
        .enable(true)
        .iconColor(color)
        .expr(expr)
        // Grafana joins samples that are at most a step apart into one region.
        .step(`${input.scrapeIntervalS}s`)
        .titleFormat(heading)
        .textFormat(text),
    );
  }
  for (const [index, panel] of panels.entries())
    builder.withPanel(panelBuilder(panel, index + 1, input.dataSourceUid));
  return builder.build();
}
