/** Which metrics an expression asks for, and which ones there are. */
import { loadMetrics, tritonMetrics } from "../../monitoring/metrics";
import { recorded } from "../../monitoring/recording-rules";

const keywords = ["and", "or", "by", "on", "without", "sum", "avg", "count", "max", "min"];

/** Names of metrics in an expression: words that are neither functions, labels, nor keywords. */
export function metricNames(expr: string): string[] {
  const bare = expr
    .replace(/\{[^}]*\}/g, "")
    .replace(/\[[^\]]*\]/g, "")
    .replace(/\b(by|on|without) \([^)]*\)/g, "");
  return [...bare.matchAll(/[a-zA-Z][a-zA-Z0-9_:]*(?=\s*(?:[^a-zA-Z0-9_:(]|$))/g)]
    .map(([name]) => name)
    .filter((name) => !keywords.includes(name));
}

/** Metrics of servers, controller, rules and Prometheus itself. */
export const knownMetrics: ReadonlySet<string> = new Set<string>([
  ...Object.values(tritonMetrics),
  ...Object.values(recorded),
  ...Object.values(loadMetrics),
  ...[loadMetrics.responseSeconds, loadMetrics.latenessSeconds].map((name) => `${name}_bucket`),
  ...["sum", "count"].map((part) => `${loadMetrics.serviceSeconds}_${part}`),
  "up",
  "ALERTS",
]);
