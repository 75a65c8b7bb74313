/** Pods come and go while a stack is measured: which trials may be used, and when it can go on. */
import { KserveClient } from "../../kserve/client";
import type { LoadClient, LoadProgress, LoadResult, LoadSpec } from "../../loadgen/load-spec";
import type { ConnectedStack } from "./connect-stack";
import { kubeStatus } from "./kube";
import { LockLostError } from "./sweep-lock";

/** A pod that was replaced gets a node, pulls its image and loads its model before it is ready. */
const RECOVERY_TIMEOUT_MS = 15 * 60_000;
const RECOVERY_POLL_MS = 2000;
const ANSWER_TIMEOUT_MS = 5000;
/** A machine that was asleep over lunch goes on where it was. */
const PATIENCE_MS = 30 * 60_000;

/** A trial is used only if the pods that it measured are the ones that it began with. */
export class SamePodsLoad implements LoadClient {
  /** @param confirm rejects when the stack is not this sweep's any more */
  constructor(
    private readonly connected: ConnectedStack,
    private readonly confirm: () => Promise<void>,
  ) {}

  async run(
    spec: LoadSpec,
    onProgress?: (progress: LoadProgress) => void,
    signal?: AbortSignal,
  ): Promise<LoadResult> {
    await patiently(this.confirm, signal);
    const result = await this.connected.load.run(spec, onProgress, signal);
    await patiently(this.confirm, signal);
    const gone = await patiently(() => changedPods(this.connected), signal);
    if (gone.length === 0) return result;
    const reason = `${gone.join(" and ")} was replaced or restarted during the trial`;
    return { ...result, valid: false, invalidReasons: [...result.invalidReasons, reason] };
  }

  async close(): Promise<void> {
    // The forwards belong to the target.
  }
}

/** Repeats a call while the Kubernetes API is out of reach or wants a new login; its refusals, and the loss of the lock, end it. */
async function patiently<T>(call: () => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  const until = performance.now() + PATIENCE_MS;
  for (;;) {
    try {
      return await call();
    } catch (error) {
      const status = kubeStatus(error);
      const isRefusal = status !== null && status < 500 && status !== 401 && status !== 429;
      if (isRefusal || error instanceof LockLostError || performance.now() > until) throw error;
    }
    signal?.throwIfAborted();
    await new Promise((resolve) => setTimeout(resolve, RECOVERY_POLL_MS));
  }
}

/** Names of pods that are not there any more, or were started anew. */
async function changedPods({ kube, outputs, replicas }: ConnectedStack): Promise<string[]> {
  const { namespace, podSelector } = outputs.triton;
  const now = new Map((await kube.pods(namespace, podSelector)).map((pod) => [pod.uid, pod.startedAt]));
  return replicas.filter(({ pod }) => now.get(pod.uid) !== pod.startedAt).map(({ pod }) => pod.name);
}

/**
 * Waits until as many servers are ready and as many load workers connected as before, and takes new pods in the place of those that
 * are gone. Connections from before are cut, since they may lead to what is gone and would be waited for in vain.
 * @throws Error that says what is still missing; the signal's reason
 */
export async function untilReady(
  connected: ConnectedStack,
  signal?: AbortSignal,
  timeoutMs: number = RECOVERY_TIMEOUT_MS,
): Promise<void> {
  const until = performance.now() + timeoutMs;
  connected.controller.disconnect();
  for (;;) {
    const missing =
      (await missingServers(connected)) ??
      (await silentServers(connected)) ??
      (await missingWorkers(connected));
    if (missing === null) return;
    signal?.throwIfAborted();
    if (performance.now() > until)
      throw new Error(
        `stack ${connected.stack}, after ${Math.round(timeoutMs / 60_000)} minutes: ${missing}`,
      );
    await new Promise((resolve) => setTimeout(resolve, RECOVERY_POLL_MS));
  }
}

async function missingServers({ kube, outputs, replicas }: ConnectedStack): Promise<string | null> {
  const { namespace, podSelector } = outputs.triton;
  const pods = await kube.pods(namespace, podSelector).catch(() => null);
  if (pods === null) return "the Kubernetes API does not answer";
  const ready = pods.filter(({ isReady }) => isReady);
  if (ready.length < replicas.length) return `${ready.length} of ${replicas.length} servers are ready`;
  const known = new Set(replicas.map(({ pod }) => pod.uid));
  const fresh = ready.filter(({ uid }) => !known.has(uid));
  for (const replica of replicas) {
    const pod = ready.find(({ uid }) => uid === replica.pod.uid) ?? fresh.shift();
    if (pod) replica.pod = pod;
  }
  return null;
}

/** A pod may be ready a moment before its server answers through a new connection. */
async function silentServers({ replicas }: ConnectedStack): Promise<string | null> {
  for (const { pod, grpc, metrics } of replicas) {
    for (const forward of [grpc, metrics]) forward.disconnect();
    const client = new KserveClient(grpc.address);
    const isLive = await client.serverLive({ deadlineMs: ANSWER_TIMEOUT_MS }).catch(() => false);
    client.close();
    if (!isLive) return `the server in ${pod.name} does not answer`;
  }
  return null;
}

async function missingWorkers({ load, workers }: ConnectedStack): Promise<string | null> {
  const connected = await load.workers().catch(() => null);
  if (connected === null) return "the load controller does not answer";
  return connected.length >= workers ? null : `${connected.length} of ${workers} load workers are connected`;
}
