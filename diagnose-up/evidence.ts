/**
 * What is known about a deployment that does not get ready: objects of the Kubernetes API (only the fields that are read),
 * logs, and what `pulumi up` printed. Collected by `read-cluster.ts`; the explanations need nothing else.
 */

export interface ObjectMeta {
  name: string;
  namespace?: string;
  uid?: string;
  labels?: Record<string, string>;
  creationTimestamp?: string;
  deletionTimestamp?: string;
}

export interface Condition {
  type: string;
  status: string;
  reason?: string;
  message?: string;
}

export interface ContainerStatus {
  name: string;
  image?: string;
  ready: boolean;
  restartCount: number;
  state?: {
    waiting?: { reason?: string; message?: string };
    terminated?: { reason?: string; exitCode: number };
  };
  lastState?: { terminated?: { reason?: string; exitCode: number } };
}

export interface Pod {
  metadata: ObjectMeta;
  spec: {
    nodeName?: string;
    nodeSelector?: Record<string, string>;
    containers: { name: string; image?: string; resources?: { limits?: Record<string, string> } }[];
  };
  status: {
    phase?: string;
    conditions?: Condition[];
    containerStatuses?: ContainerStatus[];
    initContainerStatuses?: ContainerStatus[];
  };
}

export interface Node {
  metadata: ObjectMeta;
  status: { allocatable?: Record<string, string>; conditions?: Condition[] };
}

export interface KubeEvent {
  type?: string;
  reason?: string;
  message?: string;
  /** When it was last seen, ISO 8601. */
  lastTimestamp?: string;
  involvedObject: { kind?: string; namespace?: string; name?: string; uid?: string };
}

/** Names for the commands to run next. */
export interface Names {
  /** Google Cloud project id. */
  project: string;
  /** Zone or region of the cluster. */
  location: string;
  /** Bucket of the model repository, without `gs://`. */
  bucket: string;
}

export interface Evidence {
  names: Names;
  /** What the failed `pulumi up` printed; empty when it is still running. */
  pulumiOutput: string;
  pods: Pod[];
  nodes: Node[];
  events: KubeEvent[];
  /** Last log lines by `namespace/pod/container`, of the previous run when a container restarts. */
  logs: Record<string, string>;
}

/** Evidence of a deployment about which nothing is known yet. */
export const noEvidence: Evidence = {
  names: { project: "PROJECT", location: "LOCATION", bucket: "BUCKET" },
  pulumiOutput: "",
  pods: [],
  nodes: [],
  events: [],
  logs: {},
};

/** Label `k8s-app` of the pods that install the GPU driver. */
export const driverInstaller = "nvidia-driver-installer";

/** `namespace/name`. */
export const podId = (pod: Pod): string => `${pod.metadata.namespace ?? "default"}/${pod.metadata.name}`;

/** Events about a pod, oldest first. */
export function eventsOf(evidence: Evidence, pod: Pod): KubeEvent[] {
  return evidence.events
    .filter(({ involvedObject: object }) =>
      object.uid && pod.metadata.uid
        ? object.uid === pod.metadata.uid
        : object.kind === "Pod" &&
          object.namespace === pod.metadata.namespace &&
          object.name === pod.metadata.name,
    )
    .sort((a, b) => (a.lastTimestamp ?? "").localeCompare(b.lastTimestamp ?? ""));
}

/** GPUs that a pod asks for. */
export function gpusWanted(pod: Pod): number {
  return pod.spec.containers.reduce(
    (sum, one) => sum + Number(one.resources?.limits?.["nvidia.com/gpu"] ?? 0),
    0,
  );
}

/** The scheduler's reason why a pod has no node; undefined when it has one. */
export function unschedulable(pod: Pod): string | undefined {
  const condition = (pod.status.conditions ?? []).find(
    (one) => one.type === "PodScheduled" && one.status === "False" && one.reason === "Unschedulable",
  );
  return condition?.message;
}

/** Whether a pod serves or has done its work. */
export function isSettled(pod: Pod): boolean {
  const ready = (pod.status.conditions ?? []).some((one) => one.type === "Ready" && one.status === "True");
  return ready || pod.status.phase === "Succeeded";
}
