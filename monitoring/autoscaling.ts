import { tritonMetrics } from "./metrics";

/** Name of the metric that the autoscaler reads: requests a second that one server answers. */
export const serverRateMetric = "triton_requests_per_second";

/**
 * Rules of prometheus-adapter: how the metric is made from Triton's counters. Its template fills in the pods in question.
 * The served rate is the signal, not GPU utilisation or queue time: host-bound variants saturate at half the GPU, and a
 * dynamic batcher's queue delay dominates queue time at low load.
 */
export function adapterRules(windowS: number): object {
  return {
    rules: [
      {
        seriesQuery: `${tritonMetrics.requestSuccess}{namespace!="",pod!=""}`,
        resources: { overrides: { namespace: { resource: "namespace" }, pod: { resource: "pod" } } },
        name: { as: serverRateMetric },
        metricsQuery: `sum(rate(<<.Series>>{<<.LabelMatchers>>}[${windowS}s])) by (<<.GroupBy>>)`,
      },
    ],
  };
}
