import * as gcp from "@pulumi/gcp";
import * as pulumi from "@pulumi/pulumi";
import type { ClusterHandle } from "./cluster";

/** Kubernetes label that says which pool a node belongs to; pods select their pool by it. */
export const poolLabel = "triton-slo/pool";

/** A taint as the node pool API spells it. */
export interface Taint {
  readonly key: string;
  readonly value: string;
  readonly effect: "NO_SCHEDULE" | "PREFER_NO_SCHEDULE" | "NO_EXECUTE";
}

/** Settings that every pool of the stack shares. */
export interface NodePoolBase {
  readonly project: string;
  readonly cluster: ClusterHandle;
  /** Zones the nodes may be in; all in the cluster's region. Updated in place. */
  readonly zones: readonly string[];
  /** E-mail of the nodes' service account. A change replaces the pool. */
  readonly serviceAccount: pulumi.Input<string>;
  /** Labels of the machines (Compute Engine), not of the Kubernetes nodes. */
  readonly labels: Readonly<Record<string, string>>;
}

export interface CpuNodePoolArgs extends NodePoolBase {
  /** What the pool is for; the value of `poolLabel` on its nodes. */
  readonly purpose: "system" | "load";
  /** A change is a rolling update of the nodes. */
  readonly machineType: string;
  /** Bounds of the autoscaler over all zones; 0 lets the pool disappear when nothing needs it. */
  readonly minNodes: number;
  readonly maxNodes: number;
  /** Spot machines: cheaper, taken away at any time. A change replaces the pool. */
  readonly spot: boolean;
  /** Pods that ask for whole cores, with requests equal to limits, get cores of their own. */
  readonly wholeCores: boolean;
  /** Taints; pods of the pool must tolerate them. */
  readonly taints: readonly Taint[];
  /** Boot disk, GB. */
  readonly diskGb: number;
}

/** Node settings that do not depend on the pool: locked-down image, scopes and metadata. */
export function hardenedNodeConfig(base: NodePoolBase): gcp.types.input.container.NodePoolNodeConfig {
  return {
    serviceAccount: base.serviceAccount,
    // Access is limited by the account's roles, not by scopes.
    oauthScopes: ["https://www.googleapis.com/auth/cloud-platform"],
    // Pods see their own Workload Identity, never the node's account.
    workloadMetadataConfig: { mode: "GKE_METADATA" },
    shieldedInstanceConfig: { enableSecureBoot: true, enableIntegrityMonitoring: true },
    metadata: { "disable-legacy-endpoints": "true" },
    resourceLabels: { ...base.labels },
    // Image streaming: containers start before a multi-gigabyte image is all there.
    gcfsConfig: { enabled: true },
  };
}

/** A pool of machines without GPUs: for the system's pods or for the load workers. */
export class CpuNodePool extends pulumi.ComponentResource {
  public readonly pool: gcp.container.NodePool;

  constructor(name: string, args: CpuNodePoolArgs, opts?: pulumi.ComponentResourceOptions) {
    super("triton-slo:index:CpuNodePool", name, args, opts);
    this.pool = new gcp.container.NodePool(
      name,
      {
        project: args.project,
        cluster: args.cluster.name,
        location: args.cluster.location,
        nodeLocations: [...args.zones],
        initialNodeCount: args.minNodes > 0 ? 1 : 0,
        autoscaling: {
          totalMinNodeCount: args.minNodes,
          totalMaxNodeCount: args.maxNodes,
          locationPolicy: args.spot ? "ANY" : "BALANCED",
        },
        management: { autoRepair: true, autoUpgrade: true },
        upgradeSettings: { strategy: "SURGE", maxSurge: 1, maxUnavailable: 0 },
        nodeConfig: {
          ...hardenedNodeConfig(args),
          machineType: args.machineType,
          imageType: "COS_CONTAINERD",
          diskType: "pd-balanced",
          diskSizeGb: args.diskGb,
          spot: args.spot,
          gvnic: { enabled: true },
          ...(args.wholeCores ? { kubeletConfig: { cpuManagerPolicy: "static", cpuCfsQuota: true } } : {}),
          labels: { [poolLabel]: args.purpose },
          taints: args.taints.map((taint) => ({ ...taint })),
        },
      },
      // The count only says how the pool starts; afterwards the autoscaler owns it, and a change would replace the pool.
      { parent: this, ignoreChanges: ["initialNodeCount"], customTimeouts: { create: "30m", delete: "30m" } },
    );
    this.registerOutputs({ name: this.pool.name });
  }
}
