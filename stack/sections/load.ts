import { join, relative } from "node:path";
import * as components from "../../components";
import type { StackConfig } from "../derived-config";
import { imageContentTag } from "../image-content";
import { workerCpu } from "../load-sizing";
import type { ClusterSection } from "./cluster";
import type { Kubernetes } from "./kubernetes";
import type { Project } from "./project";

/** Build context of the load generator's image. */
const projectFolder = join(__dirname, "..", "..");

/** Sweeps may go beyond what the workers are sized for; so many times that is no sweep. */
const SLIP_OF_THE_HAND = 10;

/** Registry, image, controller and workers of the load generator; and what the tune command may do in the cluster. */
export function createLoad(
  config: StackConfig,
  project: Project,
  { cluster, systemPool, loadPool, historyDisk }: ClusterSection,
  kubernetes: Kubernetes,
  triton: components.Triton,
): void {
  const { provider, serving, load, monitoring } = kubernetes;
  if (loadPool !== undefined) {
    new components.LoadGenerator(
      "load",
      {
        provider,
        cluster,
        namespace: load.namespaceName,
        namespaceName: config.namespaces.load,
        image: loadImage(config, project).reference,
        workers: config.load.workers,
        workerCpu,
        busyWaitMs: config.loadBusyWaitMs,
        historyDisk: historyDisk && {
          handle: historyDisk.handle,
          zone: config.zonesUsed[0] ?? "",
          sizeGb: config.loadHistoryDiskGi,
        },
        tritonNamespace: config.namespaces.triton,
        monitoringNamespaces: config.metricsReaders,
        sloBoundMs: config.sloBoundMs,
        maxRatePerS: config.peakRatePerS * SLIP_OF_THE_HAND,
      },
      // After Triton: workers are placed in the zone of its pods.
      { dependsOn: [load, loadPool, systemPool, triton] },
    );
  }
  new components.SweepAccess(
    "sweep-access",
    {
      provider,
      cluster,
      loadNamespace: load.namespaceName,
      namespaces: [serving, load, monitoring].map((namespace) => namespace.namespaceName),
      members: config.tuneMembers,
    },
    { dependsOn: [serving, load, monitoring] },
  );
}

function loadImage(config: StackConfig, project: Project): components.LoadGeneratorImage {
  const registry = new components.ImageRegistry(
    "registry",
    {
      project: config.project,
      region: config.region,
      repositoryId: `${project.shortName}-images`,
      pullerEmail: project.accounts.nodesEmail,
      labels: config.resourceLabels,
    },
    project.after(project.services, project.accounts),
  );
  // A relative folder: an absolute one would differ between machines, and each would see the other's image as changed.
  return new components.LoadGeneratorImage(
    "load-image",
    {
      given: config.loadImage || undefined,
      registryUrl: registry.url,
      contextFolder: relative(process.cwd(), projectFolder) || ".",
      tag: imageContentTag(projectFolder),
    },
    { dependsOn: [registry] },
  );
}
