/** Arguments of each component out of the configuration; pure but for the resources they are handed. */
import type * as gcp from "@pulumi/gcp";
import type * as pulumi from "@pulumi/pulumi";
import { createHash } from "node:crypto";
import { join } from "node:path";
import type * as components from "../components";
import { loadTaint } from "../components/load-generator-pods";
import { controllerPort } from "../components/load-generator-pods";
import { conversionPlanObject } from "../components/model-repository";
import { stackServices } from "../components/project-services";
import { prometheusPort, prometheusService } from "../components/prometheus";
import { tritonLabels, tritonPorts } from "../components/triton-pod";
import { dataSources, prometheusUid, servingDashboard } from "../monitoring/dashboards";
import { prometheusConfig } from "../monitoring/prometheus-config";
import { rateWindowS } from "../monitoring/queries";
import type { StackConfig } from "./derived-config";
import { workerCpu } from "./load-sizing";
import { artefactsOf, conversionPlan, variantFiles } from "./variants";

const projectFolder = join(__dirname, "..");

/** Folder of the model repository in the bucket. */
export const repositoryPrefix = "models";

/** Kubernetes service account of Triton. */
const tritonAccount = "triton";

/** A stack name as part of account ids and repository ids: lower-case letters, digits and hyphens, at most 20. */
export function shortName(stack: string): string {
  const cleaned = stack.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^[^a-z]+/, "");
  return `ts-${cleaned}`.slice(0, 20).replace(/-+$/, "");
}

export function googleProviderArgs(config: StackConfig): gcp.ProviderArgs {
  const { project, region, zonesUsed } = config;
  // Budgets are charged to the caller's project, which user credentials do not have without these two.
  const billing = config.budget > 0 ? { billingProject: project, userProjectOverride: true } : {};
  return { project, region, zone: zonesUsed[0], ...billing };
}

export function services(config: StackConfig): string[] {
  return config.budget > 0 ? [...stackServices, "billingbudgets.googleapis.com"] : [...stackServices];
}

export function budgetArgs(config: StackConfig): components.BudgetArgs {
  const { project, billingAccount, budget, budgetCurrency } = config;
  return { project, billingAccount, amountPerMonth: budget, currency: budgetCurrency };
}

/** An adopted cluster brings its network; only a conversion VM beside it needs one. */
export function needsNetwork(config: StackConfig): boolean {
  return config.existingCluster === "" || config.conversionVm;
}

export function networkArgs(config: StackConfig): components.NetworkArgs {
  const { project, region, subnetCidr, podCidr, serviceCidr, existingNetwork } = config;
  const existing =
    existingNetwork === ""
      ? undefined
      : {
          network: existingNetwork,
          subnetwork: config.existingSubnetwork,
          podRange: config.existingPodRange,
          serviceRange: config.existingServiceRange,
        };
  const sshThroughIap = config.sshThroughIap && config.conversionVm;
  return { project, region, subnetCidr, podCidr, serviceCidr, sshThroughIap, existing };
}

export function repositoryArgs(config: StackConfig): components.ModelRepositoryArgs {
  const { repository } = config.variants;
  return {
    project: config.project,
    location: config.region,
    existingBucket: config.existingBucket || undefined,
    prefix: repositoryPrefix,
    models: repository.map((variant) => ({ name: variant.name, files: variantFiles(variant) })),
    conversionPlan: conversionPlan(repository, { image: config.converter, gpuType: config.gpuType }),
    protect: config.protect,
    labels: config.resourceLabels,
  };
}

