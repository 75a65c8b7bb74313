/**
 * What this stack creates, from top to bottom: project and network, model repository, cluster and nodes, serving, monitoring,
 * load generator. Read the arguments of a component in components/, the configuration in Pulumi.yaml.
 *
 * The module exports a function: Pulumi's Node host calls it, and so can the Automation API. Nothing is created at import.
 */
import * as gcp from "@pulumi/gcp";
import * as pulumi from "@pulumi/pulumi";
import * as components from "./components";
import * as parts from "./stack/program-parts";
import { programOutputs, type ProgramOutputs } from "./stack/program-outputs";
import { readConfig } from "./stack/read-config";

async function program(): Promise<ProgramOutputs> {
  const config = readConfig();
  const { project, region, resourceLabels: labels, protect, zonesUsed: zones } = config;
  const stack = pulumi.getStack();
  const google = new gcp.Provider("google", parts.googleProviderArgs(config));
  const inGoogle = (...dependsOn: pulumi.Resource[]) => ({ providers: [google], dependsOn });

  // Project: APIs, accounts of least privilege, a budget alert.
  const services = new components.ProjectServices("services", { project, services: parts.services(config) }, inGoogle());
  const accounts = new components.ServiceAccounts("accounts", { project, prefix: parts.shortName(stack), converter: config.conversionVm }, inGoogle(services));
  if (config.budget > 0) new components.Budget("budget", parts.budgetArgs(config), inGoogle(services));

  // Network: VPC, subnetwork and NAT, or existing ones. No public addresses.
  const network = parts.needsNetwork(config) ? new components.Network("network", parts.networkArgs(config), inGoogle(services)) : undefined;

  // Models: bucket with one folder a variant; a GPU machine that converts the model into them and stops itself.
  const repository = new components.ModelRepository("models", parts.repositoryArgs(config), inGoogle(services));
  const converter = network && accounts.converterEmail !== undefined
    ? new components.ConversionVm("converter", parts.conversionVmArgs(config, network, accounts.converterEmail, repository.bucketName), inGoogle(repository, network, accounts))
    : undefined;

  // Cluster: private nodes; pools for the system's pods, for GPUs and for load, the last two down to zero.
  const cluster = network && config.existingCluster === ""
    ? new components.Cluster("cluster", parts.clusterArgs(config, network), inGoogle(services, network))
    : new components.AdoptedCluster("cluster", parts.adoptedClusterArgs(config), inGoogle(services));
  const disk = config.monitoring ? new components.DataDisk("prometheus-disk", parts.dataDiskArgs(config), inGoogle(services)) : undefined;
  const pool = { project, cluster, zones, serviceAccount: accounts.nodesEmail, labels };
  const systemPool = new components.CpuNodePool("system-pool", { ...pool, ...parts.systemPool(config) }, inGoogle(accounts, cluster, ...(disk ? [disk] : [])));
  const gpuPool = new components.GpuNodePool("gpu-pool", { ...pool, ...parts.gpuPool(config) }, inGoogle(systemPool));
  const loadPool = config.loadGenerator ? new components.CpuNodePool("load-pool", { ...pool, ...parts.loadPool(config) }, inGoogle(systemPool)) : undefined;

  // In the cluster: GPU driver, namespaces where nothing is allowed that is not listed.
  const { provider } = new components.KubernetesAccess("kubernetes", { cluster, auth: config.kubeconfigAuth }, inGoogle());
  const inCluster = { provider, cluster };
  const driver = config.driverMode === "daemonset" ? new components.GpuDriver("gpu-driver", { ...inCluster, digests: config.imageDigests }, { dependsOn: [gpuPool] }) : gpuPool;
  const namespace = (name: keyof typeof config.namespaces) =>
    new components.WorkloadNamespace(`namespace-${name}`, { ...inCluster, namespace: config.namespaces[name] }, { dependsOn: [systemPool] });

  // Serving: Triton, which reads the bucket by its own identity and loads one variant.
  const grants = new components.RepositoryGrants("model-readers", parts.grantsArgs(config, repository.bucketName, accounts.converterEmail), inGoogle(repository, cluster, accounts));
  const serving = namespace("triton");
  const triton = new components.Triton("triton", { ...inCluster, ...parts.tritonArgs(config, serving, repository) }, { dependsOn: [serving, grants, repository, gpuPool, driver] });

  // Monitoring: Prometheus on the disk, Grafana with generated dashboards.
  const monitoring = namespace("monitoring");
  const load = namespace("load");
  if (disk) {
    new components.Prometheus("prometheus", { ...inCluster, ...parts.prometheusArgs(config, disk, { serving, load, monitoring }) }, { dependsOn: [systemPool, serving, load, monitoring] });
    new components.Grafana("grafana", { ...inCluster, ...parts.grafanaArgs(config, monitoring) }, { dependsOn: [systemPool, monitoring] });
  }

  // Load: image, controller, workers on their own nodes; what the tune command may do.
  if (loadPool) {
    const registry = new components.ImageRegistry("registry", { project, region, repositoryId: `${parts.shortName(stack)}-images`, pullerEmail: accounts.nodesEmail, labels }, inGoogle(services, accounts));
    const image = new components.LoadGeneratorImage("load-image", parts.loadImageArgs(config, registry), { dependsOn: [registry] });
    new components.LoadGenerator("load", { ...inCluster, ...parts.loadGeneratorArgs(config, load, image) }, { dependsOn: [load, loadPool, systemPool, triton] });
  }
  new components.SweepAccess("sweep-access", { ...inCluster, ...parts.sweepAccessArgs(config, { serving, load, monitoring }) }, { dependsOn: [serving, load, monitoring] });

  return programOutputs(config, { cluster, bucketName: repository.bucketName, repositoryUrl: repository.url, conversionVmName: converter?.instanceName });
}

export = program;
