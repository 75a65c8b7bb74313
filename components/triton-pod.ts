import type * as k8s from "@pulumi/kubernetes";
import type * as pulumi from "@pulumi/pulumi";
import { gpuTaint } from "./gpu-node-pool";
import { poolLabel } from "./node-pool";
import { restrictedContainer, restrictedPod } from "./pod-security";
import { exitTimeoutS, preStopS, terminationGraceS, tritonProbes } from "./triton-startup";

/** Triton's ports. */
export const tritonPorts = { http: 8000, grpc: 8001, metrics: 8002 } as const;

/** Labels of Triton's pods. */
export const tritonLabels: Readonly<Record<string, string>> = { app: "triton" };

/** Who decides which models are loaded: the repository API, the folder's content, or everything at start. */
export type ModelControlMode = "explicit" | "poll" | "none";

export interface TritonPodArgs {
  readonly image: string;
  /** `gs://BUCKET/FOLDER`. */
  readonly repositoryUrl: pulumi.Input<string>;
  readonly modelControlMode: ModelControlMode;
  /** The one model that is loaded at start in explicit mode. */
  readonly modelName: string;
  /** CPU cores that the pod gets. */
  readonly cpu: number;
  /** Memory for the server and its models, GiB, without /dev/shm. */
  readonly memoryGi: number;
  /** /dev/shm, GiB: counts against the memory limit, as it is memory. */
  readonly shmGi: number;
  /** Disk for the local copy of the model repository, GiB. */
  readonly repositoryCopyGi: number;
  readonly modelLoadBudgetS: number;
  /** How often GPU metrics are read, milliseconds. */
  readonly metricsIntervalMs: number;
  /** Threads that take gRPC requests in; Triton's default of 2 is a bottleneck at 600 kB a request. */
  readonly grpcThreads: number;
  readonly serviceAccountName: string;
  /** Changes when the loaded model's configuration changes, so that the pod restarts. */
  readonly configHash: string;
}

/** Pinned host memory that Triton allocates at start, MiB; added to the memory limit. */
const pinnedPoolMi = 256;

/** User `triton-server` of the image. */
const tritonUserId = 1000;

/** Kubernetes puts the variable's value into the arguments, so that only it is unknown before the bucket exists. */
const repositoryVariable = "MODEL_REPOSITORY";

const repositoryCopy = "/var/triton";

/** Command line of the server. */
export function tritonArguments(args: TritonPodArgs): string[] {
  return [
    "tritonserver",
    `--model-repository=$(${repositoryVariable})`,
    `--model-control-mode=${args.modelControlMode}`,
    ...(args.modelControlMode === "explicit" ? [`--load-model=${args.modelName}`] : []),
    ...(args.modelControlMode === "poll" ? ["--repository-poll-secs=30"] : []),
    "--strict-readiness=true",
    "--exit-on-error=true",
    `--exit-timeout-secs=${exitTimeoutS}`,
    `--http-port=${tritonPorts.http}`,
    `--grpc-port=${tritonPorts.grpc}`,
    `--metrics-port=${tritonPorts.metrics}`,
    `--metrics-interval-ms=${args.metricsIntervalMs}`,
    `--grpc-infer-thread-count=${args.grpcThreads}`,
    `--pinned-memory-pool-byte-size=${pinnedPoolMi * 1024 * 1024}`,
    "--log-verbose=0",
  ];
}

/** Pod of one Triton server with one GPU. */
export function tritonPod(args: TritonPodArgs): k8s.types.input.core.v1.PodTemplateSpec {
  const probes = tritonProbes({ modelLoadBudgetS: args.modelLoadBudgetS, httpPort: tritonPorts.http });
  const memory = `${(args.memoryGi + args.shmGi) * 1024 + pinnedPoolMi}Mi`;
  const disk = `${args.repositoryCopyGi + 2}Gi`;
  return {
    metadata: { labels: { ...tritonLabels }, annotations: { "triton-slo/config-hash": args.configHash } },
    spec: {
      serviceAccountName: args.serviceAccountName,
      securityContext: restrictedPod(tritonUserId),
      nodeSelector: { [poolLabel]: "gpu" },
      // Written out: the admission plugin that adds it is not everywhere.
      tolerations: [{ key: gpuTaint.key, operator: "Exists", effect: "NoSchedule" }],
      terminationGracePeriodSeconds: terminationGraceS,
      volumes: [
        { name: "shm", emptyDir: { medium: "Memory", sizeLimit: `${args.shmGi}Gi` } },
        { name: "repository", emptyDir: { sizeLimit: `${args.repositoryCopyGi}Gi` } },
        { name: "tmp", emptyDir: { sizeLimit: "1Gi" } },
      ],
      containers: [
        {
          name: "triton",
          image: args.image,
          // Arguments only: the image's entry point prepares CUDA's compatibility libraries and then runs them.
          args: tritonArguments(args),
          env: [
            { name: repositoryVariable, value: args.repositoryUrl },
            { name: "TRITON_GCS_MOUNT_DIRECTORY", value: repositoryCopy },
            { name: "HOME", value: "/tmp" },
          ],
          ports: [
            { name: "http", containerPort: tritonPorts.http },
            { name: "grpc", containerPort: tritonPorts.grpc },
            { name: "metrics", containerPort: tritonPorts.metrics },
          ],
          startupProbe: probes.startup,
          readinessProbe: probes.readiness,
          livenessProbe: probes.liveness,
          lifecycle: { preStop: { exec: { command: ["sleep", String(preStopS)] } } },
          resources: {
            requests: { cpu: String(args.cpu), memory, "ephemeral-storage": disk },
            // Without a GPU limit the driver's libraries are not mounted. No CPU limit: throttling shows up as latency.
            limits: { memory, "ephemeral-storage": disk, "nvidia.com/gpu": "1" },
          },
          // The entry point links libraries below /usr/local, so the root file system stays writable.
          securityContext: restrictedContainer(false),
          volumeMounts: [
            { name: "shm", mountPath: "/dev/shm" },
            { name: "repository", mountPath: repositoryCopy },
            { name: "tmp", mountPath: "/tmp" },
          ],
        },
      ],
    },
  };
}
