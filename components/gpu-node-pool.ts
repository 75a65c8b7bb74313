import * as gcp from "@pulumi/gcp";
import * as pulumi from "@pulumi/pulumi";
import { hardenedNodeConfig, poolLabel, type NodePoolBase, type Taint } from "./node-pool";

/**
 * Who installs the GPU driver. A change replaces the pool: a loaded driver is never upgraded in place.
 * `daemonset`: the stack's own DaemonSet. `gke-default`, `gke-latest`: GKE, its default or newest version.
 */
export type DriverMode = "daemonset" | "gke-default" | "gke-latest";

/** The taint that keeps pods without a GPU off GPU nodes. */
export const gpuTaint: Taint = { key: "nvidia.com/gpu", value: "present", effect: "NO_SCHEDULE" };

export interface GpuNodePoolArgs extends NodePoolBase {
  /** Accelerator type, e.g. `nvidia-tesla-t4`. A change replaces the pool. */
  readonly gpuType: string;
  /** GPUs of one node. A change replaces the pool. */
  readonly gpusPerNode: number;
  readonly machineType: string;
  readonly imageType: string;
  /** A change replaces the pool. */
  readonly driverMode: DriverMode;
  /** Bounds of the autoscaler over all zones; 0 nodes cost nothing. Updated in place. */
  readonly minNodes: number;
  readonly maxNodes: number;
  /**
   * Nodes at creation. 0 turns a missing quota or a stockout into a pending pod with an event; 1 makes the creation of the
   * pool fail at once. Later changes are ignored: they would replace the pool.
   */
  readonly initialNodes: number;
  /** Spot machines. A change replaces the pool. */
  readonly spot: boolean;
  /** Name of a specific reservation to consume; undefined consumes none. A change replaces the pool. */
  readonly reservation?: string;
  /** Taints beyond the GPU taint. */
  readonly taints?: readonly Taint[];
  /** Boot disk, GB: holds the server image and the copy of the model repository. A change replaces the pool. */
  readonly diskGb: number;
}

/**
 * Never undefined: since GKE 1.30.1-gke.1156000 an unset value means DEFAULT, before it meant none, and the provider then
 * shows a replacement at every up (magic-modules#11152).
 */
export function driverVersion(mode: DriverMode): string {
  switch (mode) {
    case "daemonset":
      return "INSTALLATION_DISABLED";
    case "gke-default":
      return "DEFAULT";
    case "gke-latest":
      return "LATEST";
  }
}

/** The GPU taint exactly once, then the others. A taint of the same key is the caller's to change, not to double. */
export function withGpuTaint(taints: readonly Taint[]): Taint[] {
  const own = taints.filter((taint) => taint.key === gpuTaint.key);
  return [own[0] ?? gpuTaint, ...taints.filter((taint) => taint.key !== gpuTaint.key)];
}

/**
 * Pool of GPU nodes. Make it depend on a CPU pool: the taint is declared here because GKE adds its own only when another
 * pool already exists.
 */
export class GpuNodePool extends pulumi.ComponentResource {
  public readonly pool: gcp.container.NodePool;

  constructor(name: string, args: GpuNodePoolArgs, opts?: pulumi.ComponentResourceOptions) {
    super("triton-slo:index:GpuNodePool", name, args, opts);
    this.pool = new gcp.container.NodePool(
      name,
      {
        project: args.project,
        cluster: args.cluster.name,
        location: args.cluster.location,
        // A regional cluster would otherwise pick zones without this GPU.
        nodeLocations: [...args.zones],
        initialNodeCount: args.initialNodes,
        autoscaling: {
          totalMinNodeCount: args.minNodes,
          totalMaxNodeCount: args.maxNodes,
          // Any zone that has a GPU left; balancing would wait for the one that has none.
          locationPolicy: "ANY",
        },
        management: { autoRepair: true, autoUpgrade: true },
        // No spare GPU quota is assumed: a surge node could not be had.
        upgradeSettings: { strategy: "SURGE", maxSurge: 0, maxUnavailable: 1 },
        nodeConfig: {
          ...hardenedNodeConfig(args),
          machineType: args.machineType,
          imageType: args.imageType,
          diskType: "pd-balanced",
          diskSizeGb: args.diskGb,
          spot: args.spot,
          gvnic: { enabled: true },
          // Secure Boot refuses kernel modules that Google has not signed; the installer's are signed for COS only.
          shieldedInstanceConfig: {
            enableSecureBoot: args.imageType === "COS_CONTAINERD",
            enableIntegrityMonitoring: true,
          },
          guestAccelerators: [
            {
              type: args.gpuType,
              count: args.gpusPerNode,
              gpuDriverInstallationConfig: { gpuDriverVersion: driverVersion(args.driverMode) },
            },
          ],
          reservationAffinity: reservationAffinity(args.reservation),
          labels: { [poolLabel]: "gpu" },
          taints: withGpuTaint(args.taints ?? []).map((taint) => ({ ...taint })),
        },
      },
      { parent: this, ignoreChanges: ["initialNodeCount"], customTimeouts: { create: "30m", delete: "30m" } },
    );
    this.registerOutputs({ name: this.pool.name });
  }
}

function reservationAffinity(
  reservation: string | undefined,
): gcp.types.input.container.NodePoolNodeConfigReservationAffinity {
  return reservation === undefined
    ? { consumeReservationType: "NO_RESERVATION" }
    : {
        consumeReservationType: "SPECIFIC_RESERVATION",
        key: "compute.googleapis.com/reservation-name",
        values: [reservation],
      };
}
