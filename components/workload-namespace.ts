import * as k8s from "@pulumi/kubernetes";
import * as pulumi from "@pulumi/pulumi";
import { dropsWithCluster, type InCluster } from "./in-cluster";
import { allowDns, denyAll } from "./network-policies";

export interface WorkloadNamespaceArgs extends InCluster {
  /** Namespace name. A change replaces the namespace and everything in it. */
  readonly namespace: string;
}

/** Pod Security labels: the `restricted` level, enforced. */
export const restrictedLabels: Readonly<Record<string, string>> = {
  "pod-security.kubernetes.io/enforce": "restricted",
  "pod-security.kubernetes.io/audit": "restricted",
  "pod-security.kubernetes.io/warn": "restricted",
};

/** A namespace that admits only restricted pods and in which no connection is allowed but name resolution. */
export class WorkloadNamespace extends pulumi.ComponentResource {
  /** The name, known once the namespace exists. */
  public readonly namespaceName: pulumi.Output<string>;

  constructor(name: string, args: WorkloadNamespaceArgs, opts?: pulumi.ComponentResourceOptions) {
    super("triton-slo:index:WorkloadNamespace", name, { namespace: args.namespace }, opts);
    const namespace = new k8s.core.v1.Namespace(
      name,
      { metadata: { name: args.namespace, labels: { ...restrictedLabels } } },
      dropsWithCluster(this, args),
    );
    this.namespaceName = namespace.metadata.name;
    for (const [policy, spec] of Object.entries({ "deny-all": denyAll, "allow-dns": allowDns })) {
      new k8s.networking.v1.NetworkPolicy(
        `${name}-${policy}`,
        { metadata: { name: policy, namespace: this.namespaceName }, spec },
        dropsWithCluster(this, args),
      );
    }
    this.registerOutputs({ namespaceName: this.namespaceName });
  }
}
