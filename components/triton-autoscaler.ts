import * as k8s from "@pulumi/kubernetes";
import * as pulumi from "@pulumi/pulumi";
import { dropsWithCluster, type InCluster } from "./in-cluster";
import { tritonName } from "./triton";

export interface TritonAutoscalerArgs extends InCluster {
  readonly namespace: pulumi.Input<string>;
  readonly minReplicas: number;
  readonly maxReplicas: number;
  /** Pod metric of the custom metrics API. */
  readonly metric: string;
  /** Value of the metric that one server should have. */
  readonly targetPerServer: number;
}

/** Seconds that load must stay low before servers go: a GPU node and a model take minutes to come back. */
const scaleDownAfterS = 600;

/** Scales Triton by a metric of its pods. It owns the number of replicas: give the Triton component none. */
export class TritonAutoscaler extends pulumi.ComponentResource {
  constructor(name: string, args: TritonAutoscalerArgs, opts?: pulumi.ComponentResourceOptions) {
    const { minReplicas, maxReplicas, metric, targetPerServer } = args;
    super(
      "triton-slo:index:TritonAutoscaler",
      name,
      { minReplicas, maxReplicas, metric, targetPerServer },
      opts,
    );
    new k8s.autoscaling.v2.HorizontalPodAutoscaler(
      name,
      {
        metadata: { name: tritonName, namespace: args.namespace },
        spec: {
          scaleTargetRef: { apiVersion: "apps/v1", kind: "Deployment", name: tritonName },
          minReplicas,
          maxReplicas,
          metrics: [
            {
              type: "Pods",
              pods: {
                metric: { name: metric },
                target: { type: "AverageValue", averageValue: String(targetPerServer) },
              },
            },
          ],
          behavior: {
            scaleUp: { stabilizationWindowSeconds: 0 },
            scaleDown: {
              stabilizationWindowSeconds: scaleDownAfterS,
              policies: [{ type: "Pods", value: 1, periodSeconds: 300 }],
            },
          },
        },
      },
      dropsWithCluster(this, args),
    );
    this.registerOutputs({});
  }
}
