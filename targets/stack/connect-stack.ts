/** Looks at a deployed stack: its pods, its load workers, and the ways to them through the Kubernetes API. Nothing is changed here. */
import type { Variant } from "../../model-repo/variant";
import type { StackOutputs } from "../../stack/outputs";
import { findServers, type FoundServers } from "../address";
import { TargetError } from "../target-error";
import { explained } from "./cluster-error";
import type { Kube, PodInfo } from "./kube";
import type { PortForwardServer } from "./port-forward";
import { RemoteLoad } from "./remote-load";
import { SweepLock } from "./sweep-lock";

/** One server of the stack and how it is reached from here. The pod changes when it is replaced; the addresses here stay. */
export interface Replica {
  pod: PodInfo;
  readonly grpc: PortForwardServer;
  readonly metrics: PortForwardServer;
}

export interface ConnectOptions {
  readonly stack: string;
  readonly outputs: StackOutputs;
  readonly kube: Kube;
  /** Address at which the load workers reach a server's pod. Default: the pod's own. */
  readonly workerAddress?: (pod: PodInfo) => string;
}

/** A stack that was looked at: pods are ready, workers are connected, nothing was changed. */
export interface ConnectedStack extends ConnectOptions {
  readonly replicas: readonly Replica[];
  readonly servers: FoundServers;
  readonly load: RemoteLoad;
  readonly controller: PortForwardServer;
  readonly workers: number;
  close(): Promise<void>;
}

/**
 * Variants of the stack's model repository.
 * @param names null: all of them
 * @throws TargetError that names unknown ones
 */
export function stackVariants(
  outputs: StackOutputs,
  stack: string,
  names: readonly string[] | null,
): readonly Variant[] {
  const known = [
    ...new Map([outputs.variant, ...outputs.repositoryVariants].map((one) => [one.name, one])).values(),
  ];
  if (names === null) return known;
  const missing = names.filter((name) => !known.some((variant) => variant.name === name));
  const { modelControlMode: mode } = outputs.triton;
  if (missing.length > 0 && mode !== "explicit")
    throw new TargetError(
      `stack ${stack} serves ${outputs.variant.name} and can load nothing else, because its modelControlMode is ${mode}: ` +
        `pulumi config set modelControlMode explicit --stack ${stack}, or for one variant after the other ` +
        `pulumi config set variant ${missing[0]} --stack ${stack}; then pulumi up --stack ${stack} and this command again`,
    );
  if (missing.length > 0)
    throw new TargetError(
      `stack ${stack} has no ${missing.join(", ")} in its model repository (it has ${known.map(({ name }) => name).join(", ")}): ` +
        `add it to repositoryVariants in the stack's configuration, then pulumi up`,
    );
  return names.map((name) => known.find((variant) => variant.name === name)!);
}

/** @throws TargetError naming what is not there, and the command that brings it */
export async function connectStack(options: ConnectOptions): Promise<ConnectedStack> {
  const { stack, outputs, kube } = options;
  const { triton, loadGenerator } = outputs;
  if (loadGenerator === null)
    throw new TargetError(
      `stack ${stack} has no load generator: pulumi config set loadGenerator true --stack ${stack} && pulumi up`,
    );
  if (loadGenerator.workers === 0)
    throw new TargetError(
      `the load workers of stack ${stack} are asleep: pulumi config set loadAsleep false --stack ${stack} && pulumi up`,
    );
  const ask = <T>(action: string, call: () => Promise<T>): Promise<T> =>
    explained({ stack, cluster: outputs.cluster, action }, call);
  const opened: PortForwardServer[] = [];
  const open = async (...words: Parameters<Kube["forward"]>): Promise<PortForwardServer> => {
    const forward = await kube.forward(...words);
    opened.push(forward);
    return forward;
  };
  const close = async (): Promise<void> => {
    await Promise.all(opened.map((forward) => forward.close()));
  };
  try {
    const found = await ask(`list pods in ${triton.namespace}`, () =>
      kube.pods(triton.namespace, triton.podSelector),
    );
    const pods = found.filter(({ isReady }) => isReady);
    if (pods.length === 0)
      throw new TargetError(
        `stack ${stack} serves nothing: no pod of Triton is ready. If it is asleep: pulumi config set asleep false ` +
          `--stack ${stack} && pulumi up; else: npm run explain -- --stack ${stack}`,
      );
    const replicas: Replica[] = [];
    for (const [index, pod] of pods.entries()) {
      const name = async (): Promise<string> => (replicas[index]?.pod ?? pod).name;
      const grpc = await open(triton.namespace, name, triton.ports.grpc);
      replicas.push({ pod, grpc, metrics: await open(triton.namespace, name, triton.ports.metrics) });
    }
    // Whichever pod is the controller when a connection is made.
    const controllerPod = (): Promise<string> =>
      ask(`list pods in ${loadGenerator.namespace}`, async () => {
        const controllers = await kube.pods(loadGenerator.namespace, loadGenerator.controllerPodSelector);
        const ready = controllers.find(({ isReady }) => isReady);
        if (ready) return ready.name;
        throw new TargetError(
          `no pod of the load controller of stack ${stack} is ready: npm run explain -- --stack ${stack}`,
        );
      });
    // A refusal here is said as it is, and not as a connection that fails.
    await controllerPod();
    const controller = await open(loadGenerator.namespace, controllerPod, loadGenerator.controllerPort);
    const { namespace, name, key } = loadGenerator.token;
    const workerAddress = options.workerAddress ?? ((pod) => `${pod.ip}:${triton.ports.grpc}`);
    const inClusterAddress = (address: string): string => {
      const replica = replicas.find(({ grpc }) => grpc.address === address);
      return replica ? workerAddress(replica.pod) : address;
    };
    const load = new RemoteLoad({
      url: `http://${controller.address}`,
      token: await ask(`read secret ${namespace}/${name}`, () => kube.secret(namespace, name, key)),
      imageFolder: loadGenerator.imageFolder,
      inClusterAddress,
    });
    const workers = await connectedWorkers(load, controller, stack, loadGenerator.workers);
    const servers = await findServers(
      replicas.map(({ grpc }) => grpc.address),
      replicas.map(({ metrics }) => `http://${metrics.address}/metrics`),
    );
    return { ...options, replicas, servers, load, controller, workers, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** The lock that makes the stack this sweep's. @throws TargetError naming who holds it, or why it cannot be taken */
export function lockStack({ stack, outputs, kube }: ConnectedStack): Promise<SweepLock> {
  const { namespace, leaseName } = outputs.sweepLock;
  return explained({ stack, cluster: outputs.cluster, action: `hold lease ${namespace}/${leaseName}` }, () =>
    SweepLock.acquire(kube, namespace, leaseName),
  );
}

async function connectedWorkers(
  load: RemoteLoad,
  controller: PortForwardServer,
  stack: string,
  wanted: number,
): Promise<number> {
  let connected: number;
  try {
    connected = (await load.workers()).length;
  } catch (error) {
    if (error instanceof TargetError) throw error;
    const reason = controller.problem ?? (error instanceof Error ? error.message : String(error));
    throw new TargetError(`the load controller of stack ${stack} cannot be reached: ${reason}`);
  }
  if (connected >= wanted) return connected;
  throw new TargetError(
    `${connected} of ${wanted} load workers of stack ${stack} are connected: wait until their nodes are up, or see ` +
      `npm run explain -- --stack ${stack}`,
  );
}
