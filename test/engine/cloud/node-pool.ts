/** A GKE node pool's inputs, read, and the nodes it makes: labels, taints, capacity, GPUs. */
import { createHash } from "node:crypto";
import type { KubeObject } from "../cluster/kube-api";
import { nodeResources } from "./machines";
import type { Thing } from "./world";

/** Inputs of gcp.container.NodePool that matter to nodes. The typings have checked them before. */
interface PoolInputs {
  name: string;
  cluster: string;
  location: string;
  nodeLocations?: string[];
  initialNodeCount?: number;
  nodeCount?: number;
  autoscaling?: {
    minNodeCount?: number;
    maxNodeCount?: number;
    totalMinNodeCount?: number;
    totalMaxNodeCount?: number;
  };
  nodeConfig?: {
    machineType?: string;
    diskSizeGb?: number;
    diskType?: string;
    spot?: boolean;
    labels?: Record<string, string>;
    taints?: { key: string; value: string; effect: string }[];
    guestAccelerators?: {
      type: string;
      count: number;
      gpuDriverInstallationConfig?: { gpuDriverVersion: string };
    }[];
  };
}

export interface Taint {
  key: string;
  value: string;
  effect: string;
}

/** A node pool as GKE sees it. */
export interface Pool {
  name: string;
  cluster: string;
  zones: string[];
  /** Nodes at creation and bounds of the autoscaler, over all zones. */
  initial: number;
  min: number;
  max: number;
  labels: Record<string, string>;
  taints: Taint[];
  machineType: string;
  diskGb: number;
  gpus: number;
  /** False when somebody else has to install the driver before the GPUs can be used. */
  driverByGke: boolean;
}

const effects: Record<string, string> = {
  NO_SCHEDULE: "NoSchedule",
  PREFER_NO_SCHEDULE: "PreferNoSchedule",
  NO_EXECUTE: "NoExecute",
};
const driverLabels: Record<string, string> = { DEFAULT: "default", LATEST: "latest" };

/** @param hasOtherPool whether the cluster has a pool without GPUs: only then does GKE add its own GPU taint */
export function poolOf(thing: Thing, hasOtherPool: boolean): Pool {
  const inputs = thing.inputs as unknown as PoolInputs;
  const config = inputs.nodeConfig ?? {};
  const zones = inputs.nodeLocations ?? [
    /-[a-z]$/.test(inputs.location) ? inputs.location : `${inputs.location}-b`,
  ];
  const scaling = inputs.autoscaling;
  const perZone = (count: number | undefined): number => (count ?? 0) * zones.length;
  const fixed = perZone(inputs.nodeCount ?? inputs.initialNodeCount);
  const [accelerator] = config.guestAccelerators ?? [];
  // Unset means DEFAULT since GKE 1.30.1-gke.1156000.
  const driver = accelerator?.gpuDriverInstallationConfig?.gpuDriverVersion ?? "DEFAULT";
  const taints = (config.taints ?? []).map((taint) => ({
    ...taint,
    effect: effects[taint.effect] ?? taint.effect,
  }));
  if (accelerator && hasOtherPool && !taints.some((taint) => taint.key === "nvidia.com/gpu")) {
    taints.push({ key: "nvidia.com/gpu", value: "present", effect: "NoSchedule" });
  }
  const machineType = config.machineType ?? "e2-medium";
  return {
    ...{ name: inputs.name, zones, taints, machineType, diskGb: config.diskSizeGb ?? 100 },
    cluster: inputs.cluster.split("/").at(-1) ?? inputs.cluster,
    initial: fixed,
    min: scaling ? (scaling.totalMinNodeCount ?? perZone(scaling.minNodeCount)) : fixed,
    max: scaling ? (scaling.totalMaxNodeCount ?? perZone(scaling.maxNodeCount)) : fixed,
    gpus: accelerator?.count ?? 0,
    driverByGke: driver !== "INSTALLATION_DISABLED",
    labels: {
      "kubernetes.io/os": "linux",
      "kubernetes.io/arch": "amd64",
      "node.kubernetes.io/instance-type": machineType,
      "cloud.google.com/gke-nodepool": inputs.name,
      "cloud.google.com/gke-os-distribution": "cos",
      "iam.gke.io/gke-metadata-server-enabled": "true",
      ...(config.spot ? { "cloud.google.com/gke-spot": "true" } : {}),
      ...(accelerator ? { "cloud.google.com/gke-accelerator": accelerator.type } : {}),
      ...(accelerator && driverLabels[driver]
        ? { "cloud.google.com/gke-gpu-driver-version": driverLabels[driver] }
        : {}),
      ...config.labels,
    },
  };
}

