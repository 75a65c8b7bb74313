import { z } from "zod";

/**
 * Outputs of the stack: what the tune and convert commands need. One schema for the program that writes them and the
 * commands that read them; no Pulumi here. Nothing is secret: tokens and passwords are named, not shown.
 */

/** A key of a Kubernetes Secret. */
const secretKey = z.object({ namespace: z.string(), name: z.string(), key: z.string() });

const tensor = z.object({
  name: z.string(),
  type: z.enum(["FP32", "UINT8"]),
  dims: z.array(z.number()),
  format: z.enum(["FORMAT_NHWC", "FORMAT_NCHW"]).nullable(),
});

const variant = z.object({
  name: z.string(),
  artefact: z.object({
    name: z.string(),
    platform: z.enum(["tensorflow_savedmodel", "tensorrt_plan", "onnxruntime_onnx"]),
    precision: z.enum(["original", "fp32", "fp16", "int8"]),
    builtMaxBatchSize: z.number().nullable(),
    input: tensor,
    output: tensor,
    labelsFile: z.string().nullable(),
  }),
  maxBatchSize: z.number(),
  instanceCount: z.number(),
  queueDelayUs: z.number(),
  preferredBatchSizes: z.array(z.number()),
  published: z
    .object({
      rps: z.number(),
      kind: z.enum(["limit", "reached"]),
      gpuBusy: z.number().nullable(),
      source: z.string(),
    })
    .nullable(),
});

export const stackOutputsSchema = z.object({
  /** Version of this schema. */
  schemaVersion: z.literal(1),
  environment: z.enum(["dev", "prod"]),
  project: z.string(),
  region: z.string(),
  /** How to reach the cluster. */
  cluster: z.object({
    name: z.string(),
    location: z.string(),
    /** Server URL. */
    server: z.string(),
    /** Base64; empty when the server's certificate is publicly signed. */
    caCertificate: z.string(),
    /** Writes a kubeconfig entry. */
    credentialsCommand: z.string(),
  }),
  triton: z.object({
    namespace: z.string(),
    deployment: z.string(),
    /** ClusterIP Service and headless Service (one address a server). */
    service: z.string(),
    headlessService: z.string(),
    /** Label selector of the servers' pods. */
    podSelector: z.string(),
    ports: z.object({ http: z.number(), grpc: z.number(), metrics: z.number() }),
    image: z.string(),
    version: z.string(),
    modelControlMode: z.enum(["explicit", "poll", "none"]),
    /** Null when an autoscaler owns the number. */
    replicas: z.number().nullable(),
    gpuType: z.string(),
    gpuMachineType: z.string(),
    gpuSpot: z.boolean(),
  }),
  /** What Triton loads at start; the sweep loads it again when it ends. */
  variant,
  /** Everything in the model repository, the served variant first. */
  repositoryVariants: z.array(variant),
  slo: z.object({ percentile: z.number(), boundMs: z.number() }),
  modelRepository: z.object({ bucket: z.string(), url: z.string() }),
  loadGenerator: z
    .object({
      namespace: z.string(),
      controllerService: z.string(),
      controllerPort: z.number(),
      controllerPodSelector: z.string(),
      workerPodSelector: z.string(),
      workers: z.number(),
      /** Highest rate that workers and egress are sized for. */
      peakRatePerS: z.number(),
      /** How long workers wait awake for a planned send, milliseconds; absent in older stacks: they sleep. */
      busyWaitMs: z.number().optional(),
      token: secretKey,
      /** Folder of sample images in the workers' image. */
      imageFolder: z.string(),
    })
    .nullable(),
  /** Machines that are paid for while a sweep runs; pricing/ turns them into money. */
  sweepSize: z.object({
    region: z.string(),
    clusters: z.number(),
    bucketGib: z.number(),
    nat: z.object({ addresses: z.number(), gibPerH: z.number() }).optional(),
    pools: z.array(
      z.object({
        /** `gpu`: the servers'. */
        name: z.string(),
        nodes: z.number(),
        node: z.object({
          machineType: z.string(),
          accelerator: z.object({ type: z.string(), count: z.number() }).optional(),
          disk: z.object({ type: z.string(), sizeGib: z.number() }).optional(),
          spot: z.boolean().optional(),
        }),
      }),
    ),
  }),
  /** The lock that one sweep at a time holds. */
  sweepLock: z.object({ namespace: z.string(), leaseName: z.string() }),
  monitoring: z
    .object({
      namespace: z.string(),
      prometheusService: z.string(),
      prometheusPort: z.number(),
      scrapeIntervalS: z.number(),
      grafanaCommand: z.string(),
      /** Dashboard that shows a sweep, reached through the forwarded port. */
      tuningDashboardUrl: z.string(),
      grafanaUser: z.string(),
      grafanaPasswordCommand: z.string(),
      grafanaPassword: secretKey,
    })
    .nullable(),
  conversionVm: z
    .object({ name: z.string(), zone: z.string(), startCommand: z.string(), logCommand: z.string() })
    .nullable(),
});

export type StackOutputs = z.infer<typeof stackOutputsSchema>;

/**
 * Reads `pulumi stack output --json`.
 * @throws Error that names what is missing, and says to run `pulumi up` with this version of the stack
 */
export function parseStackOutputs(outputs: unknown): StackOutputs {
  const parsed = stackOutputsSchema.safeParse(outputs);
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map(
    (issue) => `${issue.path.join(".") || "outputs"}: ${issue.message}`,
  );
  throw new Error(
    `The stack's outputs are not those of this version; run pulumi up first.\n  ${problems.join("\n  ")}`,
  );
}
