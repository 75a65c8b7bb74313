/** What a sweep can know of a stack's GPUs: the devices by Triton's metrics, and the image of their machines by Kubernetes. */
import type { GpuFacts } from "../../tuning/results/gpu-facts";
import { gpusInMetrics } from "../server-gpus";
import type { ConnectedStack } from "./connect-stack";

const imageDecides = "Triton does not tell them; the image of the servers' machines decides about both";

/** A sweep goes on without: what cannot be read is not known. */
export async function stackGpus({ kube, replicas, servers }: ConnectedStack): Promise<GpuFacts> {
  const facts = gpusInMetrics(servers.metrics.samples, imageDecides);
  const nodes = [...new Set(replicas.map(({ pod }) => pod.node))].filter((node) => node !== null);
  try {
    const images = new Set(await Promise.all(nodes.map((node) => kube.machineImage(node))));
    if (images.size > 0) return { ...facts, machineImage: [...images].sort().join(" / ") };
  } catch {
    // Who may sweep need not be allowed to look at machines.
  }
  return {
    ...facts,
    notKnown: "Triton does not tell them, and the servers' machines could not be looked at",
  };
}
