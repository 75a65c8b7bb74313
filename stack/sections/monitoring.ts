import * as components from "../../components";
import { controllerLabels, controllerPort } from "../../components/load-generator-pods";
import { prometheusPort, prometheusService } from "../../components/prometheus";
import { tritonLabels, tritonPorts } from "../../components/triton-pod";
import { dataSources, loadDashboard, prometheusUid, servingDashboard } from "../../monitoring/dashboards";
import { prometheusConfig } from "../../monitoring/prometheus-config";
import { rateWindowS } from "../../monitoring/queries";
import { ruleGroups } from "../../monitoring/rules";
import type { StackConfig } from "../derived-config";
import type { ClusterSection } from "./cluster";
import type { Kubernetes } from "./kubernetes";

/** Prometheus on its own disk and Grafana with generated dashboards; nothing without monitoring. */
export function createMonitoring(
  config: StackConfig,
  { dataDisk, systemPool }: ClusterSection,
  kubernetes: Kubernetes,
): void {
  if (dataDisk === undefined) return;
  const { provider, cluster, serving, load, monitoring } = kubernetes;
  const { namespaces } = config;
  const common = {
    provider,
    cluster,
    namespace: monitoring.namespaceName,
    namespaceName: namespaces.monitoring,
    digests: config.imageDigests,
  };
  new components.Prometheus(
    "prometheus",
    {
      ...common,
      files: prometheusFiles(config),
      scraped: [
        { namespace: serving.namespaceName, name: namespaces.triton, port: tritonPorts.metrics },
        { namespace: load.namespaceName, name: namespaces.load, port: controllerPort },
      ],
      retentionDays: config.retentionDays,
      disk: { handle: dataDisk.handle, zone: config.zonesUsed[0] ?? "", sizeGb: config.prometheusDiskGi },
    },
    { dependsOn: [systemPool, serving, load, monitoring] },
  );
  const url = `http://${prometheusService}.${namespaces.monitoring}.svc:${prometheusPort}`;
  new components.Grafana(
    "grafana",
    {
      ...common,
      dataSources: dataSources(url, config.scrapeIntervalS),
      dashboards: dashboards(config),
    },
    { dependsOn: [systemPool, monitoring] },
  );
}

function dashboards(config: StackConfig): Readonly<Record<string, string>> {
  const { sloPercentile, sloBoundMs } = config;
  const windowS = rateWindowS(config.scrapeIntervalS);
  const input = { windowS, sloPercentile, sloBoundMs, dataSourceUid: prometheusUid };
  return { "serving.json": servingDashboard(input), "load.json": loadDashboard(input) };
}

function prometheusFiles(config: StackConfig): Readonly<Record<string, string>> {
  const { namespaces, scrapeIntervalS } = config;
  const app = (labels: Readonly<Record<string, string>>) => labels.app ?? "";
  const targets = [
    { job: "triton", namespace: namespaces.triton, app: app(tritonLabels), portName: "metrics" },
    { job: "load-generator", namespace: namespaces.load, app: app(controllerLabels), portName: "http" },
  ];
  const rules = ruleGroups({
    scrapeIntervalS,
    sloPercentile: config.sloPercentile,
    sloBoundMs: config.sloBoundMs,
    servers: config.tritonReplicas ?? null,
  });
  return {
    "prometheus.yml": JSON.stringify(
      prometheusConfig({ scrapeIntervalS, targets, ruleFiles: ["/etc/prometheus/rules.yml"] }),
      null,
      2,
    ),
    "rules.yml": JSON.stringify({ groups: rules }, null, 2),
  };
}
