/** Serves one model of an existing repository in an existing cluster, with the stack's components. */
import * as gcp from "@pulumi/gcp";
import * as pulumi from "@pulumi/pulumi";
import * as components from "../../components";

function program(): Record<string, pulumi.Input<string>> {
  const config = new pulumi.Config();
  const project = config.require("project");
  const google = { providers: [new gcp.Provider("google", { project })] };

  const cluster = new components.AdoptedCluster(
    "cluster",
    {
      project,
      clusterName: config.require("cluster"),
      location: config.require("location"),
      controlPlaneAccess: "dns",
    },
    google,
  );
  const { provider } = new components.KubernetesAccess("kubernetes", { cluster, auth: "exec" }, google);
  const namespace = new components.WorkloadNamespace("serving", { provider, cluster, namespace: "triton" });

  const bucket = config.require("bucket");
  const grants = new components.RepositoryGrants(
    "model-access",
    { project, bucketName: bucket, readers: [{ namespace: "triton", name: "triton" }], writers: [] },
    google,
  );
  const triton = new components.Triton(
    "triton",
    {
      provider,
      cluster,
      namespace: namespace.namespaceName,
      image: "nvcr.io/nvidia/tritonserver:25.02-py3",
      repositoryUrl: `gs://${bucket}/models`,
      modelControlMode: "explicit",
      modelName: config.require("model"),
      replicas: 1,
      cpu: 6,
      memoryGi: 16,
      shmGi: 1,
      repositoryCopyGi: 20,
      modelLoadBudgetS: 600,
      readinessBudgetS: 1800,
      metricsIntervalMs: 1000,
      grpcThreads: 8,
      serviceAccountName: "triton",
      configHash: "1",
      clientNamespaces: ["default"],
      monitoringNamespaces: ["monitoring"],
    },
    { dependsOn: [namespace, grants] },
  );
  return { deployment: triton.deployment.metadata.name };
}

export = program;
