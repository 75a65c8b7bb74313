import * as gcp from "@pulumi/gcp";
import * as pulumi from "@pulumi/pulumi";
import { userError } from "./user-error";
import type { ClusterHandle, ControlPlaneAccess } from "./cluster";

export interface AdoptedClusterArgs {
  readonly project: string;
  /** Name and location of a cluster that exists. */
  readonly clusterName: string;
  readonly location: string;
  readonly controlPlaneAccess: ControlPlaneAccess;
}

/** A GKE cluster that somebody else manages. It must have Workload Identity, or Triton could not read its models. */
export class AdoptedCluster extends pulumi.ComponentResource implements ClusterHandle {
  /** The cluster stays when the stack goes, so nothing may be dropped with it. */
  public readonly owner = undefined;
  public readonly id: pulumi.Output<string>;
  public readonly name: pulumi.Output<string>;
  public readonly location: pulumi.Output<string>;
  public readonly server: pulumi.Output<string>;
  public readonly caCertificate: pulumi.Output<string>;

  constructor(name: string, args: AdoptedClusterArgs, opts?: pulumi.ComponentResourceOptions) {
    super("triton-slo:index:AdoptedCluster", name, args, opts);
    const { project, location, clusterName } = args;
    const found = gcp.container
      .getClusterOutput({ project, location, name: clusterName }, { parent: this })
      .apply((cluster) => {
        if (cluster.workloadIdentityConfigs.length === 0) {
          throw userError(
            `cluster ${clusterName} in ${location} has no Workload Identity; enable it with: gcloud container clusters update ` +
              `${clusterName} --location ${location} --workload-pool ${project}.svc.id.goog`,
          );
        }
        return cluster;
      });
    const viaDns = args.controlPlaneAccess === "dns";
    this.id = found.id;
    this.name = found.name.apply((adopted) => adopted);
    this.location = pulumi.output(location);
    this.server = found.apply((cluster) => {
      const dns = cluster.controlPlaneEndpointsConfigs[0]?.dnsEndpointConfigs[0]?.endpoint;
      return `https://${viaDns && dns ? dns : cluster.endpoint}`;
    });
    this.caCertificate = viaDns
      ? pulumi.output("")
      : found.apply((cluster) => cluster.masterAuths[0]?.clusterCaCertificate ?? "");
    this.registerOutputs({ id: this.id, name: this.name, location: this.location });
  }
}
