import * as units from "@grafana/grafana-foundation-sdk/units";
import type { DashboardInput } from "./dashboards";
import type { PanelSpec } from "./panel";
import { gpuQueries, loadQueries, panelWindow, tritonQueries } from "./queries";

/** Response times with the objective's line. */
export function responsePanel({ sloPercentile, sloBoundMs }: DashboardInput): PanelSpec {
  const { responseMs } = loadQueries(panelWindow);
  return {
    title: "Response time",
    description: `From the planned send to the answer; the line is the objective: ${sloPercentile} % within ${sloBoundMs} ms.`,
    unit: units.Milliseconds,
    series: { [`p${sloPercentile}`]: responseMs(sloPercentile / 100), p50: responseMs(0.5) },
    limit: sloBoundMs,
  };
}

/** GPU memory with what there is. */
export function memoryPanel(): PanelSpec {
  const gpu = gpuQueries(panelWindow);
  return {
    title: "GPU memory",
    description: "Memory used on each server's GPU, and what one GPU has.",
    unit: units.BytesIEC,
    series: { "{{pod}}": gpu.memoryUsedBytes, "one GPU has": gpu.memoryTotalBytes },
  };
}

/** The view of the published tuning documents: GPU, memory, batches, rate and latency beside each other. */
export function servingPanels(input: DashboardInput): PanelSpec[] {
  const triton = tritonQueries(panelWindow, ["model"]);
  const gpu = gpuQueries(panelWindow);
  return [
    {
      title: "Requests per second",
      description: "Requests that the servers answered, all replicas together.",
      unit: units.RequestsPerSecond,
      series: { "{{model}}": triton.requestRatePerS },
    },
    responsePanel(input),
    {
      title: "Mean batch size",
      description: "Images per executed batch.",
      unit: units.Short,
      series: { "{{model}}": triton.meanBatch },
    },
    {
      title: "GPU utilisation",
      description: "Share of time in which the GPU ran anything, for each server.",
      unit: units.PercentUnit,
      series: { "{{pod}}": gpu.busyByPod },
      max: 1,
    },
    memoryPanel(),
    {
      title: "Failures per second",
      description: "Requests that the servers failed; a full queue is counted only at the client.",
      unit: units.RequestsPerSecond,
      series: { "{{model}}": triton.failureRatePerS },
    },
  ];
}
