/**
 * GKE in small: clusters are real control planes on loopback, node pools are nodes that kwok animates. Besides nodes, three
 * things that GKE runs in a cluster are pretended here: its storage classes, the GPU device plugin (GPUs become allocatable
 * once a driver is installed) and the cluster autoscaler with its events.
 */
import { join } from "node:path";
import { startCluster, type Cluster, type Forward } from "../cluster/cluster";
import type { KubeObject } from "../cluster/kube-api";
import { until } from "../cluster/program";
import { gpusOf, newNode, poolOf, suits, type Pool } from "./node-pool";
import type { Thing, World } from "./world";

const clusterType = "gcp:container/cluster:Cluster";
const poolType = "gcp:container/nodePool:NodePool";
const poolLabel = "cloud.google.com/gke-nodepool";

/** Why new GPU nodes cannot be had, in the autoscaler's words. */
export type ScaleUpFailure = "GCE quota exceeded" | "GCE out of resources";

interface Running {
  cluster: Cluster;
  timer: NodeJS.Timeout;
}

interface Condition {
  type: string;
  status: string;
  reason?: string;
}

const conditionsOf = (object: KubeObject): Condition[] =>
  (object.status?.conditions as Condition[] | undefined) ?? [];
const isTrue = (object: KubeObject, type: string): boolean =>
  conditionsOf(object).some((condition) => condition.type === type && condition.status === "True");

/** The clusters of one pretended project. */
export class Gke {
  private readonly leaving = new Set<string>();
  private readonly running = new Map<string, Running>();
  /** Objects that still held something outside a cluster when it was deleted; has to stay empty. */
  readonly orphans: string[] = [];
  /** Set to make the autoscaler fail for pools with GPUs. */
  scaleUpFailure: ScaleUpFailure | undefined;
  /** Set to keep GPUs from becoming allocatable although the installer runs, as a failed installation does. */
  driverBroken = false;

  constructor(
    private readonly world: World,
    private readonly dir: string,
    private readonly forwards: readonly Forward[] = [],
  ) {}

  /** The only running cluster. */
  get cluster(): Cluster {
    const [first] = this.running.values();
    if (!first) throw new Error("No cluster is running");
    return first.cluster;
  }

  /** Whether a cluster is running. */
  get hasCluster(): boolean {
    return this.running.size > 0;
  }

  async createCluster(thing: Thing): Promise<void> {
    const cluster = await startCluster(join(this.dir, "cluster"), {
      pki: join(this.dir, "pki"),
      forwards: this.forwards,
    });
    for (const [name, type] of [
      ["standard-rwo", "pd-balanced"],
      ["premium-rwo", "pd-ssd"],
    ]) {
      await cluster.api.create("/apis/storage.k8s.io/v1/storageclasses", {
        metadata: { name },
        ...{
          provisioner: "pd.csi.storage.gke.io",
          parameters: { type },
          volumeBindingMode: "WaitForFirstConsumer",
        },
      });
    }
    let busy = false;
    const timer = setInterval(() => {
      if (busy) return;
      busy = true;
      this.tend(thing, cluster)
        .catch((error: unknown) => {
          // Calls in flight fail when the cluster goes; anything else has to be seen.
          if (this.running.has(thing.id)) console.error("GKE stand-in:", error);
        })
        .finally(() => (busy = false));
    }, 400);
    timer.unref();
    this.running.set(thing.id, { cluster, timer });
    this.describe(thing);
  }

  /** Sets the computed outputs that depend on the running cluster. */
  describe(thing: Thing): void {
    const { cluster } = this.running.get(thing.id)!;
    const endpoints = thing.inputs.controlPlaneEndpointsConfig as { dnsEndpointConfig?: object } | undefined;
    Object.assign(thing.computed, {
      endpoint: cluster.endpoint,
      masterAuth: { clusterCaCertificate: cluster.caBase64, clientCertificate: "", clientKey: "" },
      controlPlaneEndpointsConfig: {
        ...endpoints,
        dnsEndpointConfig: { ...endpoints?.dnsEndpointConfig, endpoint: cluster.endpoint },
      },
    });
  }

  async removeCluster(thing: Thing): Promise<void> {
    const entry = this.running.get(thing.id);
    if (!entry) return;
    clearInterval(entry.timer);
    this.running.delete(thing.id);
    this.orphans.push(...(await holders(entry.cluster)));
    await entry.cluster.stop();
  }

  async createPool(thing: Thing): Promise<void> {
    const pool = this.pool(thing);
    await this.scale(pool, Math.max(pool.initial, pool.min));
  }

