import * as components from "../../components";
import type { StackConfig } from "../derived-config";
import type { ClusterSection } from "./cluster";
import type { Project } from "./project";

/** What the sections in the cluster share. */
export interface Kubernetes extends components.InCluster {
  readonly serving: components.WorkloadNamespace;
  readonly monitoring: components.WorkloadNamespace;
  readonly load: components.WorkloadNamespace;
  /** Undefined when GKE installs the driver. */
  readonly gpuDriver: components.GpuDriver | undefined;
}

/** Access to the cluster, the GPU driver, and namespaces in which only restricted pods run and nothing is connected. */
export function createKubernetes(config: StackConfig, project: Project, section: ClusterSection): Kubernetes {
  const { cluster, systemPool, gpuPool } = section;
  const access = new components.KubernetesAccess(
    "kubernetes",
    { cluster, auth: config.kubeconfigAuth },
    project.after(),
  );
  const inCluster = { provider: access.provider, cluster };
  const namespace = (name: keyof typeof config.namespaces) =>
    new components.WorkloadNamespace(
      `namespace-${name}`,
      { ...inCluster, namespace: config.namespaces[name] },
      { dependsOn: [systemPool] },
    );
  const gpuDriver =
    config.driverMode === "daemonset"
      ? new components.GpuDriver(
          "gpu-driver",
          { ...inCluster, digests: config.imageDigests },
          { dependsOn: [gpuPool] },
        )
      : undefined;
  return {
    ...inCluster,
    serving: namespace("triton"),
    monitoring: namespace("monitoring"),
    load: namespace("load"),
    gpuDriver,
  };
}
