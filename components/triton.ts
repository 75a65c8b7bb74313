import * as k8s from "@pulumi/kubernetes";
import * as pulumi from "@pulumi/pulumi";
import { dropsWithCluster, type InCluster } from "./in-cluster";
import { allow, from, toGoogleApis, toMetadataServer, pods } from "./network-policies";
import { withoutSurge } from "./rollout";
import { tritonLabels, tritonPod, tritonPorts, type TritonPodArgs } from "./triton-pod";

export interface TritonArgs extends InCluster, TritonPodArgs {
  /** Namespace that exists. */
  readonly namespace: pulumi.Input<string>;
  /** Servers, one GPU each; undefined leaves the number to an autoscaler. */
  readonly replicas: number | undefined;
  /** How long Pulumi waits for the servers to be ready, seconds. */
  readonly readinessBudgetS: number;
  /** Namespaces whose pods may send inference requests. */
  readonly clientNamespaces: readonly string[];
  /** Namespaces whose pods read metrics and readiness. */
  readonly monitoringNamespaces: readonly string[];
}

/** Name of the Deployment and its ClusterIP Service; the headless Service is `tritonHeadlessService`. */
export const tritonName = "triton";
export const tritonHeadlessService = "triton-pods";

/** Triton Inference Server: Deployment, Services, disruption budget and network policy. */
export class Triton extends pulumi.ComponentResource {
  public readonly deployment: k8s.apps.v1.Deployment;

  constructor(name: string, args: TritonArgs, opts?: pulumi.ComponentResourceOptions) {
    super("triton-slo:index:Triton", name, { image: args.image, modelName: args.modelName }, opts);
    const { namespace } = args;
    const options = dropsWithCluster(this, args);
    const account = new k8s.core.v1.ServiceAccount(
      `${name}-account`,
      {
        metadata: { name: args.serviceAccountName, namespace },
        // The token for the Kubernetes API is not needed: the bucket is reached by Workload Identity.
        automountServiceAccountToken: false,
      },
      options,
    );
    const policy = new k8s.networking.v1.NetworkPolicy(
      `${name}-policy`,
      {
        metadata: { name: tritonName, namespace },
        spec: allow(
          tritonLabels,
          [
            from(
              args.clientNamespaces.map((client) => pods(client)),
              [tritonPorts.http, tritonPorts.grpc],
            ),
            from(
              args.monitoringNamespaces.map((reader) => pods(reader)),
              [tritonPorts.http, tritonPorts.metrics],
            ),
          ],
          [...toMetadataServer, toGoogleApis],
        ),
      },
      options,
    );
    this.deployment = new k8s.apps.v1.Deployment(
      name,
      {
        metadata: {
          name: tritonName,
          namespace,
          labels: { ...tritonLabels },
          // The stack's configuration decides, also after somebody has scaled by hand and when an autoscaler is taken away:
          // both leave the field with another owner, and an update would stop at the conflict.
          annotations: { "pulumi.com/patchForce": "true" },
        },
        spec: {
          replicas: args.replicas,
          progressDeadlineSeconds: args.readinessBudgetS,
          // With all GPUs taken a surge pod would wait for the pod that waits for it.
          ...withoutSurge,
          selector: { matchLabels: { ...tritonLabels } },
          template: tritonPod(args),
        },
      },
      dropsWithCluster(this, args, {
        dependsOn: [account, policy],
        customTimeouts: {
          create: `${args.readinessBudgetS + 60}s`,
          update: `${args.readinessBudgetS + 60}s`,
        },
      }),
    );
    this.addServices(name, args);
    if (args.replicas === undefined || args.replicas > 1) {
      new k8s.policy.v1.PodDisruptionBudget(
        `${name}-disruption`,
        {
          metadata: { name: tritonName, namespace },
          spec: { maxUnavailable: 1, selector: { matchLabels: { ...tritonLabels } } },
        },
        options,
      );
    }
    this.registerOutputs({ deployment: this.deployment.metadata.name });
  }

  private addServices(name: string, args: TritonArgs): void {
    const { namespace } = args;
    const ports = [
      { name: "http", port: tritonPorts.http, targetPort: "http" },
      { name: "grpc", port: tritonPorts.grpc, targetPort: "grpc" },
    ];
    const after = dropsWithCluster(this, args, { dependsOn: [this.deployment] });
    new k8s.core.v1.Service(
      `${name}-service`,
      {
        metadata: { name: tritonName, namespace, annotations: noReadinessWait },
        spec: { type: "ClusterIP", selector: { ...tritonLabels }, ports },
      },
      after,
    );
    // gRPC connections stay on one pod, so clients that must reach every replica resolve the pods' own addresses.
    new k8s.core.v1.Service(
      `${name}-headless`,
      {
        metadata: { name: tritonHeadlessService, namespace, annotations: noReadinessWait },
        spec: { clusterIP: "None", selector: { ...tritonLabels }, ports },
      },
      after,
    );
  }
}

/** The Deployment is awaited; a Service without ready pods (at zero replicas) is no failure. */
const noReadinessWait = { "pulumi.com/skipAwait": "true" };
