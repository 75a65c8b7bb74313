/** Metrics that dashboards, rules and the autoscaler may use, each list beside what answers them. */
export { tritonMetrics } from "../kserve/triton-metrics";
export { loadMetrics } from "../loadgen/metric-names";
