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

/** Runs the real kubectl, whose field manager is what a person's change leaves behind. */
export function kubectl(kubeconfig: string, ...args: string[]): string {
  const { kubectl: file } = requireTool(toolNamed("kube-testbed")).programs;
  return execFileSync(file!, ["--kubeconfig", kubeconfig, ...args], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
  });
}

/** Asks again and again while something runs, and gives the largest answer. */
export async function largestDuring(
  running: Promise<unknown>,
  ask: () => Promise<number>,
  everyMs = 150,
): Promise<number> {
  let ended = false;
  let largest = 0;
  const watch = async (): Promise<void> => {
    while (!ended) {
      largest = Math.max(largest, await ask());
      await new Promise((resolve) => setTimeout(resolve, everyMs));
    }
  };
  const watching = watch();
  try {
    await running;
  } finally {
    ended = true;
    await watching;
  }
  return largest;
}
