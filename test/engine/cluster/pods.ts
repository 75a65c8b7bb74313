/** Questions about pods and nodes that several tests ask. */
import { requireTool } from "../../../tools/cache";
import { toolNamed } from "../../../tools/catalogue";
import { execFileSync } from "node:child_process";
import type { KubeApi, KubeObject } from "./kube-api";

export const acceleratorLabel = "cloud.google.com/gke-accelerator";

/** Pods of an app that have not been told to go. */
export async function podsOf(api: KubeApi, app: string): Promise<KubeObject[]> {
  const pods = await api.list(`/api/v1/pods?labelSelector=app=${app}`);
  return pods.filter((pod) => pod.metadata.deletionTimestamp === undefined);
}

/** Names of the nodes with GPUs. */
export async function gpuNodes(api: KubeApi): Promise<string[]> {
  const nodes = await api.list(`/api/v1/nodes?labelSelector=${acceleratorLabel}`);
  return nodes.map((node) => node.metadata.name).sort();
}

export const nodeOf = (pod: KubeObject): string =>
  typeof pod.spec?.nodeName === "string" ? pod.spec.nodeName : "";

/** Whether all containers of a pod say that they are ready. */
export function isReady(pod: KubeObject): boolean {
  const conditions = (pod.status?.conditions ?? []) as { type: string; status: string }[];
  return conditions.some(({ type, status }) => type === "Ready" && status === "True");
}

/** Pods of an app that have a node, in words: also those that were told to go and still hold what is theirs. */
export async function placedPods(api: KubeApi, app: string): Promise<string[]> {
  const pods = await api.list(`/api/v1/pods?labelSelector=app=${app}`);
  return pods
    .filter((pod) => nodeOf(pod) !== "")
    .map(
      ({ metadata: { name, deletionTimestamp }, spec, status }) =>
        `${name} on ${String(spec?.nodeName)}, ${String(status?.phase)}, deleted ${deletionTimestamp ?? "not"}`,
    );
}

/** Runs the real kubectl, whose field manager is what a person's change leaves behind. */
export function kubectl(kubeconfig: string, ...args: string[]): string {
  const { kubectl: file } = requireTool(toolNamed("kube-testbed")).programs;
  return execFileSync(file!, ["--kubeconfig", kubeconfig, ...args], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
  });
}

/** Asks again and again while something runs, and gives the longest answer. */
export async function longestDuring<T>(
  running: Promise<unknown>,
  ask: () => Promise<readonly T[]>,
  everyMs = 150,
): Promise<readonly T[]> {
  let ended = false;
  let longest: readonly T[] = [];
  const watch = async (): Promise<void> => {
    while (!ended) {
      const answer = await ask();
      if (answer.length > longest.length) longest = answer;
      await new Promise((resolve) => setTimeout(resolve, everyMs));
    }
  };
  // Both have to end, also when one fails: what runs would disturb the next test.
  const outcomes = await Promise.allSettled([running.finally(() => (ended = true)), watch()]);
  for (const outcome of outcomes) if (outcome.status === "rejected") throw outcome.reason;
  return longest;
}
