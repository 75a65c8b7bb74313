import {
  GraphThresholdsStyleConfigBuilder,
  GraphThresholdsStyleMode,
  StackingConfigBuilder,
  StackingMode,
} from "@grafana/grafana-foundation-sdk/common";
import { ThresholdsConfigBuilder, ThresholdsMode } from "@grafana/grafana-foundation-sdk/dashboard";
import { DataqueryBuilder } from "@grafana/grafana-foundation-sdk/prometheus";
import { PanelBuilder } from "@grafana/grafana-foundation-sdk/timeseries";

/** One panel: lines over time. */
export interface PanelSpec {
  readonly title: string;
  /** One sentence: what it shows. docs/operations.md says what to do about it, under the panel's title. */
  readonly description: string;
  /** Unit id of the Grafana library. */
  readonly unit: string;
  /** PromQL by legend; `{{label}}` in a legend stands for the label's value. */
  readonly series: Readonly<Record<string, string>>;
  /** Red line, in the panel's unit. */
  readonly limit?: number;
  /** The series are parts of a whole. */
  readonly isStacked?: boolean;
  /** Top of the axis; default: what the data need. */
  readonly max?: number;
}

/** Columns of the dashboard's 24, and rows. */
const panelWidth = 8;
const panelHeight = 8;

/** The panel as the Grafana library builds it. */
export function panelBuilder(spec: PanelSpec, id: number, dataSourceUid: string): PanelBuilder {
  const datasource = { type: "prometheus", uid: dataSourceUid };
  const builder = new PanelBuilder()
    .id(id)
    .title(spec.title)
    .description(spec.description)
    .datasource(datasource)
    .unit(spec.unit)
    .min(0)
    .span(panelWidth)
    .height(panelHeight)
    .fillOpacity(spec.isStacked ? 40 : 8)
    .lineWidth(2);
  for (const [index, [legend, expr]] of Object.entries(spec.series).entries()) {
    const refId = String.fromCharCode("A".charCodeAt(0) + index);
    builder.withTarget(
      new DataqueryBuilder().refId(refId).expr(expr).legendFormat(legend).datasource(datasource).range(),
    );
  }
  if (spec.max !== undefined) builder.max(spec.max);
  if (spec.isStacked) builder.stacking(new StackingConfigBuilder().mode(StackingMode.Normal));
  if (spec.limit !== undefined) {
    const steps = [
      { color: "transparent", value: null },
      { color: "red", value: spec.limit },
    ];
    builder
      .thresholds(new ThresholdsConfigBuilder().mode(ThresholdsMode.Absolute).steps(steps))
      .thresholdsStyle(new GraphThresholdsStyleConfigBuilder().mode(GraphThresholdsStyleMode.Line));
  }
  return builder;
}
