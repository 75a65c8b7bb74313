/** Small builders of evidence. */
import { noEvidence, type Evidence, type KubeEvent, type Node, type Pod } from "../../diagnose-up/evidence";

export const evidence = (parts: Partial<Evidence> = {}): Evidence => ({
  ...noEvidence,
  names: { project: "my-project", location: "us-central1-a", bucket: "models-1" },
  ...parts,
});

/** A Triton pod; by default it has a node and is not ready. */
export function tritonPod(
  parts: { name?: string; status?: Pod["status"]; nodeName?: string; gpus?: number } = {},
): Pod {
  const { name = "triton-1", status = { phase: "Pending" }, gpus = 1 } = parts;
  const limits: Record<string, string> = gpus > 0 ? { "nvidia.com/gpu": String(gpus) } : {};
  return {
    metadata: { name, namespace: "triton", uid: `uid-${name}`, labels: { app: "triton" } },
    spec: {
      nodeName: "nodeName" in parts ? parts.nodeName : "gpu-node",
      containers: [{ name: "triton", resources: { limits } }],
    },
    status,
  };
}

/** A Triton pod that has no node. */
export function waitingPod(
  message = "0/2 nodes are available: 2 Insufficient nvidia.com/gpu.",
  gpus = 1,
): Pod {
  const conditions = [{ type: "PodScheduled", status: "False", reason: "Unschedulable", message }];
  return tritonPod({ nodeName: undefined, status: { phase: "Pending", conditions }, gpus });
}

export function event(
  pod: Pod,
  reason: string,
  message: string,
  lastTimestamp = "2026-01-01T00:00:00Z",
): KubeEvent {
  const { name, namespace, uid } = pod.metadata;
  return {
    type: "Warning",
    reason,
    message,
    lastTimestamp,
    involvedObject: { kind: "Pod", namespace, name, uid },
  };
}

export function gpuNode(parts: { allocatable?: string; driver?: string } = {}): Node {
  const labels: Record<string, string> = { "cloud.google.com/gke-accelerator": "nvidia-tesla-t4" };
  if (parts.driver) labels["cloud.google.com/gke-gpu-driver-version"] = parts.driver;
  return {
    metadata: { name: "gpu-node", labels },
    status: { allocatable: parts.allocatable ? { "nvidia.com/gpu": parts.allocatable } : {} },
  };
}

/** The Triton container in a state. */
export function container(
  state: { waiting?: { reason?: string; message?: string } },
  restartCount = 0,
  last?: { reason?: string; exitCode: number },
): Pod["status"] {
  return {
    phase: "Running",
    containerStatuses: [
      {
        name: "triton",
        image: "nvcr.io/x:1",
        ready: false,
        restartCount,
        state,
        lastState: last && { terminated: last },
      },
    ],
  };
}
