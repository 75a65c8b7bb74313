import * as k8s from "@pulumi/kubernetes";
import * as pulumi from "@pulumi/pulumi";
import * as random from "@pulumi/random";
import { deletedBeforeCluster, dropsWithCluster, type InCluster } from "./in-cluster";
import {
  controllerLabels,
  controllerPod,
  controllerPort,
  controllerWorkerPort,
  workerLabels,
  workerPod,
} from "./load-generator-pods";
import { allow, from, pods, to } from "./network-policies";
import { awaited, withoutSurge } from "./rollout";
import { StaticVolume } from "./static-volume";
import { tritonHeadlessService } from "./triton";
import { tritonLabels, tritonPorts } from "./triton-pod";

export interface LoadGeneratorArgs extends InCluster {
  /** Namespace that exists. */
  readonly namespace: pulumi.Input<string>;
  readonly namespaceName: string;
  /** Image with the controller's and the worker's entry points. */
  readonly image: pulumi.Input<string>;
  /** Worker processes; 0 lets the load pool go to zero. */
  readonly workers: number;
  /** Whole CPU cores of one worker: guaranteed, so that the node's CPU manager gives it cores of its own. */
  readonly workerCpu: number;
  /**
   * How long a worker waits awake for each planned send, milliseconds, 0 to 10: it sends less late, and one of its cores never rests, so
   * `workerCpu` must be 2 or more. Default 0: it sleeps until a send is due. A change restarts the workers.
   */
  readonly busyWaitMs?: number;
  /** Highest rate that a measurement may offer, requests per second. */
  readonly maxRatePerS: number;
  /** Namespace of the servers under test. */
  readonly tritonNamespace: string;
  /** Namespaces whose pods read the controller's metrics. */
  readonly monitoringNamespaces: readonly string[];
  /**
   * Disk for the controller's history of measurements, with its zone and size. Default: none, and the history ends with the controller's pod.
   * A change restarts the controller.
   */
  readonly historyDisk?: {
    readonly handle: pulumi.Input<string>;
    readonly zone: string;
    readonly sizeGb: number;
  };
  /** Bound of the service level objective: a bucket of the response times ends there. */
  readonly sloBoundMs: number;
}

/** Names that clients of the controller need. */
export const controllerService = "load-controller";
export const tokenSecretName = "load-controller-token";
export const tokenSecretKey = "token";
const historyClaim = "load-history";

/** Controller and workers of the load generator. Every call of the controller needs a generated token. */
export class LoadGenerator extends pulumi.ComponentResource {
  constructor(name: string, args: LoadGeneratorArgs, opts?: pulumi.ComponentResourceOptions) {
    super("triton-slo:index:LoadGenerator", name, { workers: args.workers }, opts);
    const { namespace } = args;
    const options = dropsWithCluster(this, args);
    const token = new random.RandomPassword(
      `${name}-token`,
      { length: 40, special: false },
      { parent: this },
    );
    const secret = new k8s.core.v1.Secret(
      `${name}-token`,
      { metadata: { name: tokenSecretName, namespace }, stringData: { [tokenSecretKey]: token.result } },
      options,
    );
    const account = new k8s.core.v1.ServiceAccount(
      `${name}-account`,
      { metadata: { name: "load-generator", namespace }, automountServiceAccountToken: false },
      options,
    );
    const policies = this.addPolicies(name, args);
    const service = new k8s.core.v1.Service(
      `${name}-controller`,
      {
        metadata: { name: controllerService, namespace, annotations: { "pulumi.com/skipAwait": "true" } },
        spec: {
          type: "ClusterIP",
          selector: { ...controllerLabels },
          ports: [
            { name: "http", port: controllerPort, targetPort: "http" },
            { name: "workers", port: controllerWorkerPort, targetPort: "workers" },
          ],
        },
      },
      options,
    );
    const workload = {
      image: args.image,
      serviceAccountName: "load-generator",
      tokenSecretName,
      tokenSecretKey,
    };
    const volume = this.historyVolume(name, args);
    const dependsOn = [secret, account, service, ...policies];
    const after =
      volume === undefined
        ? dropsWithCluster(this, args, { dependsOn })
        : deletedBeforeCluster(this, args, { dependsOn: [...dependsOn, volume] });
    const controller = new k8s.apps.v1.Deployment(
      `${name}-controller`,
      {
        metadata: { name: controllerService, namespace, labels: { ...controllerLabels } },
        spec: {
          replicas: 1,
          // One controller owns the measurement that runs; two would share the workers.
          ...withoutSurge,
          selector: { matchLabels: { ...controllerLabels } },
          template: controllerPod({
            ...workload,
            sloBoundMs: args.sloBoundMs,
            maxRatePerS: args.maxRatePerS,
            historyClaim: volume && historyClaim,
            tritonPods: `${tritonHeadlessService}.${args.tritonNamespace}.svc`,
          }),
        },
      },
      after,
    );
    new k8s.apps.v1.Deployment(
      `${name}-workers`,
      {
        metadata: { name: "load-worker", namespace, labels: { ...workerLabels } },
        spec: {
          replicas: args.workers,
          ...awaited,
          selector: { matchLabels: { ...workerLabels } },
          template: workerPod({
            ...workload,
            controllerAddress: `${controllerService}.${args.namespaceName}.svc:${controllerWorkerPort}`,
            cpu: args.workerCpu,
            busyWaitMs: args.busyWaitMs,
            tritonNamespace: args.tritonNamespace,
          }),
        },
      },
      dropsWithCluster(this, args, {
        dependsOn: [controller],
        customTimeouts: { create: "20m", update: "20m" },
      }),
    );
    this.registerOutputs({});
  }

  private historyVolume(name: string, args: LoadGeneratorArgs): StaticVolume | undefined {
    const { provider, cluster, namespace, historyDisk } = args;
    if (historyDisk === undefined) return undefined;
    const { handle: diskHandle, zone, sizeGb } = historyDisk;
    return new StaticVolume(
      `${name}-history`,
      {
        ...{ provider, cluster, namespace, claimName: historyClaim, diskHandle, zone, sizeGb },
        // A controller that ends still writes its last result, when its successor is made already: two would take each other's runs for lost.
        accessMode: "ReadWriteOncePod",
      },
      { parent: this },
    );
  }

  private addPolicies(name: string, args: LoadGeneratorArgs): k8s.networking.v1.NetworkPolicy[] {
    const triton = pods(args.tritonNamespace, tritonLabels);
    const controller = pods(args.namespaceName, controllerLabels);
    const workers = pods(args.namespaceName, workerLabels);
    const readers = args.monitoringNamespaces.map((reader) => pods(reader));
    const specs = {
      controller: allow(
        controllerLabels,
        [from(readers, [controllerPort]), from([workers], [controllerWorkerPort])],
        // What models take, and the servers' metrics, for the console.
        [to([triton], [tritonPorts.grpc, tritonPorts.metrics])],
      ),
      worker: allow(
        workerLabels,
        [],
        [to([controller], [controllerWorkerPort]), to([triton], [tritonPorts.grpc])],
      ),
    };
    return Object.entries(specs).map(
      ([role, spec]) =>
        new k8s.networking.v1.NetworkPolicy(
          `${name}-${role}-policy`,
          { metadata: { name: `load-${role}`, namespace: args.namespace }, spec },
          dropsWithCluster(this, args),
        ),
    );
  }
}
