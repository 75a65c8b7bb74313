/** What a sweep needs of a stack beside its servers. */
import { ok, warning, type Check } from "../../tuning/preflight/check";
import type { ConnectedStack } from "./connect-stack";
import type { ClockOffset } from "./remote-load";

/** A longer way blurs which of the server's figures belong to a trial of a few seconds, milliseconds. */
const FAR_MS = 250;

/** Pods, load workers, that the two do not share machines, and clocks. */
export async function checkStack({
  kube,
  outputs,
  stack,
  replicas,
  workers,
  load: controller,
}: ConnectedStack): Promise<Check[]> {
  const { triton, loadGenerator } = outputs;
  const pods = replicas.map(({ pod }) => `${pod.name} on ${pod.node}`).join(", ");
  const load = await kube.pods(loadGenerator!.namespace, loadGenerator!.workerPodSelector);
  const servers = new Set(replicas.map(({ pod }) => pod.node));
  const shared = load.filter(({ node }) => servers.has(node)).map(({ name }) => name);
  return [
    ok("stack", `${stack}, ${outputs.environment}, ${triton.gpuType} in ${outputs.cluster.location}`),
    ok("pods of Triton", `${replicas.length} ready: ${pods}`),
    shared.length === 0
      ? ok("load workers", `${workers} connected, on other machines than Triton`)
      : warning(
          "load workers",
          `${shared.join(", ")} on a machine of Triton: they take CPU and network from what they measure`,
          `keep the load pool's taint and the workers' anti-affinity, then delete these pods`,
        ),
    clockCheck(await controller.clockOffset()),
  ];
}

function clockCheck({ offsetMs, uncertaintyMs }: ClockOffset): Check {
  const ms = Math.abs(offsetMs).toFixed(0);
  const found = `the load controller's is ${ms} ms ${offsetMs < 0 ? "behind" : "ahead"} (± ${Math.ceil(uncertaintyMs)} ms), which is allowed for`;
  return uncertaintyMs <= FAR_MS
    ? ok("clock", found)
    : warning("clock", found, "the way to the cluster is slow: add --thorough, whose trials are longer");
}
