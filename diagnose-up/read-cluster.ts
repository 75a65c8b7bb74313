/** Collects evidence from a running cluster. Reads only. */
import type { CoreV1Api } from "@kubernetes/client-node" with { "resolution-mode": "import" };
import {
  driverInstaller,
  gpusWanted,
  isSettled,
  podId,
  type Evidence,
  type KubeEvent,
  type Node,
  type Pod,
} from "./evidence";

/** Lines of each log that are read. */
const tailLines = 200;

/** Plain JSON: dates become text, which is what the explanations read. */
const plain = <T>(value: unknown): T => JSON.parse(JSON.stringify(value)) as T;

type ClusterEvidence = Pick<Evidence, "pods" | "nodes" | "events" | "logs">;

/**
 * Pods, events and logs of the namespaces, the driver installer, whatever else holds GPUs, and all nodes.
 * @param kubeconfigText kubeconfig as JSON or YAML
 * @throws Error when the API server is not reached or refuses
 */
export async function readCluster(
  kubeconfigText: string,
  namespaces: readonly string[],
): Promise<ClusterEvidence> {
  // The client is an ES module; this project is not.
  const client = await import("@kubernetes/client-node");
  const config = new client.KubeConfig();
  config.loadFromString(kubeconfigText);
  const api = config.makeApiClient(client.CoreV1Api);
  const nodes = plain<Node[]>((await api.listNode()).items);
  const events: KubeEvent[] = [];
  for (const namespace of namespaces) {
    events.push(...plain<KubeEvent[]>((await api.listNamespacedEvent({ namespace })).items));
  }
  // All pods: whoever holds the GPUs may be in any namespace.
  const pods = plain<Pod[]>((await api.listPodForAllNamespaces()).items).filter(
    (pod) =>
      namespaces.includes(pod.metadata.namespace ?? "") ||
      gpusWanted(pod) > 0 ||
      pod.metadata.labels?.["k8s-app"] === driverInstaller,
  );
  const logs: Record<string, string> = {};
  for (const pod of pods.filter(
    (candidate) => !isSettled(candidate) && candidate.spec.nodeName !== undefined,
  )) {
    Object.assign(logs, await logsOf(api, pod));
  }
  return { pods, nodes, events, logs };
}

async function logsOf(api: CoreV1Api, pod: Pod): Promise<Record<string, string>> {
  const logs: Record<string, string> = {};
  const namespace = pod.metadata.namespace ?? "default";
  for (const status of [
    ...(pod.status.initContainerStatuses ?? []),
    ...(pod.status.containerStatuses ?? []),
  ]) {
    const request = { namespace, name: pod.metadata.name, container: status.name, tailLines };
    try {
      logs[`${podId(pod)}/${status.name}`] = await api.readNamespacedPodLog({
        ...request,
        previous: status.restartCount > 0,
      });
    } catch {
      // A container that has not started has no log; that is a fact about the pod, not a failure of the reading.
    }
  }
  return logs;
}
