/**
 * The target that `pulumi up` made: Triton's pods and the load generator in the stack's cluster, reached through the Kubernetes API, so
 * nothing needs a public address. What Pulumi manages is never changed; at the end the stack's own variant is served again.
 */
import type { ModelArtefact, Variant } from "../../model-repo/variant";
import { RepositoryControl } from "../../tuning/repository-control";
import type { OpenTarget } from "../../tuning/target";
import type { ServerControl } from "../../tuning/trial";
import type { KnownSpeeds } from "../known-speeds";
import { LimitedLoad } from "../limited-load";
import { hasGpuMetrics } from "../metrics-urls";
import { lockStack, type ConnectedStack } from "./connect-stack";
import { SamePodsLoad, untilReady } from "./same-pods";
import { stackGpus } from "./stack-gpus";
import { stackWire } from "./stack-wire";
import type { SweepLock } from "./sweep-lock";

export interface StackTargetOptions {
  readonly connected: ConnectedStack;
  /** Hard limit on the offered load, requests/s. */
  readonly maxRatePerS: number;
  /** Model whose requests' bytes the way is tried with before the first trial. Default: it is not tried. */
  readonly wireOf?: ModelArtefact;
  /** How fast its artefacts are alone. Default: not known. */
  readonly speeds?: KnownSpeeds;
}

/** Triton reads its GPUs every 2000 ms (--metrics-interval-ms) unless told otherwise; a gauge looks back that far. */
const GPU_GAUGE_LAG_MS = 2000;

/** Takes the stack's lock. The first server is the one that is measured; all of them serve the variant. @throws TargetError */
export async function openStackTarget({
  connected,
  maxRatePerS,
  wireOf,
  speeds,
}: StackTargetOptions): Promise<OpenTarget> {
  const { stack, outputs, replicas, servers, workers } = connected;
  const lock = await lockStack(connected);
  const confirm = (): Promise<void> => lock.confirm();
  const repository = new RepositoryControl({ addresses: servers.addresses, home: outputs.variant });
  const load = new LimitedLoad(new SamePodsLoad(connected, confirm), maxRatePerS);
  const wire = wireOf && (await stackWire(connected, load, wireOf, maxRatePerS));
  const { metadata, metrics } = servers;
  const [first] = replicas;
  const busyWaitMs = outputs.loadGenerator?.busyWaitMs ?? 0;
  const all = { grpc: servers.addresses, metrics: metrics.urls };
  return {
    kind: "stack",
    description: `stack ${stack}: ${metadata.name} ${metadata.version} on ${outputs.triton.gpuType} in ${outputs.cluster.location}`,
    simulated: false,
    serverName: metadata.name,
    serverVersion: metadata.version,
    identity: `stack ${stack} ${outputs.triton.image} ${outputs.triton.gpuType} ${outputs.triton.gpuMachineType}`,
    artefactHash: speeds?.filesHashOf,
    gpu: await stackGpus(connected),
    control: new LockedControl(repository, lock),
    load,
    facts: {
      wireCeilingPerS: wire?.ceilingPerS ?? null,
      clientCeilingPerS: maxRatePerS,
      scheduler: "payload",
    },
    workers,
    notes: [
      `offered load is limited to ${maxRatePerS} requests/s (--max-rate)`,
      ...(wire ? [wire.summary] : []),
      ...(busyWaitMs > 0
        ? [`the load workers wait awake ${busyWaitMs} ms for each planned send (loadBusyWaitMs)`]
        : []),
      ...(hasGpuMetrics(metrics.samples)
        ? []
        : ["GPU metrics absent: the servers report no nv_gpu_utilization"]),
      ...(outputs.triton.gpuSpot
        ? ["the servers run on spot machines, which may be taken away in mid-sweep"]
        : []),
      ...(speeds?.notes ?? []),
    ],
    standAloneOf: speeds?.standAloneOf,
    endpoints: () => ({ grpc: [first!.grpc.address], metrics: metrics.urls.slice(0, 1) }),
    ...(replicas.length > 1 ? { replicas: () => all } : {}),
    timeDilation: () => 1,
    plannedDilation: () => 1,
    gpuGaugeLagMs: GPU_GAUGE_LAG_MS,
    ...(outputs.monitoring === null ? {} : { dashboardUrl: outputs.monitoring.tuningDashboardUrl }),
    recover: (_variant, _failure, watch) => untilReady(connected, watch?.signal),
    close: async () => {
      repository.close();
      await lock.release();
      await connected.close();
    },
  };
}

/** Servers that another sweep has taken over are not touched any more. */
class LockedControl implements ServerControl {
  constructor(
    private readonly control: RepositoryControl,
    private readonly lock: SweepLock,
  ) {}

  async serve(variant: Variant, signal?: AbortSignal): Promise<string> {
    await this.lock.confirm();
    return this.control.serve(variant, signal);
  }

  batchSizes(modelName: string): Promise<Readonly<Record<number, number>> | null> {
    return this.control.batchSizes(modelName);
  }

  isCold(modelName: string): Promise<boolean> {
    return this.control.isCold(modelName);
  }

  async restore(): Promise<void> {
    if (!this.lock.isLost) await this.control.restore();
  }
}
