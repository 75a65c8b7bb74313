/** The target that is already there: one or more running Tritons, named by address; load workers on this machine. */
import { KserveClient, KserveError } from "../kserve/client";
import type { ServerMetadataResponse } from "../kserve/messages";
import { startLocalCluster } from "../loadgen/local-cluster";
import { RepositoryControl } from "../tuning/repository-control";
import type { OpenTarget, TargetEndpoints } from "../tuning/target";
import { busyWaitNotes } from "./busy-wait";
import type { KnownSpeeds } from "./known-speeds";
import { LimitedLoad } from "./limited-load";
import { findMetrics, hasGpuMetrics, type FoundMetrics } from "./metrics-urls";
import { gpusOf } from "./server-gpus";
import { addressesHere, sharedMachineNote } from "./same-machine";
import { answers, connectionReason, untilReady } from "./until-ready";
import { TargetError } from "./target-error";

/** Running servers that were looked at. */
export interface FoundServers {
  /** host:port of gRPC, one a replica of the same server. */
  readonly addresses: readonly string[];
  readonly metadata: ServerMetadataResponse;
  readonly metrics: FoundMetrics;
}

export interface AddressTargetOptions {
  readonly servers: FoundServers;
  /** Hard limit on the offered load, requests/s over all replicas. */
  readonly maxRatePerS: number;
  /** Load worker processes; null: one, or more on machines with many cores. */
  readonly workers: number | null;
  /** The workers wait awake for each planned send this long, milliseconds. Default 0: they sleep. */
  readonly busyWaitMs?: number;
  readonly cores: number;
  /** How fast its models are alone. Default: not known. */
  readonly speeds?: KnownSpeeds;
}

/** Triton reads its GPUs every 2000 ms (--metrics-interval-ms); a gauge looks back that far. */
const GPU_GAUGE_LAG_MS = 2000;
/** What local-triton says in its metrics: it is a simulation, and how slow. */
const DILATION_METRIC = "local_triton_time_dilation";

/** Each worker keeps about a core busy; the servers are elsewhere. */
export function defaultWorkers(cores: number): number {
  return Math.max(1, Math.min(8, cores - 1));
}

/**
 * Looks at running servers.
 * @param metrics URLs of /metrics in the same order; null: port 8002 of the same hosts, if it answers
 * @throws TargetError naming every address that does not answer or differs from the first
 */
export async function findServers(
  addresses: readonly string[],
  metrics: readonly string[] | null,
): Promise<FoundServers> {
  const answers = await Promise.all(addresses.map(metadataOf));
  const problems = answers.filter((answer) => typeof answer === "string");
  if (problems.length > 0) throw new TargetError(problems.join("\n"));
  const servers = answers as ServerMetadataResponse[];
  const metadata = servers[0]!;
  const index = servers.findIndex(
    ({ name, version }) => name !== metadata.name || version !== metadata.version,
  );
  const other = servers[index];
  if (other)
    throw new TargetError(
      `${addresses[0]} is ${metadata.name} ${metadata.version}, ${addresses[index]} is ${other.name} ${other.version}: ` +
        `replicas must be equal, or their rates cannot be compared`,
    );
  return { addresses, metadata, metrics: await findMetrics(addresses, metrics) };
}

async function metadataOf(address: string): Promise<ServerMetadataResponse | string> {
  const client = new KserveClient(address);
  try {
    return await client.serverMetadata();
  } catch (error) {
    if (!(error instanceof KserveError)) throw error;
    return `${address} does not answer as a Triton (${connectionReason(error.details)}): give the host and port of its gRPC endpoint, usually port 8001`;
  } finally {
    client.close();
  }
}

/** Starts load workers here. The first server is the one that is measured; all of them serve the variant. */
export async function openAddressTarget(options: AddressTargetOptions): Promise<OpenTarget> {
  const { servers, maxRatePerS } = options;
  const { addresses, metadata, metrics } = servers;
  const { cores, busyWaitMs = 0 } = options;
  const workers = options.workers ?? defaultWorkers(cores);
  const isServerHere = addressesHere(addresses).length > 0;
  const waiting = busyWaitNotes({ busyWaitMs, workers, cores, isServerHere });
  const load = new LimitedLoad(await startLocalCluster({ workers, busyWaitMs }), maxRatePerS);
  const control = new RepositoryControl({ addresses });
  const dilation = metrics.samples.find(({ name }) => name === DILATION_METRIC)?.value ?? null;
  const endpoints: TargetEndpoints = { grpc: addresses.slice(0, 1), metrics: metrics.urls.slice(0, 1) };
  const place = sharedMachineNote(addresses);
  const gpu = dilation === null ? await gpusOf(addresses, metrics.samples) : null;
  const server = `${metadata.name} ${metadata.version}${dilation === null ? "" : ", simulated T4,"} at`;
  return {
    kind: "address",
    description: `${server} ${addresses[0]}`,
    simulated: dilation !== null,
    serverName: metadata.name,
    serverVersion: metadata.version,
    identity: `${server} ${addresses[0]}`,
    artefactHash: options.speeds?.filesHashOf,
    gpu,
    control,
    load,
    facts: {
      wireCeilingPerS: null,
      clientCeilingPerS: maxRatePerS,
      scheduler: dilation === null ? "payload" : "idle",
    },
    workers,
    notes: [
      ...notesOf(metrics, maxRatePerS),
      ...(place === null ? [] : [place]),
      ...waiting,
      ...(options.speeds?.notes ?? []),
    ],
    standAloneOf: options.speeds?.standAloneOf,
    endpoints: () => endpoints,
    ...(addresses.length > 1 ? { replicas: () => ({ grpc: addresses, metrics: metrics.urls }) } : {}),
    gpuGaugeLagMs: GPU_GAUGE_LAG_MS,
    timeDilation: () => dilation ?? 1,
    plannedDilation: () => dilation ?? 1,
    recover: async (_variant, failure, watch) => {
      const back = control.clients.map(async (client) => {
        // An invalid measurement says nothing about a server that answers.
        if (!failure.measured || !(await answers(client))) await untilReady(client, watch);
      });
      await Promise.all(back);
    },
    close: async () => {
      control.close();
      await load.close();
    },
  };
}

function notesOf({ samples, missing }: FoundMetrics, maxRatePerS: number): string[] {
  const limit = `offered load is limited to ${maxRatePerS} requests/s (--max-rate)`;
  if (missing !== null) return [limit, `server metrics absent: ${missing}`];
  return hasGpuMetrics(samples)
    ? [limit]
    : [limit, "GPU metrics absent: the server reports no nv_gpu_utilization"];
}