  async updatePool(thing: Thing): Promise<void> {
    const pool = this.pool(thing);
    for (const node of await this.nodes(pool)) {
      await this.cluster.api.patch(`/api/v1/nodes/${node.metadata.name}`, {
        metadata: { labels: pool.labels },
        spec: { taints: pool.taints },
      });
    }
    await this.scale(pool, pool.min);
  }

  async removePool(thing: Thing): Promise<void> {
    if (!this.hasCluster) return;
    const pool = this.pool(thing);
    // From here on the autoscaler leaves it alone, or it would bring nodes for the pods that are driven out.
    this.leaving.add(thing.id);
    await until(`pool ${pool.name} is empty`, async () => {
      const nodes = await this.nodes(pool);
      for (const node of nodes) await this.removeNode(node);
      return nodes.length === 0;
    });
    this.leaving.delete(thing.id);
  }

  /** Drains a node and deletes it, as an upgrade, a repair or a preemption does. */
  async removeNode(node: KubeObject): Promise<void> {
    const { api } = this.cluster;
    const { name } = node.metadata;
    await api.patch(`/api/v1/nodes/${name}`, { spec: { unschedulable: true } });
    const pods = await api.list(`/api/v1/pods?fieldSelector=spec.nodeName=${name}`);
    for (const pod of pods) {
      await api.delete(
        `/api/v1/namespaces/${pod.metadata.namespace}/pods/${pod.metadata.name}?gracePeriodSeconds=0`,
      );
    }
    await api.delete(`/api/v1/nodes/${name}`);
  }

  /** The pod that uses a persistent disk, if any: an attached disk cannot be deleted. */
  async diskUser(diskId: string): Promise<string | undefined> {
    if (!this.hasCluster) return undefined;
    const { api } = this.cluster;
    const volume = (await api.list("/api/v1/persistentvolumes")).find((candidate) => {
      const csi = candidate.spec?.csi as { volumeHandle?: string } | undefined;
      return csi?.volumeHandle === diskId;
    });
    const claim = volume?.spec?.claimRef as { namespace: string; name: string } | undefined;
    if (!claim) return undefined;
    const pods = await api.list(`/api/v1/namespaces/${claim.namespace}/pods`);
    const user = pods.find((pod) => {
      const volumes = (pod.spec?.volumes ?? []) as { persistentVolumeClaim?: { claimName: string } }[];
      return (
        pod.spec?.nodeName && volumes.some((entry) => entry.persistentVolumeClaim?.claimName === claim.name)
      );
    });
    return (
      user &&
      `The disk resource '${diskId}' is already being used by '${String(user.spec?.nodeName)}', resourceInUseByAnotherResource`
    );
  }

  /** Ends all clusters that are still there. */
  async close(): Promise<void> {
    const all = [...this.running.values()];
    this.running.clear();
    for (const { timer } of all) clearInterval(timer);
    await Promise.all(all.map(({ cluster }) => cluster.stop()));
  }

  private pool(thing: Thing): Pool {
    const others = this.world
      .all(poolType)
      .filter((other) => other.id !== thing.id && other.inputs.cluster === thing.inputs.cluster);
    return poolOf(
      thing,
      others.some((other) => poolOf(other, false).gpus === 0),
    );
  }

  private nodes(pool: Pool): Promise<KubeObject[]> {
    return this.cluster.api.list(
      `/api/v1/nodes?labelSelector=${encodeURIComponent(`${poolLabel}=${pool.name}`)}`,
    );
  }

  private async scale(pool: Pool, count: number): Promise<void> {
    const { api } = this.cluster;
    for (let nodes = await this.nodes(pool); nodes.length < count; nodes = await this.nodes(pool)) {
      await api.create("/api/v1/nodes", newNode(pool, nodes));
    }
    await until(`nodes of ${pool.name} are ready`, async () =>
      (await this.nodes(pool)).every((node) => isTrue(node, "Ready")),
    );
  }

  private async tend(thing: Thing, cluster: Cluster): Promise<void> {
    const pools = this.world
      .all(poolType)
      .filter(
        (pool) => pool.inputs.cluster === thing.inputs.name && !pool.broken && !this.leaving.has(pool.id),
      )
      .map((pool) => this.pool(pool));
    await this.exposeGpus(cluster, pools);
    await this.autoscale(cluster, pools);
  }

