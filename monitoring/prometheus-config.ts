import type { ScrapeTarget } from "./scrape-jobs";

export interface PrometheusConfigInput {
  /** Seconds between two scrapes. */
  readonly scrapeIntervalS: number;
  readonly targets: readonly ScrapeTarget[];
  /** Files with rules, as Prometheus sees them. */
  readonly ruleFiles: readonly string[];
}

/** What Prometheus reads, as plain data; JSON is valid YAML. */
export interface PrometheusConfig {
  readonly global: {
    readonly scrape_interval: string;
    readonly scrape_timeout: string;
    readonly evaluation_interval: string;
  };
  readonly rule_files: readonly string[];
  readonly scrape_configs: readonly ScrapeConfig[];
}

export interface ScrapeConfig {
  readonly job_name: string;
  readonly metrics_path: string;
  /** Format of an answer that names none, such as an empty one. */
  readonly fallback_scrape_protocol: string;
  readonly kubernetes_sd_configs: readonly object[];
  readonly relabel_configs: readonly object[];
}

/**
 * Configuration that finds every pod of each target by itself, so that the second replica is seen as well as the first.
 */
export function prometheusConfig(input: PrometheusConfigInput): PrometheusConfig {
  const interval = `${input.scrapeIntervalS}s`;
  return {
    global: {
      scrape_interval: interval,
      scrape_timeout: `${Math.max(1, Math.min(10, input.scrapeIntervalS - 1))}s`,
      evaluation_interval: interval,
    },
    rule_files: input.ruleFiles,
    scrape_configs: input.targets.map(podScrape),
  };
}

function podScrape({ job, namespace, app, portName, path = "/metrics" }: ScrapeTarget): ScrapeConfig {
  const keep = (label: string, regex: string) => ({ source_labels: [label], regex, action: "keep" });
  const copy = (label: string, to: string) => ({ source_labels: [label], target_label: to });
  return {
    job_name: job,
    metrics_path: path,
    fallback_scrape_protocol: "PrometheusText0.0.4",
    kubernetes_sd_configs: [{ role: "pod", namespaces: { names: [namespace] } }],
    relabel_configs: [
      keep("__meta_kubernetes_pod_label_app", app),
      keep("__meta_kubernetes_pod_container_port_name", portName),
      // A pod that has ended, such as one taken off its node, stays listed and would be missing for ever.
      { source_labels: ["__meta_kubernetes_pod_phase"], regex: "Succeeded|Failed", action: "drop" },
      copy("__meta_kubernetes_namespace", "namespace"),
      copy("__meta_kubernetes_pod_name", "pod"),
      copy("__meta_kubernetes_pod_node_name", "node"),
    ],
  };
}
