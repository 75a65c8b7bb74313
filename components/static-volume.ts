import * as k8s from "@pulumi/kubernetes";
import * as pulumi from "@pulumi/pulumi";
import { deletedBeforeCluster, type InCluster } from "./in-cluster";

export interface StaticVolumeArgs extends InCluster {
  readonly namespace: pulumi.Input<string>;
  /** Name of the volume claim. */
  readonly claimName: string;
  /** Handle of an existing disk. */
  readonly diskHandle: pulumi.Input<string>;
  /** Zone of the disk: pods that use it run there. */
  readonly zone: string;
  readonly sizeGb: number;
  /**
   * Default ReadWriteOnce: pods of one node. ReadWriteOncePod keeps a successor waiting until its predecessor is gone; it needs Kubernetes
   * 1.29. A change replaces volume and claim, not the disk.
   */
  readonly accessMode?: "ReadWriteOnce" | "ReadWriteOncePod";
}

/** An existing disk as a volume and a claim bound to it. Deleting them leaves the disk, which its own component deletes. */
export class StaticVolume extends pulumi.ComponentResource {
  public readonly claim: k8s.core.v1.PersistentVolumeClaim;

  constructor(name: string, args: StaticVolumeArgs, opts?: pulumi.ComponentResourceOptions) {
    super("triton-slo:index:StaticVolume", name, { claimName: args.claimName }, opts);
    const options = deletedBeforeCluster(this, args);
    const capacity = { storage: `${args.sizeGb}Gi` };
    const accessModes = [args.accessMode ?? "ReadWriteOnce"];
    const volume = new k8s.core.v1.PersistentVolume(
      name,
      {
        spec: {
          capacity,
          accessModes,
          persistentVolumeReclaimPolicy: "Retain",
          storageClassName: "",
          volumeMode: "Filesystem",
          csi: { driver: "pd.csi.storage.gke.io", volumeHandle: args.diskHandle, fsType: "ext4" },
          nodeAffinity: {
            required: {
              nodeSelectorTerms: [
                { matchExpressions: [{ key: "topology.gke.io/zone", operator: "In", values: [args.zone] }] },
              ],
            },
          },
        },
      },
      options,
    );
    this.claim = new k8s.core.v1.PersistentVolumeClaim(
      name,
      {
        metadata: { name: args.claimName, namespace: args.namespace },
        spec: {
          accessModes,
          resources: { requests: capacity },
          // An empty class: the cluster's default class would make a disk of its own.
          storageClassName: "",
          volumeName: volume.metadata.name,
        },
      },
      options,
    );
    this.registerOutputs({ claimName: args.claimName });
  }
}
