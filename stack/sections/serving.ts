import { createHash } from "node:crypto";
import * as components from "../../components";
import type { StackConfig } from "../derived-config";
import { variantFiles } from "../variants";
import type { ClusterSection } from "./cluster";
import type { Kubernetes } from "./kubernetes";
import type { Models } from "./models";
import type { Project } from "./project";

/** Kubernetes service account of Triton. */
const serviceAccountName = "triton";

/** How often Triton reads GPU metrics, milliseconds. */
const metricsIntervalMs = 1000;

/** Triton, and its right to read the model repository. */
export function createServing(
  config: StackConfig,
  project: Project,
  models: Models,
  { cluster, gpuPool }: ClusterSection,
  kubernetes: Kubernetes,
): components.Triton {
  const { converterEmail } = project.accounts;
  const { served } = config.variants;
  const grants = new components.RepositoryGrants(
    "model-access",
    {
      project: config.project,
      bucketName: models.repository.bucketName,
      readers: [{ namespace: config.namespaces.triton, name: serviceAccountName }],
      writers: converterEmail === undefined ? [] : [converterEmail],
    },
    project.after(models.repository, cluster, project.accounts),
  );
  return new components.Triton(
    "triton",
    {
      provider: kubernetes.provider,
      cluster,
      namespace: kubernetes.serving.namespaceName,
      image: config.triton,
      repositoryUrl: config.asleep ? models.repository.url : models.repository.urlWith(served.name),
      modelControlMode: config.modelControlMode,
      modelName: served.name,
      replicas: config.tritonReplicas,
      cpu: config.tritonCpu,
      memoryGi: config.tritonMemoryGi,
      shmGi: config.shmGi,
      repositoryCopyGi: config.repositoryCopyGi,
      modelLoadBudgetS: config.modelLoadBudgetS,
      readinessBudgetS: config.readinessBudgetS,
      metricsIntervalMs,
      grpcThreads: config.grpcThreads,
      serviceAccountName,
      configHash: hash(variantFiles(served, config.sourceModel)),
      clientNamespaces: [config.namespaces.load, ...config.clientNamespaces],
      // The load generator's console shows the servers' queue and batches beside the load.
      monitoringNamespaces: [...config.metricsReaders, config.namespaces.load],
    },
    {
      dependsOn: [kubernetes.serving, grants, models.repository, gpuPool, ...optional(kubernetes.gpuDriver)],
    },
  );
}

function hash(files: Readonly<Record<string, string>>): string {
  return createHash("sha256").update(JSON.stringify(files)).digest("hex").slice(0, 16);
}

function optional<T>(value: T | undefined): T[] {
  return value === undefined ? [] : [value];
}
