/** The stack's components, for use in other Pulumi programs; see examples/. */
export { AdoptedCluster, type AdoptedClusterArgs } from "./adopted-cluster";
export { Budget, type BudgetArgs } from "./budget";
export { Cluster, type ClusterArgs, type ClusterHandle, type ControlPlaneAccess } from "./cluster";
export { ConversionVm, type ConversionVmArgs } from "./conversion-vm";
export { ConversionVmAlert, type ConversionVmAlertArgs } from "./conversion-vm-alert";
export { DataDisk, type DataDiskArgs } from "./data-disk";
export { GpuDriver, type GpuDriverArgs } from "./gpu-driver";
export { GpuNodePool, type DriverMode, type GpuNodePoolArgs } from "./gpu-node-pool";
export { Grafana, type GrafanaArgs } from "./grafana";
export { ImageRegistry, type ImageRegistryArgs } from "./image-registry";
export { type InCluster } from "./in-cluster";
export { KubernetesAccess, type KubeconfigAuth, type KubernetesAccessArgs } from "./kubernetes-access";
export { LoadGenerator, type LoadGeneratorArgs } from "./load-generator";
export { LoadGeneratorImage, type LoadGeneratorImageArgs } from "./load-generator-image";
export { ManagedCollection, type ManagedCollectionArgs } from "./managed-collection";
export { MetricsAdapter, type MetricsAdapterArgs } from "./metrics-adapter";
export { ModelRepository, type ModelFolder, type ModelRepositoryArgs } from "./model-repository";
export { Network, type ExistingNetwork, type NetworkArgs } from "./network";
export { CpuNodePool, type CpuNodePoolArgs, type NodePoolBase, type Taint } from "./node-pool";
export { ProjectServices, stackServices, type ProjectServicesArgs } from "./project-services";
export { Prometheus, type PrometheusArgs } from "./prometheus";
export {
  RepositoryGrants,
  type KubernetesServiceAccount,
  type RepositoryGrantsArgs,
} from "./repository-grants";
export { ServiceAccounts, type ServiceAccountsArgs } from "./service-accounts";
export { StaticVolume, type StaticVolumeArgs } from "./static-volume";
export { SweepAccess, type SweepAccessArgs } from "./sweep-access";
export { Triton, type TritonArgs } from "./triton";
export { TritonAutoscaler, type TritonAutoscalerArgs } from "./triton-autoscaler";
export { type ModelControlMode, type TritonPodArgs } from "./triton-pod";
export { WorkloadNamespace, type WorkloadNamespaceArgs } from "./workload-namespace";
