import * as gcp from "@pulumi/gcp";
import * as pulumi from "@pulumi/pulumi";

export interface ServiceAccountsArgs {
  /** Google Cloud project id. */
  readonly project: string;
  /** Prefix of the account ids, at most 20 characters. A change replaces the accounts, and with them the node pools. */
  readonly prefix: string;
  /** Whether the conversion VM, and so its account, exists. */
  readonly converter: boolean;
}

/** Project roles of the nodes: write logs and metrics, nothing else. Image pulls are granted on the registry alone. */
export const nodeRoles: readonly string[] = ["roles/container.defaultNodeServiceAccount"];

/** Project roles of the conversion VM: write logs. Its access to the bucket is granted on the bucket alone. */
export const converterRoles: readonly string[] = ["roles/logging.logWriter", "roles/monitoring.metricWriter"];

/**
 * Service accounts of least privilege for machines. Pods have none: Triton's Kubernetes service account is bound directly
 * to the bucket, and the load generator's has no rights at all. No keys are made.
 */
export class ServiceAccounts extends pulumi.ComponentResource {
  /** E-mail of the nodes' account. A machine that starts before its roles exist logs nowhere: depend on the component. */
  public readonly nodesEmail: pulumi.Output<string>;
  /** E-mail of the conversion VM's account, or undefined without a conversion VM. */
  public readonly converterEmail: pulumi.Output<string> | undefined;

  constructor(name: string, args: ServiceAccountsArgs, opts?: pulumi.ComponentResourceOptions) {
    super("triton-slo:index:ServiceAccounts", name, args, opts);
    this.nodesEmail = this.account(
      `${name}-nodes`,
      `${args.prefix}-nodes`,
      "GKE nodes",
      args.project,
      nodeRoles,
    );
    this.converterEmail = args.converter
      ? this.account(
          `${name}-converter`,
          `${args.prefix}-converter`,
          "Model conversion VM",
          args.project,
          converterRoles,
        )
      : undefined;
    this.registerOutputs({ nodesEmail: this.nodesEmail, converterEmail: this.converterEmail });
  }

  private account(
    name: string,
    accountId: string,
    displayName: string,
    project: string,
    roles: readonly string[],
  ): pulumi.Output<string> {
    const account = new gcp.serviceaccount.Account(
      name,
      { project, accountId, displayName },
      { parent: this },
    );
    for (const role of roles) {
      new gcp.projects.IAMMember(
        `${name}-${role.split("/")[1]}`,
        { project, role, member: pulumi.interpolate`serviceAccount:${account.email}` },
        { parent: this },
      );
    }
    return account.email;
  }
}