  /** Device plugin: where the driver's DaemonSet runs, the node's GPUs become allocatable. */
  private async exposeGpus(cluster: Cluster, pools: Pool[]): Promise<void> {
    const waiting = pools.filter((pool) => pool.gpus > 0 && !pool.driverByGke);
    if (waiting.length === 0 || this.driverBroken) return;
    const installers = await cluster.api.list(
      "/api/v1/namespaces/kube-system/pods?labelSelector=k8s-app=nvidia-driver-installer",
    );
    for (const pool of waiting) {
      for (const node of await this.nodes(pool)) {
        const known = (node.status?.allocatable as Record<string, string> | undefined)?.["nvidia.com/gpu"];
        const installed = installers.some(
          (pod) => pod.spec?.nodeName === node.metadata.name && isTrue(pod, "Ready"),
        );
        if (known !== undefined || !installed) continue;
        const gpus = { "nvidia.com/gpu": String(pool.gpus) };
        await cluster.api.patch(`/api/v1/nodes/${node.metadata.name}/status`, {
          status: { capacity: gpus, allocatable: gpus },
        });
      }
    }
  }

  /** Cluster autoscaler: a pod that fits nowhere gets a node of the first pool that suits it and has room. */
  private async autoscale(cluster: Cluster, pools: Pool[]): Promise<void> {
    const pending = (await cluster.api.list("/api/v1/pods?fieldSelector=status.phase=Pending")).filter(
      (pod) =>
        conditionsOf(pod).some(
          (condition) => condition.type === "PodScheduled" && condition.reason === "Unschedulable",
        ),
    );
    const nodes = await cluster.api.list("/api/v1/nodes");
    for (const pod of pending) {
      if (await this.told(cluster, pod)) continue;
      const suited = pools.filter((pool) => suits(pod, pool));
      // A node that has just come may still get its driver, which is what the pod is waiting for.
      const coming = suited.some((pool) =>
        nodes.some((node) => {
          const ofPool = node.metadata.labels?.[poolLabel] === pool.name;
          const allocatable = node.status?.allocatable as Record<string, string> | undefined;
          return ofPool && gpusOf(pod) > 0 && allocatable?.["nvidia.com/gpu"] === undefined;
        }),
      );
      if (coming) continue;
      const size = (pool: Pool): number =>
        nodes.filter((node) => node.metadata.labels?.[poolLabel] === pool.name).length;
      const pool = suited.find((candidate) => size(candidate) < candidate.max);
      const event = (type: "Normal" | "Warning", reason: string, message: string): Promise<void> =>
        cluster.api.event({ ...pod, kind: "Pod" }, type, reason, message, "cluster-autoscaler");
      if (!pool) {
        const reached =
          suited.length > 0
            ? `${suited.length} max node group size reached`
            : `${pools.length} node(s) didn't match Pod's node affinity/selector`;
        await event("Normal", "NotTriggerScaleUp", `pod didn't trigger scale-up: ${reached}`);
      } else if (this.scaleUpFailure && pool.gpus > 0) {
        await event(
          "Warning",
          "FailedScaleUp",
          `Node scale up in zones ${pool.zones.join(", ")} associated with this pod failed: ${this.scaleUpFailure}. ` +
            "Pod is at risk of not being scheduled.",
        );
      } else {
        await event(
          "Normal",
          "TriggeredScaleUp",
          `pod triggered scale-up: [{${pool.name} ${size(pool)}->${size(pool) + 1} (max: ${pool.max})}]`,
        );
        await cluster.api.create("/api/v1/nodes", newNode(pool, await this.nodes(pool)));
        return;
      }
    }
  }

  /** Whether the autoscaler has spoken about this pod within the last ten seconds. */
  private async told(cluster: Cluster, pod: KubeObject): Promise<boolean> {
    const { namespace, uid } = pod.metadata;
    const events = await cluster.api.list(
      `/api/v1/namespaces/${namespace}/events?fieldSelector=involvedObject.uid=${uid}`,
    );
    return events.some((event) => {
      const source = event.source as { component?: string } | undefined;
      return (
        source?.component === "cluster-autoscaler" &&
        Date.now() - Date.parse(String(event.lastTimestamp)) < 10_000
      );
    });
  }
}

/** What owns something outside the cluster and would be left behind: dynamic volumes and load balancers. */
async function holders(cluster: Cluster): Promise<string[]> {
  const volumes = (await cluster.api.list("/api/v1/persistentvolumes")).filter((volume) => {
    const dynamic = volume.metadata.annotations?.["pv.kubernetes.io/provisioned-by"] !== undefined;
    return dynamic && volume.spec?.persistentVolumeReclaimPolicy === "Delete";
  });
  const services = (await cluster.api.list("/api/v1/services")).filter(
    (service) => service.spec?.type === "LoadBalancer",
  );
  return [
    ...volumes.map((volume) => `PersistentVolume ${volume.metadata.name}`),
    ...services.map((service) => `Service ${service.metadata.name}`),
  ];
}

export { clusterType, poolType };
