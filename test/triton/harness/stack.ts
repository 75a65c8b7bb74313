/**
 * A deployed stack as the tune command sees it: a real API server with pods, the real load controller and a worker, and a real Triton.
 * kwok's port-forwards lead from the pods to these processes.
 */
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join, resolve } from "node:path";
import type { StackOutputs } from "../../../stack/outputs";
import type { Variant } from "../../../model-repo/variant";
import { startCluster, type Cluster } from "../../engine/cluster/cluster";
import { until } from "../../engine/cluster/program";
import { podPorts, PodProcesses } from "./pod-processes";
import type { TritonServer } from "./triton-server";

const checkout = resolve(__dirname, "..", "..", "..");
const imageFolder = join(checkout, "model-repo", "images");
const token = "only for tests";
const namespaces = { triton: "triton", load: "load" } as const;
const container = [{ name: "main", image: "none:1" }];

export class StackInCluster {
  private constructor(
    private readonly dir: string,
    readonly cluster: Cluster,
    private readonly processes: PodProcesses,
    readonly variant: Variant,
  ) {}

  static async start(repository: string, variant: Variant): Promise<StackInCluster> {
    const dir = mkdtempSync(join(tmpdir(), "stack-in-cluster-"));
    const ports = await podPorts();
    const [, grpc, metrics] = ports.triton;
    const cluster = await startCluster(join(dir, "cluster"), {
      forwards: [
        { namespace: namespaces.triton, podPort: 8001, localPort: grpc! },
        { namespace: namespaces.triton, podPort: 8002, localPort: metrics! },
        { namespace: namespaces.load, podPort: 8080, localPort: ports.http },
      ],
    });
    const processes = await PodProcesses.start({ ports, repository, model: variant.name, token });
    const stack = new StackInCluster(dir, cluster, processes, variant);
    await stack.deploy();
    return stack;
  }

  get triton(): TritonServer {
    return this.processes.triton;
  }

  /** What `pulumi stack output --json` prints. */
  outputs(change: Partial<StackOutputs> = {}): StackOutputs {
    const { cluster, variant } = this;
    const artefact = { ...variant.artefact };
    const asOutput = { ...variant, artefact } as unknown as StackOutputs["variant"];
    return {
      schemaVersion: 1,
      environment: "dev",
      project: "test",
      region: "europe-west4",
      cluster: {
        name: "dev",
        location: "europe-west4-b",
        server: `https://${cluster.endpoint}`,
        caCertificate: cluster.caBase64,
        credentialsCommand: "none",
      },
      triton: {
        namespace: namespaces.triton,
        deployment: "triton",
        service: "triton",
        headlessService: "triton-headless",
        podSelector: "app=triton",
        ports: { http: 8000, grpc: 8001, metrics: 8002 },
        image: "tritonserver:24.10-py3",
        version: "24.10",
        modelControlMode: "explicit",
        replicas: 1,
        gpuType: "nvidia-tesla-t4",
        gpuMachineType: "n1-standard-4",
        gpuSpot: false,
      },
      variant: asOutput,
      repositoryVariants: [asOutput],
      slo: { percentile: 95, boundMs: 100 },
      modelRepository: { bucket: "models", url: "gs://models" },
      loadGenerator: {
        namespace: namespaces.load,
        controllerService: "load-controller",
        controllerPort: 8080,
        controllerPodSelector: "app=load-controller",
        workerPodSelector: "app=load-worker",
        workers: 1,
        peakRatePerS: 500,
        token: { namespace: namespaces.load, name: "load-token", key: "token" },
        imageFolder,
      },
      sweepSize: {
        ...{ region: "us-central1", clusters: 1, bucketGib: 1 },
        pools: [
          {
            name: "gpu",
            nodes: 1,
            node: { machineType: "n1-standard-8", accelerator: { type: "nvidia-tesla-t4", count: 1 } },
          },
        ],
      },
      sweepLock: { namespace: namespaces.load, leaseName: "sweep" },
      monitoring: null,
      conversionVm: null,
      ...change,
    };
  }

  /** PATH with the login plugin, and a `pulumi` that prints these outputs. */
  path(outputs: StackOutputs = this.outputs()): string {
    const bin = join(this.dir, "bin");
    mkdirSync(bin, { recursive: true });
    const credential = {
      ...{ apiVersion: "client.authentication.k8s.io/v1beta1", kind: "ExecCredential" },
      status: { token: this.cluster.token },
    };
    writeFileSync(join(this.dir, "outputs.json"), JSON.stringify(outputs));
    const programs = {
      "gke-gcloud-auth-plugin": `echo '${JSON.stringify(credential)}'`,
      pulumi: `[ "$*" = "stack output --json --stack dev" ] || { echo "error: no stack named '$5' found" >&2; exit 255; }\ncat '${join(this.dir, "outputs.json")}'`,
    };
    for (const [name, text] of Object.entries(programs)) {
      writeFileSync(join(bin, name), `#!/bin/sh\n${text}\n`);
      chmodSync(join(bin, name), 0o755);
    }
    return [bin, process.env["PATH"] ?? ""].join(delimiter);
  }

  /** Deletes Triton's pod and makes another one, as its Deployment would. */
  async replaceTritonPod(name: string): Promise<void> {
    const { api } = this.cluster;
    const path = `/api/v1/namespaces/${namespaces.triton}/pods`;
    for (const pod of await api.list(path)) await api.delete(`${path}/${pod.metadata.name}`);
    await this.pod(namespaces.triton, name, "triton", "gpu-1");
  }

  replaceController(): Promise<void> {
    return this.processes.replaceController();
  }

  async stop(): Promise<void> {
    await this.processes.stop();
    await this.cluster.stop();
    rmSync(this.dir, { recursive: true, force: true });
  }

  private async deploy(): Promise<void> {
    const { api } = this.cluster;
    for (const name of ["gpu-1", "load-1"]) {
      const size = { cpu: "16", memory: "64Gi", pods: "20" };
      await api.create("/api/v1/nodes", {
        metadata: { name },
        status: { capacity: size, allocatable: size },
      });
    }
    for (const name of Object.values(namespaces))
      await api.create("/api/v1/namespaces", { metadata: { name } });
    await api.create(`/api/v1/namespaces/${namespaces.load}/secrets`, {
      metadata: { name: "load-token" },
      data: { token: Buffer.from(token).toString("base64") },
    });
    await this.pod(namespaces.triton, "triton-a", "triton", "gpu-1");
    await this.pod(namespaces.load, "load-controller-a", "load-controller", "load-1");
    await this.pod(namespaces.load, "load-worker-a", "load-worker", "load-1");
  }

  private async pod(namespace: string, name: string, app: string, nodeName: string): Promise<void> {
    const { api } = this.cluster;
    await until("the namespace has its service account", () =>
      api.get(`/api/v1/namespaces/${namespace}/serviceaccounts/default`),
    );
    await api.create(`/api/v1/namespaces/${namespace}/pods`, {
      metadata: { name, labels: { app } },
      spec: { containers: container, nodeName, tolerations: [{ operator: "Exists" }] },
    });
    await until(`${name} is ready`, async () => {
      const found = await api.get(`/api/v1/namespaces/${namespace}/pods/${name}`);
      const conditions = (found?.status?.["conditions"] ?? []) as { type: string; status: string }[];
      return conditions.some(({ type, status }) => type === "Ready" && status === "True");
    });
  }
}
