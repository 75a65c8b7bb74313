import * as gcp from "@pulumi/gcp";
import * as pulumi from "@pulumi/pulumi";
import type { Network } from "./network";

/**
 * How clients reach the control plane.
 * `dns`: Google's DNS endpoint, authorised by IAM; the cluster has no public address.
 * `private`: the private address only; clients must be inside the VPC.
 * `public`: the public address, for `authorizedNetworks` alone.
 */
export type ControlPlaneAccess = "dns" | "private" | "public";

export interface ClusterArgs {
  readonly project: string;
  /** A zone (zonal control plane) or a region (regional one). A change replaces the cluster. */
  readonly location: string;
  readonly network: Network;
  /** RAPID, REGULAR or STABLE. Updated in place. */
  readonly releaseChannel: string;
  readonly controlPlaneAccess: ControlPlaneAccess;
  /** CIDR blocks that may reach the public address; used with `public` only. */
  readonly authorizedNetworks: readonly string[];
  /** Google-managed DCGM exporter; needs Google-managed drivers. */
  readonly managedDcgm: boolean;
  /** Google Managed Prometheus; the managed DCGM exporter switches it on as well. Updated in place. */
  readonly managedPrometheus: boolean;
  /** Refuse to delete the cluster, in Pulumi and in the provider. */
  readonly protect: boolean;
  /** Labels of the cluster resource. */
  readonly labels: Readonly<Record<string, string>>;
}

/** What other components need of a cluster, whether made here or adopted. */
export interface ClusterHandle {
  /** The resource that in-cluster objects live and die with; undefined for an adopted cluster. */
  readonly owner: pulumi.Resource | undefined;
  readonly id: pulumi.Output<string>;
  readonly name: pulumi.Output<string>;
  readonly location: pulumi.Output<string>;
  /** Server URL for kubeconfigs. */
  readonly server: pulumi.Output<string>;
  /** Base64 CA certificate; empty when the server's certificate is publicly signed (DNS endpoint). */
  readonly caCertificate: pulumi.Output<string>;
}

/** Components of GKE's own monitoring; DCGM is added on request, because it brings its own GPU driver. */
const monitoringComponents = ["SYSTEM_COMPONENTS", "POD", "DEPLOYMENT", "DAEMONSET", "HPA"];

/** GKE cluster with private nodes, Workload Identity and Dataplane V2. It has no node pool of its own. */
export class Cluster extends pulumi.ComponentResource implements ClusterHandle {
  public readonly cluster: gcp.container.Cluster;
  public readonly owner: pulumi.Resource;
  public readonly id: pulumi.Output<string>;
  public readonly name: pulumi.Output<string>;
  public readonly location: pulumi.Output<string>;
  public readonly server: pulumi.Output<string>;
  public readonly caCertificate: pulumi.Output<string>;

  constructor(name: string, args: ClusterArgs, opts?: pulumi.ComponentResourceOptions) {
    super("triton-slo:index:Cluster", name, args, opts);
    const isPublic = args.controlPlaneAccess === "public";
    this.cluster = new gcp.container.Cluster(
      name,
      {
        project: args.project,
        location: args.location,
        network: args.network.network,
        subnetwork: args.network.subnetwork,
        networkingMode: "VPC_NATIVE",
        ipAllocationPolicy: {
          clusterSecondaryRangeName: args.network.podRange,
          servicesSecondaryRangeName: args.network.serviceRange,
        },
        // Dataplane V2: without it NetworkPolicies are accepted and do nothing.
        datapathProvider: "ADVANCED_DATAPATH",
        // The default pool goes at once; nodeConfig here would replace the cluster at every up (pulumi-gcp#744).
        initialNodeCount: 1,
        removeDefaultNodePool: true,
        releaseChannel: { channel: args.releaseChannel },
        workloadIdentityConfig: { workloadPool: `${args.project}.svc.id.goog` },
        privateClusterConfig: { enablePrivateNodes: true, enablePrivateEndpoint: !isPublic },
        masterAuthorizedNetworksConfig: {
          cidrBlocks: isPublic ? args.authorizedNetworks.map((cidrBlock) => ({ cidrBlock })) : [],
          gcpPublicCidrsAccessEnabled: false,
        },
        controlPlaneEndpointsConfig: {
          dnsEndpointConfig: { allowExternalTraffic: args.controlPlaneAccess === "dns" },
        },
        addonsConfig: {
          // Ingress controllers make endpoint groups that outlive the cluster; nothing here uses them.
          httpLoadBalancing: { disabled: true },
          dnsCacheConfig: { enabled: true },
          gcePersistentDiskCsiDriverConfig: { enabled: true },
          gcsFuseCsiDriverConfig: { enabled: true },
        },
        loggingConfig: { enableComponents: ["SYSTEM_COMPONENTS", "WORKLOADS"] },
        monitoringConfig: {
          enableComponents: args.managedDcgm ? [...monitoringComponents, "DCGM"] : monitoringComponents,
          managedPrometheus: { enabled: args.managedDcgm || args.managedPrometheus },
        },
        deletionProtection: args.protect,
        resourceLabels: args.labels,
      },
      { parent: this, protect: args.protect, customTimeouts: { create: "45m", delete: "45m" } },
    );
    this.owner = this.cluster;
    this.id = this.cluster.id;
    this.name = this.cluster.name;
    this.location = this.cluster.location;
    const viaDns = args.controlPlaneAccess === "dns";
    this.server = viaDns
      ? pulumi.interpolate`https://${this.cluster.controlPlaneEndpointsConfig.apply((config) => config.dnsEndpointConfig.endpoint)}`
      : pulumi.interpolate`https://${this.cluster.endpoint}`;
    this.caCertificate = viaDns
      ? pulumi.output("")
      : this.cluster.masterAuth.apply((auth) => auth.clusterCaCertificate);
    this.registerOutputs({ id: this.id, name: this.name, location: this.location, server: this.server });
  }
}