export function conversionVmArgs(
  config: StackConfig,
  network: components.Network,
  serviceAccount: pulumi.Output<string>,
  bucketName: pulumi.Output<string>,
): components.ConversionVmArgs {
  const { repository } = config.variants;
  return {
    project: config.project,
    zone: config.zonesUsed[0] ?? "",
    network,
    machineType: config.conversionMachineType,
    gpuType: config.gpuType,
    imageFamily: config.conversionImageFamily,
    image: config.conversionImage || undefined,
    diskGb: config.conversionDiskGb,
    maxLifetimeH: config.conversionMaxLifetimeH,
    spot: config.conversionSpot,
    jupyterLab: config.jupyterLab,
    serviceAccount,
    bucketName,
    repositoryPrefix,
    converterImage: config.converter,
    planObject: conversionPlanObject,
    packageFolder: join(projectFolder, "model-repo", "convert"),
    artefacts: artefactsOf(repository).map((artefact) => artefact.name),
    variants: repository.map((variant) => ({ name: variant.name, artefact: variant.artefact.name })),
    labels: config.resourceLabels,
  };
}

export function clusterArgs(config: StackConfig, network: components.Network): components.ClusterArgs {
  const { project, location, releaseChannel, controlPlaneAccess, authorizedNetworks, managedDcgm, protect } = config;
  return {
    project,
    location,
    network,
    releaseChannel,
    controlPlaneAccess,
    authorizedNetworks,
    managedDcgm,
    protect,
    labels: config.resourceLabels,
  };
}

export function adoptedClusterArgs(config: StackConfig): components.AdoptedClusterArgs {
  const { project, location, existingCluster, controlPlaneAccess } = config;
  return { project, location, clusterName: existingCluster, controlPlaneAccess };
}

export function dataDiskArgs(config: StackConfig): components.DataDiskArgs {
  const { project, zonesUsed, prometheusDiskGi, protect, resourceLabels } = config;
  return { project, zone: zonesUsed[0] ?? "", sizeGb: prometheusDiskGi, protect, labels: resourceLabels };
}

type PoolOwn<T> = Omit<T, keyof components.NodePoolBase>;

export function systemPool(config: StackConfig): PoolOwn<components.CpuNodePoolArgs> & { zones: readonly string[] } {
  return {
    purpose: "system",
    machineType: config.systemMachineType,
    minNodes: 1,
    maxNodes: config.systemMaxNodes,
    spot: false,
    taints: [],
    diskGb: 50,
    // Prometheus' disk is in the first zone, so there must be a node there.
    zones: config.zonesUsed.slice(0, 1),
  };
}

export function gpuPool(config: StackConfig): PoolOwn<components.GpuNodePoolArgs> {
  return {
    gpuType: config.gpuType,
    gpusPerNode: config.gpusPerNode,
    machineType: config.gpuMachineType,
    imageType: config.gpuImageType,
    driverMode: config.driverMode,
    minNodes: config.gpuMinNodes,
    maxNodes: config.gpuMaxNodes,
    initialNodes: config.gpuInitialNodes,
    spot: config.gpuSpot,
    reservation: config.gpuReservation || undefined,
    diskGb: 100,
  };
}

export function loadPool(config: StackConfig): PoolOwn<components.CpuNodePoolArgs> {
  return {
    purpose: "load",
    machineType: config.loadMachineType,
    minNodes: 0,
    maxNodes: config.load.maxNodes,
    spot: config.loadSpot,
    taints: [loadTaint],
    diskGb: 50,
  };
}

export function grantsArgs(
  config: StackConfig,
  bucketName: pulumi.Output<string>,
  converterEmail: pulumi.Output<string> | undefined,
): components.RepositoryGrantsArgs {
  return {
    project: config.project,
    bucketName,
    readers: [{ namespace: config.namespaces.triton, name: tritonAccount }],
    writers: converterEmail === undefined ? [] : [converterEmail],
  };
}

type Namespace = components.WorkloadNamespace;
type InClusterOwn<T> = Omit<T, keyof components.InCluster>;

