import * as components from "../../components";
import { loadTaint } from "../../components/load-generator-pods";
import type { StackConfig } from "../derived-config";
import type { Project } from "./project";

export interface ClusterSection {
  readonly cluster: components.Cluster | components.AdoptedCluster;
  readonly systemPool: components.CpuNodePool;
  readonly gpuPool: components.GpuNodePool;
  /** Undefined without a load generator. */
  readonly loadPool: components.CpuNodePool | undefined;
  /** Disk of Prometheus; undefined without monitoring. */
  readonly dataDisk: components.DataDisk | undefined;
  /** Disk of the load controller's history; undefined when that ends with its pod. */
  readonly historyDisk: components.DataDisk | undefined;
}

/** The cluster, or an existing one, its node pools, and the disks that outlive the pods. */
export function createCluster(
  config: StackConfig,
  project: Project,
  network: components.Network | undefined,
): ClusterSection {
  const cluster = clusterOf(config, project, network);
  const dataDisk = config.monitoring
    ? createDisk("prometheus-disk", config.prometheusDiskSizeGi, config, project)
    : undefined;
  const historyDisk =
    config.loadHistoryDiskGi > 0
      ? createDisk("load-history-disk", config.loadHistoryDiskGi, config, project)
      : undefined;
  const disks = [dataDisk, historyDisk].filter((disk) => disk !== undefined);
  const base = {
    project: config.project,
    cluster,
    zones: config.zonesUsed,
    serviceAccount: project.accounts.nodesEmail,
    labels: config.resourceLabels,
  };
  const systemPool = new components.CpuNodePool(
    "system-pool",
    {
      ...base,
      purpose: "system",
      machineType: config.systemMachineType,
      minNodes: 1,
      maxNodes: config.systemMaxNodes,
      spot: false,
      wholeCores: false,
      taints: [],
      diskGb: 50,
      // The disks are in the first zone, so there must be a node there.
      zones: config.zonesUsed.slice(0, 1),
    },
    // After the disks, so that on destroy they go after the machines they may be attached to.
    project.after(project.accounts, cluster, ...disks),
  );
  const gpuPool = createGpuPool(config, base, project, systemPool);
  const loadPool = config.loadGenerator ? createLoadPool(config, base, project, systemPool) : undefined;
  return { cluster, systemPool, gpuPool, loadPool, dataDisk, historyDisk };
}

function clusterOf(
  config: StackConfig,
  project: Project,
  network: components.Network | undefined,
): components.Cluster | components.AdoptedCluster {
  const { location, controlPlaneAccess } = config;
  if (network === undefined || config.existingCluster !== "") {
    return new components.AdoptedCluster(
      "cluster",
      { project: config.project, clusterName: config.existingCluster, location, controlPlaneAccess },
      project.after(project.services),
    );
  }
  return new components.Cluster(
    "cluster",
    {
      project: config.project,
      location,
      network,
      controlPlaneAccess,
      releaseChannel: config.releaseChannel,
      authorizedNetworks: config.authorizedNetworks,
      managedDcgm: config.managedDcgm,
      managedPrometheus: config.managedPrometheus,
      protect: config.protect,
      labels: config.resourceLabels,
    },
    project.after(project.services, network),
  );
}

function createDisk(
  name: string,
  sizeGb: number,
  config: StackConfig,
  project: Project,
): components.DataDisk {
  return new components.DataDisk(
    name,
    {
      project: config.project,
      zone: config.zonesUsed[0] ?? "",
      sizeGb,
      protect: config.protect,
      labels: config.resourceLabels,
    },
    project.after(project.services),
  );
}

function createGpuPool(
  config: StackConfig,
  base: components.NodePoolBase,
  project: Project,
  systemPool: components.CpuNodePool,
): components.GpuNodePool {
  return new components.GpuNodePool(
    "gpu-pool",
    {
      ...base,
      gpuType: config.gpuType,
      gpusPerNode: config.gpusPerNode,
      machineType: config.gpuMachineType,
      imageType: config.gpuImageType,
      driverMode: config.driverMode,
      minNodes: config.asleep ? 0 : config.gpuMinNodes,
      maxNodes: config.gpuMaxNodes,
      initialNodes: config.gpuInitialNodes,
      spot: config.gpuSpot,
      reservation: config.gpuReservation || undefined,
      diskGb: 100,
    },
    // After a pool without GPUs, which is also where everything else runs.
    project.after(systemPool),
  );
}

function createLoadPool(
  config: StackConfig,
  base: components.NodePoolBase,
  project: Project,
  systemPool: components.CpuNodePool,
): components.CpuNodePool {
  return new components.CpuNodePool(
    "load-pool",
    {
      ...base,
      purpose: "load",
      machineType: config.loadMachineType,
      minNodes: 0,
      maxNodes: config.load.maxNodes,
      spot: config.loadSpot,
      // A sender that waits for a core is late, and its lateness would be the server's.
      wholeCores: true,
      taints: [loadTaint],
      diskGb: 50,
    },
    project.after(systemPool),
  );
}
