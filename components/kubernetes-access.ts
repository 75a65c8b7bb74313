import * as gcp from "@pulumi/gcp";
import * as k8s from "@pulumi/kubernetes";
import * as pulumi from "@pulumi/pulumi";
import type { ClusterHandle } from "./cluster";
import { kubeconfig } from "./kubeconfig";

/**
 * How Pulumi authenticates to the API server.
 * `exec`: by gke-gcloud-auth-plugin, a fresh token each run, nothing secret in the state.
 * `token`: by the access token of the Google credentials in use. Needs no plugin, but the token lies (encrypted) in the
 * state for an hour of use: run `pulumi refresh` and `pulumi destroy` with `--run-program`.
 */
export type KubeconfigAuth = "exec" | "token";

export interface KubernetesAccessArgs {
  readonly cluster: ClusterHandle;
  readonly auth: KubeconfigAuth;
}

/** An explicit Kubernetes provider for the cluster. */
export class KubernetesAccess extends pulumi.ComponentResource {
  public readonly provider: k8s.Provider;

  constructor(name: string, args: KubernetesAccessArgs, opts?: pulumi.ComponentResourceOptions) {
    super("triton-slo:index:KubernetesAccess", name, args, opts);
    const { cluster } = args;
    const token =
      args.auth === "token"
        ? gcp.organizations.getClientConfigOutput({ parent: this }).accessToken
        : undefined;
    const config = pulumi
      .all([cluster.name, cluster.server, cluster.caCertificate, token])
      .apply(([clusterName, server, caCertificate, bearer]) =>
        kubeconfig({ name: clusterName, server, caCertificate, token: bearer }),
      );
    this.provider = new k8s.Provider(
      name,
      {
        kubeconfig: token === undefined ? config : pulumi.secret(config),
        // Without it any change of the kubeconfig's text replaces everything in the cluster (pulumi-kubernetes#1148).
        clusterIdentifier: cluster.id,
        enableServerSideApply: true,
        // An unreachable cluster must not make Pulumi forget objects that still exist.
        deleteUnreachable: false,
      },
      { parent: this },
    );
    this.registerOutputs({});
  }
}
