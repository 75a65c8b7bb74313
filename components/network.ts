import * as gcp from "@pulumi/gcp";
import * as pulumi from "@pulumi/pulumi";

/** Names of an existing network to use instead of making one. */
export interface ExistingNetwork {
  /** VPC name. */
  readonly network: string;
  /** Subnetwork name in the stack's region; needs private Google access and a way out (NAT) for image pulls. */
  readonly subnetwork: string;
  /** Names of the subnetwork's secondary ranges for pods and Services. */
  readonly podRange: string;
  readonly serviceRange: string;
}

export interface NetworkArgs {
  readonly project: string;
  readonly region: string;
  /** Ranges of the new subnetwork, CIDR. Ignored with `existing`. A change replaces the subnetwork and the cluster. */
  readonly subnetCidr: string;
  readonly podCidr: string;
  readonly serviceCidr: string;
  /** Allow SSH through Identity-Aware Proxy to machines tagged `iapSshTag`. */
  readonly sshThroughIap: boolean;
  readonly existing?: ExistingNetwork;
}

/** Network tag of machines that may be reached by SSH through Identity-Aware Proxy. */
export const iapSshTag = "iap-ssh";

/** Source range of Identity-Aware Proxy's TCP forwarding (cloud.google.com/iap/docs/using-tcp-forwarding). */
export const iapRange = "35.235.240.0/20";

/** VPC with one subnetwork, no external addresses, and NAT for image pulls; or an existing one by name. */
export class Network extends pulumi.ComponentResource {
  /** Self links. */
  public readonly network: pulumi.Output<string>;
  public readonly subnetwork: pulumi.Output<string>;
  /** Names of the secondary ranges. */
  public readonly podRange: pulumi.Output<string>;
  public readonly serviceRange: pulumi.Output<string>;

  constructor(name: string, args: NetworkArgs, opts?: pulumi.ComponentResourceOptions) {
    super("triton-slo:index:Network", name, args, opts);
    const { project, region } = args;
    if (args.existing) {
      const { existing } = args;
      const invoke = { parent: this };
      this.network = gcp.compute.getNetworkOutput({ project, name: existing.network }, invoke).selfLink;
      this.subnetwork = gcp.compute.getSubnetworkOutput(
        { project, region, name: existing.subnetwork },
        invoke,
      ).selfLink;
      this.podRange = pulumi.output(existing.podRange);
      this.serviceRange = pulumi.output(existing.serviceRange);
    } else {
      const vpc = new gcp.compute.Network(
        `${name}-vpc`,
        { project, autoCreateSubnetworks: false, routingMode: "REGIONAL" },
        // Leftover network endpoint groups of GKE can hold a VPC for minutes after its cluster is gone.
        { parent: this, customTimeouts: { delete: "20m" } },
      );
      const subnet = new gcp.compute.Subnetwork(
        `${name}-subnet`,
        {
          project,
          region,
          network: vpc.id,
          ipCidrRange: args.subnetCidr,
          privateIpGoogleAccess: true,
          secondaryIpRanges: [
            { rangeName: "pods", ipCidrRange: args.podCidr },
            { rangeName: "services", ipCidrRange: args.serviceCidr },
          ],
        },
        // A range that a cluster uses cannot be changed, and a second subnetwork with the same ranges would overlap.
        { parent: this, replaceOnChanges: ["ipCidrRange", "secondaryIpRanges"], deleteBeforeReplace: true },
      );
      this.addNat(name, args, vpc.id);
      this.network = vpc.selfLink;
      this.subnetwork = subnet.selfLink;
      this.podRange = pulumi.output("pods");
      this.serviceRange = pulumi.output("services");
    }
    if (args.sshThroughIap) this.addIapRule(name, project, this.network);
    this.registerOutputs({
      network: this.network,
      subnetwork: this.subnetwork,
      podRange: this.podRange,
      serviceRange: this.serviceRange,
    });
  }

  /** Nodes have no external address: images from outside Google's registries come through NAT. */
  private addNat(name: string, args: NetworkArgs, network: pulumi.Input<string>): void {
    const { project, region } = args;
    const router = new gcp.compute.Router(`${name}-router`, { project, region, network }, { parent: this });
    new gcp.compute.RouterNat(
      `${name}-nat`,
      {
        project,
        region,
        router: router.name,
        natIpAllocateOption: "AUTO_ONLY",
        sourceSubnetworkIpRangesToNat: "ALL_SUBNETWORKS_ALL_IP_RANGES",
        logConfig: { enable: true, filter: "ERRORS_ONLY" },
      },
      { parent: this },
    );
  }

  private addIapRule(name: string, project: string, network: pulumi.Input<string>): void {
    new gcp.compute.Firewall(
      `${name}-iap-ssh`,
      {
        project,
        network,
        direction: "INGRESS",
        sourceRanges: [iapRange],
        targetTags: [iapSshTag],
        allows: [{ protocol: "tcp", ports: ["22"] }],
      },
      { parent: this },
    );
  }
}
