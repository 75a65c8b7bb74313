import * as k8s from "@pulumi/kubernetes";
import * as pulumi from "@pulumi/pulumi";
import { dropsWithCluster, type InCluster } from "./in-cluster";
import { tokenSecretName } from "./load-generator";

export interface SweepAccessArgs extends InCluster {
  /** Namespace of the load generator: holds the lock and the controller's token. */
  readonly loadNamespace: pulumi.Input<string>;
  /** Namespaces whose pods the tune command reaches by port-forward. */
  readonly namespaces: readonly pulumi.Input<string>[];
  /** Who may tune: `user:E-MAIL`, `group:E-MAIL` or `serviceAccount:E-MAIL`. */
  readonly members: readonly string[];
}

/** The Lease that one sweep at a time holds; made and renewed by the tune command. */
export const sweepLeaseName = "sweep";

/** Kubernetes subject of an IAM member: groups are groups, all others are users of that e-mail address. */
export function subject(member: string): k8s.types.input.rbac.v1.Subject {
  const [kind, name] = member.split(":", 2);
  const apiGroup = "rbac.authorization.k8s.io";
  return { kind: kind === "group" ? "Group" : "User", name: name ?? "", apiGroup };
}

/**
 * What the tune command may do in the cluster and no more: find pods, forward ports, read the controller's token, and hold
 * the lock against a second sweep.
 */
export class SweepAccess extends pulumi.ComponentResource {
  constructor(name: string, args: SweepAccessArgs, opts?: pulumi.ComponentResourceOptions) {
    super("triton-slo:index:SweepAccess", name, { members: args.members }, opts);
    args.namespaces.forEach((namespace, index) => {
      this.grant(`${name}-reach-${index}`, "sweep-reach", namespace, args, [
        { apiGroups: [""], resources: ["pods", "services", "events"], verbs: ["get", "list", "watch"] },
        { apiGroups: [""], resources: ["pods/log"], verbs: ["get"] },
        { apiGroups: [""], resources: ["pods/portforward"], verbs: ["create", "get"] },
        { apiGroups: ["apps"], resources: ["deployments"], verbs: ["get", "list", "watch"] },
        { apiGroups: ["discovery.k8s.io"], resources: ["endpointslices"], verbs: ["get", "list", "watch"] },
      ]);
    });
    this.grant(`${name}-lock`, "sweep-lock", args.loadNamespace, args, [
      // Creation cannot be limited to a name.
      { apiGroups: ["coordination.k8s.io"], resources: ["leases"], verbs: ["create"] },
      {
        apiGroups: ["coordination.k8s.io"],
        resources: ["leases"],
        resourceNames: [sweepLeaseName],
        verbs: ["get", "update", "patch", "delete"],
      },
      { apiGroups: [""], resources: ["secrets"], resourceNames: [tokenSecretName], verbs: ["get"] },
    ]);
    this.registerOutputs({});
  }

  private grant(
    name: string,
    roleName: string,
    namespace: pulumi.Input<string>,
    args: SweepAccessArgs,
    rules: k8s.types.input.rbac.v1.PolicyRule[],
  ): void {
    const options = dropsWithCluster(this, args);
    const metadata = { name: roleName, namespace };
    const role = new k8s.rbac.v1.Role(name, { metadata, rules }, options);
    if (args.members.length === 0) return;
    new k8s.rbac.v1.RoleBinding(
      name,
      {
        metadata,
        roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: role.metadata.name },
        subjects: args.members.map(subject),
      },
      options,
    );
  }
}
