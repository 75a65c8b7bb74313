/**
 * What this stack creates, from top to bottom. Pulumi.yaml lists what can be configured; stack/sections/ fills in the
 * arguments of the components in components/.
 *
 * The module exports a function: Pulumi's Node host calls it, and so can the Automation API. Nothing is created at import.
 */
import { programOutputs, type ProgramOutputs } from "./stack/program-outputs";
import { readConfig } from "./stack/read-config";
import { createAutoscaling } from "./stack/sections/autoscaling";
import { createCluster } from "./stack/sections/cluster";
import { createKubernetes } from "./stack/sections/kubernetes";
import { createLoad } from "./stack/sections/load";
import { createModels } from "./stack/sections/models";
import { createMonitoring, type Monitoring } from "./stack/sections/monitoring";
import { createNetwork } from "./stack/sections/network";
import { createProject } from "./stack/sections/project";
import { createServing } from "./stack/sections/serving";

async function program(): Promise<ProgramOutputs & Partial<Monitoring>> {
  const config = readConfig();

  // Google APIs; service accounts for the nodes and the conversion VM; a budget alert, if there is a budget.
  const project = createProject(config);

  // VPC with one subnetwork, NAT, SSH through Identity-Aware Proxy; or an existing VPC. No public addresses.
  const network = createNetwork(config, project);

  // Bucket with config.pbtxt and labels of every variant; a Deep Learning VM with a GPU that converts the model for them.
  const models = createModels(config, project, network);

  // Private GKE cluster, or an existing one; node pools for the system, for GPUs and for load; disks that outlive pods.
  const cluster = createCluster(config, project, network);

  // Kubernetes provider; GPU driver DaemonSet; namespaces for Triton, monitoring and load, closed to all that is not listed.
  const kubernetes = createKubernetes(config, project, cluster);

  // Triton with the one configured variant loaded, Services, disruption budget; its right to read the bucket.
  const triton = createServing(config, project, models, cluster, kubernetes);

  // Prometheus, which finds every Triton pod and the load controller; Grafana with dashboards and a generated password.
  const { grafanaAdminPassword } = createMonitoring(config, project, models, cluster, kubernetes);

  // Only with `autoscale`: prometheus-adapter and an autoscaler, which then owns the number of Triton servers.
  createAutoscaling(config, cluster, kubernetes, triton);

  // Registry and image of the load generator, its controller and workers; what the tune command may do in the cluster.
  createLoad(config, project, cluster, kubernetes, triton);

  // What the tune and convert commands need to know; of it all only the password of Grafana is secret.
  return { ...programOutputs(config, cluster.cluster, models), grafanaAdminPassword };
}

export = program;
