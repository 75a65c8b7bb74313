import * as units from "@grafana/grafana-foundation-sdk/units";
import type { DashboardInput } from "./dashboards";
import type { PanelSpec } from "./panel";
import { gpuQueries, loadQueries, panelWindow, tritonQueries } from "./queries";
import { recorded } from "./recording-rules";
import { jobs } from "./scrape-jobs";
import { memoryPanel, responsePanel } from "./serving-panels";

/** The view of whoever runs the service: are the servers there, do requests fail, how full are they, what does it cost. */
export function operationsPanels(input: DashboardInput): PanelSpec[] {
  const { sloPercentile, serverUsdPerH } = input;
  const load = loadQueries(panelWindow);
  const byPod = tritonQueries(panelWindow, ["pod"]);
  const all = tritonQueries(panelWindow, []);
  const gpu = gpuQueries(panelWindow);
  const count = (job: string) => `count(up{job="${job}"} == 1) or vector(0)`;
  const cost: PanelSpec = {
    title: "Cost per million requests",
    description: `At the present rate, with ${serverUsdPerH} US dollars an hour for a server and its node; not drawn below one request a second.`,
    unit: units.Dollars,
    series: {
      now: `1000000 * ${serverUsdPerH} * count(up{job="${jobs.triton}"}) / (3600 * (${all.requestRatePerS} > 1))`,
    },
  };
  return [
    {
      title: "Servers",
      description: "Servers that answer, that are ready, and that should be there.",
      unit: units.Short,
      series: {
        answering: count(jobs.triton),
        ready: count(jobs.tritonReady),
        // Of the rules, so that another number does not restart Grafana; absent when an autoscaler decides.
        wanted: recorded.serversWanted,
      },
    },
    {
      title: "Requests by server",
      description: "Requests answered by each server; equal lines mean an even spread.",
      unit: units.RequestsPerSecond,
      series: { "{{pod}}": byPod.requestRatePerS },
    },
    {
      title: "Spent budget",
      description:
        "Share of requests that missed the objective at the load generator; the line is what the objective allows.",
      unit: units.PercentUnit,
      series: { missed: load.missedShare },
      limit: (100 - sloPercentile) / 100,
      max: 1,
    },
    {
      title: "Failures by reason",
      description: "Requests that the servers counted as failed, by Triton's reason.",
      unit: units.RequestsPerSecond,
      series: { "{{reason}}": all.failureRatePerSByReason },
    },
    {
      title: "Errors at the client",
      description:
        "Requests that failed at the load generator, by kind; it also sees what servers do not count, such as a full queue.",
      unit: units.RequestsPerSecond,
      series: { "{{kind}}": load.errorRatePerSByKind },
    },
    {
      title: "Firing alerts",
      description: "Alerts that fire now.",
      unit: units.Short,
      series: { "{{alertname}}": 'sum by (alertname) (ALERTS{alertstate="firing"})' },
      isStacked: true,
    },
    {
      title: "GPU saturation",
      description: "Share of time in which the GPU of each server ran anything.",
      unit: units.PercentUnit,
      series: { "{{pod}}": gpu.busyByPod },
      max: 1,
    },
    {
      title: "Waiting requests",
      description: "Requests in each server's queue.",
      unit: units.Short,
      series: { "{{pod}}": byPod.pending },
    },
    {
      title: "Time in the queue",
      description: "Mean wait of a request in each server's queue.",
      unit: units.Milliseconds,
      series: { "{{pod}}": byPod.queueMs },
    },
    responsePanel(input),
    memoryPanel(),
    ...(serverUsdPerH === null ? [] : [cost]),
  ];
}