export function tritonArgs(
  config: StackConfig,
  namespace: Namespace,
  repository: components.ModelRepository,
): InClusterOwn<components.TritonArgs> {
  const { served } = config.variants;
  return {
    namespace: namespace.namespaceName,
    repositoryUrl: repository.url,
    replicas: config.tritonReplicas,
    readinessBudgetS: config.readinessBudgetS,
    clientNamespaces: [config.namespaces.load, ...config.clientNamespaces],
    monitoringNamespace: config.namespaces.monitoring,
    image: config.triton,
    modelControlMode: config.modelControlMode,
    modelName: served.name,
    cpu: config.tritonCpu,
    memoryGi: config.tritonMemoryGi,
    shmGi: config.shmGi,
    repositoryCopyGi: config.repositoryCopyGi,
    modelLoadBudgetS: config.modelLoadBudgetS,
    metricsIntervalMs: 1000,
    grpcThreads: config.grpcThreads,
    serviceAccountName: tritonAccount,
    configHash: createHash("sha256").update(JSON.stringify(variantFiles(served))).digest("hex").slice(0, 16),
  };
}

/** The three namespaces. */
export interface Namespaces {
  readonly serving: Namespace;
  readonly load: Namespace;
  readonly monitoring: Namespace;
}

export function prometheusArgs(
  config: StackConfig,
  disk: components.DataDisk,
  { serving, load, monitoring }: Namespaces,
): InClusterOwn<components.PrometheusArgs> {
  const { namespaces } = config;
  const targets = [
    { job: "triton", namespace: namespaces.triton, app: tritonLabels.app ?? "", portName: "metrics" },
    { job: "load-generator", namespace: namespaces.load, app: "load-controller", portName: "http" },
  ];
  const main = prometheusConfig({ scrapeIntervalS: config.scrapeIntervalS, targets, ruleFiles: [] });
  return {
    namespace: monitoring.namespaceName,
    namespaceName: namespaces.monitoring,
    files: { "prometheus.yml": JSON.stringify(main, null, 2) },
    scraped: [
      { namespace: serving.namespaceName, name: namespaces.triton, port: tritonPorts.metrics },
      { namespace: load.namespaceName, name: namespaces.load, port: controllerPort },
    ],
    retentionDays: config.retentionDays,
    disk: { handle: disk.handle, zone: config.zonesUsed[0] ?? "", sizeGb: config.prometheusDiskGi },
    digests: config.imageDigests,
  };
}

export function grafanaArgs(config: StackConfig, monitoring: Namespace): InClusterOwn<components.GrafanaArgs> {
  const url = `http://${prometheusService}.${config.namespaces.monitoring}.svc:${prometheusPort}`;
  const input = {
    windowS: rateWindowS(config.scrapeIntervalS),
    sloBoundMs: config.sloBoundMs,
    dataSourceUid: prometheusUid,
  };
  return {
    namespace: monitoring.namespaceName,
    namespaceName: config.namespaces.monitoring,
    dataSources: dataSources(url, config.scrapeIntervalS),
    dashboards: { "serving.json": servingDashboard(input) },
    digests: config.imageDigests,
  };
}

export function loadImageArgs(config: StackConfig, registry: components.ImageRegistry): components.LoadGeneratorImageArgs {
  return {
    given: config.loadImage || undefined,
    registryUrl: registry.url,
    contextFolder: projectFolder,
    tag: "0.1.0",
  };
}

export function loadGeneratorArgs(
  config: StackConfig,
  namespace: Namespace,
  image: components.LoadGeneratorImage,
): InClusterOwn<components.LoadGeneratorArgs> {
  return {
    namespace: namespace.namespaceName,
    namespaceName: config.namespaces.load,
    image: image.reference,
    workers: config.load.workers,
    workerCpu,
    tritonNamespace: config.namespaces.triton,
    monitoringNamespace: config.namespaces.monitoring,
  };
}

export function sweepAccessArgs(
  config: StackConfig,
  { serving, load, monitoring }: Namespaces,
): InClusterOwn<components.SweepAccessArgs> {
  return {
    loadNamespace: load.namespaceName,
    namespaces: [serving, load, monitoring].map((namespace) => namespace.namespaceName),
    members: config.tuneMembers,
  };
}
