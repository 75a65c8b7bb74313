import * as units from "@grafana/grafana-foundation-sdk/units";
import type { DashboardInput } from "./dashboards";
import type { PanelSpec } from "./panel";
import { gpuQueries, loadQueries, panelWindow, tritonQueries } from "./queries";
import { responsePanel } from "./serving-panels";

/** The view during a sweep: where a request's time goes, and whether the load generator kept its plan. */
export function tuningPanels(input: DashboardInput): PanelSpec[] {
  const { sloPercentile, sloBoundMs } = input;
  const load = loadQueries(panelWindow);
  const triton = tritonQueries(panelWindow, []);
  const gpu = gpuQueries(panelWindow);
  return [
    {
      title: "Offered load",
      description:
        "Measured requests by what became of them; shed ones were never sent, because too many were in flight.",
      unit: units.RequestsPerSecond,
      series: { "{{outcome}}": load.requestRatePerSByOutcome },
      isStacked: true,
    },
    responsePanel(input),
    {
      title: "Missed objective",
      description:
        "Share of requests that were not answered rightly within the bound; the line is what the objective allows.",
      unit: units.PercentUnit,
      series: { missed: load.missedShare },
      limit: (100 - sloPercentile) / 100,
      max: 1,
    },
    {
      title: "Time of a request",
      description:
        "Mean parts of the time from sending a request to its answer; wire is what the servers do not account for.",
      unit: units.Milliseconds,
      series: {
        queue: triton.queueMs,
        input: triton.computeInputMs,
        inference: triton.computeInferMs,
        output: triton.computeOutputMs,
        wire: `clamp_min(${load.serviceMs} - (${triton.requestMs}), 0)`,
      },
      isStacked: true,
    },
    {
      title: "Batch size",
      description: "Images per executed batch, all servers together.",
      unit: units.Short,
      series: { mean: triton.meanBatch },
    },
    {
      title: "GPU busy",
      description: "Share of time in which the GPU ran anything, for each server.",
      unit: units.PercentUnit,
      series: { "{{pod}}": gpu.busyByPod },
      max: 1,
    },
    {
      title: "Lateness of the load generator",
      description: "Real minus planned send; above the line a trial is invalid.",
      unit: units.Milliseconds,
      series: { p99: load.latenessMs(0.99), p50: load.latenessMs(0.5) },
      limit: 0.05 * sloBoundMs,
    },
    {
      title: "Sent",
      description: "Message bytes of all workers.",
      unit: units.MegabytesPerSecond,
      series: { "all workers": load.sentMBPerS },
    },
    {
      title: "Load workers",
      description: "Registered workers, and cores that the busiest one uses.",
      unit: units.Short,
      series: { workers: load.workers, "cores of the busiest": load.cpuShare },
    },
    {
      title: "Requests in flight",
      description: "Sent and not yet answered, over all workers.",
      unit: units.Short,
      series: { "in flight": load.inFlight },
    },
    {
      title: "GPU power",
      description: "Power that each server's GPU takes, and the most that it may.",
      unit: units.Watt,
      series: { "{{pod}}": gpu.powerW, "one GPU may": gpu.powerLimitW },
    },
    {
      title: "Trials",
      description: "Measurements that ended, by whether their numbers can be used.",
      unit: units.Short,
      series: { "{{result}}": load.measurementsByResult },
    },
  ];
}