/** A new node of the pool, in the zone with the fewest. */
export function newNode(pool: Pool, existing: readonly KubeObject[]): object {
  const inZone = (zone: string): number =>
    existing.filter((node) => node.metadata.labels?.["topology.kubernetes.io/zone"] === zone).length;
  const zone = [...pool.zones].sort((a, b) => inZone(a) - inZone(b))[0]!;
  const suffix = createHash("sha256")
    .update(`${pool.name}${Date.now()}${existing.length}`)
    .digest("hex")
    .slice(0, 4);
  const name = `gke-${pool.cluster}-${pool.name}-${suffix}`;
  const { capacity, allocatable } = nodeResources(pool.machineType, pool.diskGb);
  const gpus = pool.gpus > 0 && pool.driverByGke ? { "nvidia.com/gpu": String(pool.gpus) } : {};
  return {
    ...{ apiVersion: "v1", kind: "Node" },
    metadata: {
      name,
      labels: {
        ...pool.labels,
        "kubernetes.io/hostname": name,
        "topology.kubernetes.io/zone": zone,
        "topology.gke.io/zone": zone,
        "topology.kubernetes.io/region": zone.slice(0, -2),
      },
    },
    spec: { taints: pool.taints, providerID: `gce://test-project/${zone}/${name}` },
    status: { capacity: { ...capacity, ...gpus }, allocatable: { ...allocatable, ...gpus } },
  };
}

interface PodSpec {
  nodeName?: string;
  nodeSelector?: Record<string, string>;
  tolerations?: { key?: string; operator?: string; value?: string; effect?: string }[];
  containers: { resources?: { limits?: Record<string, string> } }[];
  affinity?: {
    nodeAffinity?: {
      requiredDuringSchedulingIgnoredDuringExecution?: {
        nodeSelectorTerms: { matchExpressions?: { key: string; operator: string; values?: string[] }[] }[];
      };
    };
  };
}

/** GPUs that a pod asks for. */
export function gpusOf(pod: KubeObject): number {
  const spec = pod.spec as unknown as PodSpec;
  return spec.containers.reduce(
    (sum, container) => sum + Number(container.resources?.limits?.["nvidia.com/gpu"] ?? 0),
    0,
  );
}

/** Whether a new node of the pool could take the pod, as the cluster autoscaler asks. Sizes are left to the scheduler. */
export function suits(pod: KubeObject, pool: Pool): boolean {
  const spec = pod.spec as unknown as PodSpec;
  const selected = Object.entries(spec.nodeSelector ?? {}).every(
    ([key, value]) => pool.labels[key] === value,
  );
  const tolerated = pool.taints
    .filter((taint) => taint.effect !== "PreferNoSchedule")
    .every((taint) =>
      (spec.tolerations ?? []).some(
        (toleration) =>
          (toleration.key === undefined || toleration.key === taint.key) &&
          (toleration.operator === "Exists" || toleration.value === taint.value) &&
          (!toleration.effect || toleration.effect === taint.effect),
      ),
    );
  const terms =
    spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms;
  const holds = (rule: { key: string; operator: string; values?: string[] }): boolean => {
    const value = pool.labels[rule.key];
    if (rule.operator === "Exists") return value !== undefined;
    if (rule.operator === "DoesNotExist") return value === undefined;
    const listed = value !== undefined && (rule.values ?? []).includes(value);
    return rule.operator === "In" ? listed : !listed;
  };
  const attracted = !terms || terms.some((term) => (term.matchExpressions ?? []).every(holds));
  return selected && tolerated && attracted && gpusOf(pod) <= pool.gpus;
}
