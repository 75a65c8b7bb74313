import type * as pulumi from "@pulumi/pulumi";
import * as components from "../../components";
import { controllerLabels, controllerPort } from "../../components/load-generator-pods";
import { prometheusPort, prometheusService } from "../../components/prometheus";
import { tritonLabels, tritonPorts } from "../../components/triton-pod";
import { dashboards } from "../../monitoring/dashboards";
import { dataSources, prometheusUid } from "../../monitoring/data-sources";
import { prometheusConfig } from "../../monitoring/prometheus-config";
import type { RuleGroup } from "../../monitoring/rule-types";
import { ruleGroups } from "../../monitoring/rules";
import { scrapeTargets, type ScrapeTarget } from "../../monitoring/scrape-jobs";
import { nodeUsdPerH } from "../../pricing/cost";
import { loadPrices, PricesError } from "../../pricing/prices";
import type { StackConfig } from "../derived-config";
import { stackSize } from "../stack-cost";
import type { ClusterSection } from "./cluster";
import type { Kubernetes } from "./kubernetes";
import type { Models } from "./models";
import type { Project } from "./project";

export interface Monitoring {
  /** Password of Grafana's user `admin`, secret; undefined without Grafana. */
  readonly grafanaAdminPassword: pulumi.Output<string> | undefined;
}

/**
 * Prometheus on its own disk and Grafana with generated dashboards; or Google Managed Prometheus with the same rules. And an alert for
 * the conversion VM, which neither of them sees.
 */
export function createMonitoring(
  config: StackConfig,
  project: Project,
  { conversionVm }: Models,
  { dataDisk, systemPool }: ClusterSection,
  kubernetes: Kubernetes,
): Monitoring {
  const { provider, cluster, serving, load, monitoring } = kubernetes;
  if (conversionVm !== undefined) createConversionAlert(config, project, conversionVm);
  if (config.managedPrometheus) {
    new components.ManagedCollection(
      "managed-prometheus",
      {
        ...{ provider, cluster },
        targets: targetsOf(config),
        scrapeIntervalS: config.scrapeIntervalS,
        rulesName: `${config.namespaces.triton}-slo`,
        ruleGroups: rulesOf(config),
      },
      { dependsOn: [serving, load] },
    );
  }
  if (dataDisk === undefined) return { grafanaAdminPassword: undefined };
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
        {
          namespace: serving.namespaceName,
          name: namespaces.triton,
          ports: [tritonPorts.metrics, tritonPorts.http],
        },
        { namespace: load.namespaceName, name: namespaces.load, ports: [controllerPort] },
      ],
      retentionDays: config.retentionDays,
      disk: {
        handle: dataDisk.handle,
        zone: config.zonesUsed[0] ?? "",
        sizeGb: config.prometheusDiskSizeGi,
      },
    },
    { dependsOn: [systemPool, serving, load, monitoring] },
  );
  const url = `http://${prometheusService}.${namespaces.monitoring}.svc:${prometheusPort}`;
  const grafana = new components.Grafana(
    "grafana",
    {
      ...common,
      dataSources: dataSources(url, config.scrapeIntervalS),
      dashboards: dashboardFiles(config),
    },
    { dependsOn: [systemPool, monitoring] },
  );
  return { grafanaAdminPassword: grafana.adminPassword };
}

function createConversionAlert(
  config: StackConfig,
  project: Project,
  { instanceName }: components.ConversionVm,
): void {
  new components.ConversionVmAlert(
    "converter-alert",
    {
      project: config.project,
      instanceName,
      maxLifetimeH: config.conversionMaxLifetimeH,
      labels: config.resourceLabels,
    },
    project.after(project.services),
  );
}

/** Files of Grafana's dashboards. */
export function dashboardFiles(config: StackConfig): Readonly<Record<string, string>> {
  const built = dashboards({
    sloPercentile: config.sloPercentile,
    sloBoundMs: config.sloBoundMs,
    scrapeIntervalS: config.scrapeIntervalS,
    dataSourceUid: prometheusUid,
    serverUsdPerH: serverUsdPerH(config),
  });
  return Object.fromEntries(Object.entries(built).map(([file, content]) => [file, JSON.stringify(content)]));
}

/** Price of a server with its share of a node; null when the table lacks something of it. */
function serverUsdPerH(config: StackConfig): number | null {
  const size = stackSize({ ...config, replicas: 1 }, "serving");
  const node = size.pools.find(({ name }) => name === "gpu")?.node;
  if (node === undefined) return null;
  try {
    const usdPerH = nodeUsdPerH(loadPrices(), { ...node, region: config.region }) / config.gpusPerNode;
    return Number(usdPerH.toFixed(4));
  } catch (error) {
    if (error instanceof PricesError) return null;
    throw error;
  }
}

function rulesOf(config: StackConfig): RuleGroup[] {
  return ruleGroups({
    scrapeIntervalS: config.scrapeIntervalS,
    sloPercentile: config.sloPercentile,
    sloBoundMs: config.sloBoundMs,
    servers: config.tritonReplicas ?? null,
    loadWorkers: config.loadGenerator ? config.load.workers : 0,
  });
}

function targetsOf({ namespaces }: StackConfig): ScrapeTarget[] {
  return scrapeTargets({
    tritonNamespace: namespaces.triton,
    tritonApp: tritonLabels.app ?? "",
    loadNamespace: namespaces.load,
    loadApp: controllerLabels.app ?? "",
  });
}

/** Files of Prometheus by name; rules lie beside the main one. */
export function prometheusFiles(config: StackConfig): Readonly<Record<string, string>> {
  const main = prometheusConfig({
    scrapeIntervalS: config.scrapeIntervalS,
    targets: targetsOf(config),
    ruleFiles: ["rules.yml"],
  });
  return {
    "prometheus.yml": JSON.stringify(main, null, 2),
    "rules.yml": JSON.stringify({ groups: rulesOf(config) }, null, 2),
  };
}
