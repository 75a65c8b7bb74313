import type * as k8s from "@pulumi/kubernetes";
import type * as pulumi from "@pulumi/pulumi";
import { poolLabel, type Taint } from "./node-pool";
import { restrictedContainer, restrictedPod } from "./pod-security";
import { tritonLabels, tritonPorts } from "./triton-pod";
import { userError } from "./user-error";

type PodTemplate = k8s.types.input.core.v1.PodTemplateSpec;

/** Port of the controller's HTTP API; also serves `/metrics` and `/healthz`. */
export const controllerPort = 8080;

/** Port at which the workers find the controller (gRPC). */
export const controllerWorkerPort = 8081;

export const controllerLabels: Readonly<Record<string, string>> = { app: "load-controller" };
export const workerLabels: Readonly<Record<string, string>> = { app: "load-worker" };

/** Keeps everything but the workers off the load pool. */
export const loadTaint: Taint = { key: "triton-slo/load", value: "true", effect: "NO_SCHEDULE" };

/** Requests in flight of one measurement; each is a small object until it is sent. */
const maxInFlight = 100_000;

/** Where the volume with the history is mounted. */
const historyPath = "/var/lib/load-history";

/** Whole cores of a worker that waits awake: one that never rests, and one for everything else. */
const leastBusyWaitingCpu = 2;

/** User of the load generator's image. */
const userId = 10001;

export interface LoadPodArgs {
  readonly image: pulumi.Input<string>;
  readonly serviceAccountName: string;
  readonly tokenSecretName: string;
  readonly tokenSecretKey: string;
}

export interface ControllerPodArgs extends LoadPodArgs {
  readonly sloBoundMs: number;
  /** Host name that has the addresses of all servers; nothing else may be loaded. */
  readonly tritonPods: string;
  /** Claim of the volume with the history; undefined: it ends with the pod. */
  readonly historyClaim?: string;
  /** Highest rate that anybody may ask for, requests per second: against a slip of the hand in the console. */
  readonly maxRatePerS: number;
}

export interface WorkerPodArgs extends LoadPodArgs {
  /** host:port of the controller for workers. */
  readonly controllerAddress: string;
  /** Whole CPU cores. */
  readonly cpu: number;
  /** Waits awake for each planned send this long, milliseconds. Default 0: it sleeps until it is due. */
  readonly busyWaitMs?: number;
  readonly tritonNamespace: string;
}

function tokenEnv(args: LoadPodArgs): k8s.types.input.core.v1.EnvVar {
  return {
    name: "LOADGEN_TOKEN",
    valueFrom: { secretKeyRef: { name: args.tokenSecretName, key: args.tokenSecretKey } },
  };
}

/** The controller: plans measurements, merges the workers' counts, answers the tune command. Runs beside the system's pods. */
export function controllerPod(args: ControllerPodArgs): PodTemplate {
  const { historyClaim } = args;
  return {
    metadata: { labels: { ...controllerLabels } },
    spec: {
      serviceAccountName: args.serviceAccountName,
      automountServiceAccountToken: false,
      securityContext: restrictedPod(userId),
      nodeSelector: { [poolLabel]: "system" },
      volumes: [
        { name: "tmp", emptyDir: { sizeLimit: "1Gi" } },
        ...(historyClaim === undefined
          ? []
          : [{ name: "history", persistentVolumeClaim: { claimName: historyClaim } }]),
      ],
      containers: [
        {
          name: "controller",
          image: args.image,
          args: [
            "loadgen/controller-main.js",
            "--host",
            "0.0.0.0",
            "--port",
            String(controllerWorkerPort),
            "--http-port",
            String(controllerPort),
            "--slo-bound-ms",
            String(args.sloBoundMs),
            "--target",
            `dns:///${args.tritonPods}:${tritonPorts.grpc}`,
            "--metrics-url",
            `http://${args.tritonPods}:${tritonPorts.metrics}/metrics`,
            "--max-rate",
            String(args.maxRatePerS),
            "--max-in-flight",
            String(maxInFlight),
            "--state-dir",
            // The temporary volume outlives the container, not the pod.
            historyClaim === undefined ? "/tmp/state" : `${historyPath}/runs`,
          ],
          env: [tokenEnv(args)],
          ports: [
            { name: "http", containerPort: controllerPort },
            { name: "workers", containerPort: controllerWorkerPort },
          ],
          readinessProbe: { httpGet: { path: "/healthz", port: "http" }, periodSeconds: 5 },
          livenessProbe: {
            httpGet: { path: "/healthz", port: "http" },
            periodSeconds: 15,
            failureThreshold: 4,
          },
          resources: { requests: { cpu: "500m", memory: "512Mi" }, limits: { memory: "1Gi" } },
          securityContext: restrictedContainer(true),
          volumeMounts: [
            { name: "tmp", mountPath: "/tmp" },
            ...(historyClaim === undefined ? [] : [{ name: "history", mountPath: historyPath }]),
          ],
        },
      ],
    },
  };
}

/**
 * A worker: sends requests at planned times. On the load pool, never on a server's node, in the servers' zone.
 * @throws RunError for a worker that waits awake and has no core for it
 */
export function workerPod(args: WorkerPodArgs): PodTemplate {
  const { busyWaitMs = 0 } = args;
  if (busyWaitMs > 0 && !(Number.isInteger(args.cpu) && args.cpu >= leastBusyWaitingCpu))
    throw userError(
      `a load worker that waits awake (busyWaitMs ${busyWaitMs}) keeps one core to itself and needs another for the network's and the ` +
        `runtime's threads: give it ${leastBusyWaitingCpu} or more whole cores, not ${args.cpu}, or busyWaitMs 0`,
    );
  const resources = { cpu: String(args.cpu), memory: "1Gi" };
  const triton = {
    labelSelector: { matchLabels: { ...tritonLabels } },
    namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": args.tritonNamespace } },
  };
  return {
    metadata: { labels: { ...workerLabels } },
    spec: {
      serviceAccountName: args.serviceAccountName,
      automountServiceAccountToken: false,
      securityContext: restrictedPod(userId),
      nodeSelector: { [poolLabel]: "load" },
      tolerations: [{ key: loadTaint.key, operator: "Equal", value: loadTaint.value, effect: "NoSchedule" }],
      affinity: {
        podAntiAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: [
            { ...triton, topologyKey: "kubernetes.io/hostname" },
          ],
        },
        podAffinity: {
          // Traffic between zones is billed by the gigabyte, and a sweep sends several thousand of them an hour.
          requiredDuringSchedulingIgnoredDuringExecution: [
            { ...triton, topologyKey: "topology.kubernetes.io/zone" },
          ],
        },
      },
      volumes: [{ name: "tmp", emptyDir: { sizeLimit: "1Gi" } }],
      containers: [
        {
          name: "worker",
          image: args.image,
          args: [
            ...["loadgen/worker-main.js", "--controller", args.controllerAddress, "--name", "$(POD_NAME)"],
            // Left out where it changes nothing: an older image does not know it.
            ...(busyWaitMs > 0 ? ["--busy-wait-ms", String(busyWaitMs)] : []),
          ],
          env: [
            { name: "POD_NAME", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } },
            tokenEnv(args),
          ],
          // Requests equal limits: the pod's class is Guaranteed, and the node's CPU manager gives it whole cores.
          resources: { requests: resources, limits: resources },
          securityContext: restrictedContainer(true),
          volumeMounts: [{ name: "tmp", mountPath: "/tmp" }],
        },
      ],
    },
  };
}
