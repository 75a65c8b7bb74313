/** What `npm run tune -- --stack dev` needs beside the stack: the processes in its pods, and a model repository for the server among them. */
import { appendFileSync, existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { KserveClient } from "../../kserve/client";
import { findVariant } from "../../model-repo/catalogue";
import { writeRepository } from "../../model-repo/write-repository";
import type { ServiceLaw } from "../../serving-model/service-law";
import { pointLogFileName, readPointLog, type PointRecord } from "../../tuning/results/point-log";
import { podPorts, PodProcesses, type PodPorts } from "../triton/harness/pod-processes";
import type { Forward } from "./cluster/cluster";
import { gpuNodes, nodeOf, podsOf } from "./cluster/pods";
import { until } from "./cluster/program";
import type { Environment } from "./environment";

/** Of the stand-in backend: slow enough for a busy machine to offer what the server holds. */
export const standInLaw: ServiceLaw = {
  ...{ hostMsPerImage: 1, gpuMsPerBatch: 20, gpuMsPerImage: 6, ingressRequestsPerS: Infinity },
};

/** Ports of future processes, and the port-forwards that lead to them. */
export async function tuningPorts(): Promise<{ ports: PodPorts; forwards: readonly Forward[] }> {
  const ports = await podPorts();
  const [, grpc, metrics] = ports.triton;
  return {
    ports,
    forwards: [
      { namespace: "triton", podPort: 8001, localPort: grpc! },
      { namespace: "triton", podPort: 8002, localPort: metrics! },
      { namespace: "load", podPort: 8080, localPort: ports.http },
    ],
  };
}

/** A model repository as the bucket's, with service times for the stand-in backend. */
async function repositoryWith(folder: string, names: readonly string[]): Promise<string> {
  mkdirSync(folder, { recursive: true });
  await writeRepository(names.map(findVariant), folder);
  const { hostMsPerImage, gpuMsPerBatch, gpuMsPerImage } = standInLaw;
  const parameters = Object.entries({
    ...{
      host_ms_per_image: hostMsPerImage,
      gpu_ms_per_batch: gpuMsPerBatch,
      gpu_ms_per_image: gpuMsPerImage,
    },
  }).map(([key, value]) => `parameters { key: "simulated_${key}" value { string_value: "${value}" } }\n`);
  for (const name of names) appendFileSync(join(folder, name, "config.pbtxt"), parameters.join(""));
  return folder;
}

/** The stack's pods with something in them. */
export class TunedStack {
  private constructor(
    private readonly environment: Environment,
    readonly processes: PodProcesses,
  ) {}

  /** @param served the variant that the stack serves; @param others what else is in the repository */
  static async start(
    environment: Environment,
    ports: PodPorts,
    served: string,
    ...others: readonly string[]
  ): Promise<TunedStack> {
    const secret = await environment.api.get("/api/v1/namespaces/load/secrets/load-controller-token");
    const { token } = secret!["data"] as { token: string };
    const processes = await PodProcesses.start({
      ports,
      repository: await repositoryWith(join(environment.dir, "repository"), [served, ...others]),
      model: served,
      token: Buffer.from(token, "base64").toString("utf8"),
      podAddresses: "10.244.",
    });
    return new TunedStack(environment, processes);
  }

  /** Names of the models that Triton has loaded. */
  async loaded(): Promise<string[]> {
    const client = new KserveClient(this.processes.triton.grpcAddress);
    try {
      return (await client.repositoryIndex({ readyOnly: true })).map(({ name }) => name);
    } finally {
      client.close();
    }
  }

  /** Triton's pod is deleted, and its Deployment makes another one, which serves what the stack says. */
  async replaceTriton(model?: string): Promise<void> {
    await Promise.all([this.deletePod("triton"), this.processes.replaceTriton(model)]);
  }

  async replaceController(): Promise<void> {
    await Promise.all([this.deletePod("load-controller"), this.processes.replaceController()]);
  }

  async evictWorker(): Promise<void> {
    await Promise.all([this.deletePod("load-worker"), this.processes.replaceWorker()]);
  }

  /** Google takes the machine with the GPU; the autoscaler brings another one, and Triton's pod comes up there. */
  async preemptNode(): Promise<void> {
    const { api, gke } = this.environment;
    const [name] = await gpuNodes(api);
    const node = await api.get(`/api/v1/nodes/${name}`);
    await Promise.all([gke.removeNode(node!), this.processes.replaceTriton()]);
    await until("Triton runs on another node", async () =>
      (await podsOf(api, "triton")).some((pod) => nodeOf(pod) !== "" && nodeOf(pod) !== name),
    );
  }

  private async deletePod(app: string): Promise<void> {
    const { api } = this.environment;
    const [pod] = await podsOf(api, app);
    const { name, namespace } = pod!.metadata;
    await api.delete(`/api/v1/namespaces/${namespace}/pods/${name}`);
    await until(`another pod ${app} is there`, async () =>
      (await podsOf(api, app)).some(({ metadata }) => metadata.name !== name),
    );
  }
}

/** Valid trials in a results folder so far. */
export function trialsIn(folder: string): readonly PointRecord[] {
  const file = join(folder, pointLogFileName);
  if (!existsSync(file)) return [];
  return readPointLog(file).records.filter(({ result }) => result.load.valid);
}
