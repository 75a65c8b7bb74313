import * as gcp from "@pulumi/gcp";
import * as pulumi from "@pulumi/pulumi";

export interface DataDiskArgs {
  readonly project: string;
  /** A change replaces the disk and loses its data. */
  readonly zone: string;
  /** Can grow in place, never shrink. */
  readonly sizeGb: number;
  readonly protect: boolean;
  readonly labels: Readonly<Record<string, string>>;
}

/**
 * A disk that Pulumi owns and pods use through a static volume. Disks made by a volume claim belong to the cluster's disk
 * driver, which deletes them some time after the claim is gone: a cluster destroyed right then leaves them behind, billed
 * and forgotten. Node pools depend on the disk, so on destroy it goes after the machines it is attached to.
 */
export class DataDisk extends pulumi.ComponentResource {
  public readonly disk: gcp.compute.Disk;
  /** `projects/P/zones/Z/disks/D`, what the disk driver calls the volume's handle. */
  public readonly handle: pulumi.Output<string>;

  constructor(name: string, args: DataDiskArgs, opts?: pulumi.ComponentResourceOptions) {
    super("triton-slo:index:DataDisk", name, args, opts);
    this.disk = new gcp.compute.Disk(
      name,
      {
        project: args.project,
        zone: args.zone,
        size: args.sizeGb,
        type: "pd-balanced",
        labels: { ...args.labels },
      },
      { parent: this, protect: args.protect },
    );
    this.handle = pulumi.interpolate`projects/${args.project}/zones/${args.zone}/disks/${this.disk.name}`;
    this.registerOutputs({ handle: this.handle });
  }
}
