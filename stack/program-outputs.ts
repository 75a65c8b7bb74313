import * as pulumi from "@pulumi/pulumi";
import type { ClusterHandle } from "../components/cluster";
import { grafanaPort, grafanaSecretName, grafanaService } from "../components/grafana";
import { controllerService, tokenSecretKey, tokenSecretName } from "../components/load-generator";
import { controllerLabels, controllerPort, workerLabels } from "../components/load-generator-pods";
import { prometheusPort, prometheusService } from "../components/prometheus";
import { sweepLeaseName } from "../components/sweep-access";
import { tritonHeadlessService, tritonName } from "../components/triton";
import { tritonLabels, tritonPorts } from "../components/triton-pod";
import { dashboardUids } from "../monitoring/dashboards";
import type { StackConfig } from "./derived-config";
import type { StackOutputs } from "./outputs";
import type { Models } from "./sections/models";
import { stackSize } from "./stack-cost";

/** The outputs as the program returns them: the same shape, values not known before the update. */
export type ProgramOutputs = { [K in keyof StackOutputs]: pulumi.Input<StackOutputs[K]> };

/** Everything that the tune and convert commands need to know. */
export function programOutputs(config: StackConfig, cluster: ClusterHandle, models: Models): ProgramOutputs {
  const { repository, conversionVm } = models;
  return {
    schemaVersion: 1,
    environment: config.environment,
    project: config.project,
    region: config.region,
    cluster: clusterOutput(config, cluster),
    triton: tritonOutput(config),
    variant: pulumi.output(config.variants.served) as pulumi.Output<StackOutputs["variant"]>,
    repositoryVariants: pulumi.output(config.variants.repository) as pulumi.Output<
      StackOutputs["repositoryVariants"]
    >,
    slo: { percentile: config.sloPercentile, boundMs: config.sloBoundMs },
    modelRepository: pulumi.output({ bucket: repository.bucketName, url: repository.url }),
    loadGenerator: config.loadGenerator ? loadGeneratorOutput(config) : null,
    sweepSize: stackSize(config, "sweeping") as StackOutputs["sweepSize"],
    sweepLock: { namespace: config.namespaces.load, leaseName: sweepLeaseName },
    monitoring: config.monitoring ? monitoringOutput(config) : null,
    conversionVm: conversionVm ? conversionVmOutput(config, conversionVm.instanceName) : null,
  };
}

function clusterOutput(config: StackConfig, cluster: ClusterHandle): pulumi.Output<StackOutputs["cluster"]> {
  const endpoint =
    config.controlPlaneAccess === "dns"
      ? " --dns-endpoint"
      : config.controlPlaneAccess === "private"
        ? " --internal-ip"
        : "";
  return pulumi.output({
    name: cluster.name,
    location: cluster.location,
    server: cluster.server,
    caCertificate: cluster.caCertificate,
    credentialsCommand: pulumi.interpolate`gcloud container clusters get-credentials ${cluster.name} --location ${cluster.location} --project ${config.project}${endpoint}`,
  });
}

function selector(labels: Readonly<Record<string, string>>): string {
  return Object.entries(labels)
    .map(([key, value]) => `${key}=${value}`)
    .join(",");
}

function tritonOutput(config: StackConfig): StackOutputs["triton"] {
  return {
    namespace: config.namespaces.triton,
    deployment: tritonName,
    service: tritonName,
    headlessService: tritonHeadlessService,
    podSelector: selector(tritonLabels),
    ports: { ...tritonPorts },
    image: config.triton,
    version: config.tritonVersion,
    modelControlMode: config.modelControlMode,
    replicas: config.tritonReplicas ?? null,
    gpuType: config.gpuType,
    gpuMachineType: config.gpuMachineType,
    gpuSpot: config.gpuSpot,
  };
}

function loadGeneratorOutput(config: StackConfig): StackOutputs["loadGenerator"] {
  return {
    namespace: config.namespaces.load,
    controllerService,
    controllerPort,
    controllerPodSelector: selector(controllerLabels),
    workerPodSelector: selector(workerLabels),
    workers: config.load.workers,
    peakRatePerS: config.peakRatePerS,
    busyWaitMs: config.loadBusyWaitMs,
    token: { namespace: config.namespaces.load, name: tokenSecretName, key: tokenSecretKey },
    imageFolder: "/app/model-repo/images",
  };
}

function monitoringOutput(config: StackConfig): StackOutputs["monitoring"] {
  const namespace = config.namespaces.monitoring;
  return {
    namespace,
    prometheusService,
    prometheusPort,
    scrapeIntervalS: config.scrapeIntervalS,
    grafanaCommand: `kubectl -n ${namespace} port-forward service/${grafanaService} ${grafanaPort}:${grafanaPort}`,
    tuningDashboardUrl: `http://localhost:${grafanaPort}/d/${dashboardUids.tuning}`,
    grafanaUser: "admin",
    grafanaPasswordCommand: `kubectl -n ${namespace} get secret ${grafanaSecretName} -o jsonpath={.data.password} | base64 -d`,
    grafanaPassword: { namespace, name: grafanaSecretName, key: "password" },
  };
}

function conversionVmOutput(
  config: StackConfig,
  name: pulumi.Output<string>,
): pulumi.Output<StackOutputs["conversionVm"]> {
  const zone = config.zonesUsed[0] ?? "";
  const where = `--zone ${zone} --project ${config.project}`;
  return pulumi.output({
    name,
    zone,
    startCommand: pulumi.interpolate`gcloud compute instances start ${name} ${where}`,
    logCommand: pulumi.interpolate`gcloud compute instances tail-serial-port-output ${name} ${where}`,
  });
}
