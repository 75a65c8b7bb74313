/**
 * Which changed inputs make a provider replace a resource. The npm packages do not say (their typings have no ForceNew),
 * so this is a table made by hand for the types that the stack uses, with the source of each entry.
 *
 * Sources:
 * - Google: `ForceNew: true` in the resource schemas of hashicorp/terraform-provider-google, `google/services/<service>/`,
 *   which @pulumi/gcp bridges (property names turned into camelCase).
 * - Kubernetes: `forceNew` in pulumi/pulumi-kubernetes, `provider/pkg/provider/diff.go`, and the maintainers' docs of the
 *   provider options `clusterIdentifier`, `enableConfigMapMutable` and `enableSecretMutable`.
 */
import type { PropertyMap } from "./property-value";
import type { Registration } from "./recording";

/** Paths per type; a path covers all that lies below it, `*` and `[*]` stand for one step. */
const GCP_REPLACE: Readonly<Record<string, readonly string[]>> = {
  // artifactregistry/resource_artifact_registry_repository.go, iam_artifact_registry_repository.go
  "gcp:artifactregistry/repository:Repository": [
    "project",
    "location",
    "repositoryId",
    "format",
    "mode",
    "kmsKeyName",
  ],
  "gcp:artifactregistry/repositoryIamMember:RepositoryIamMember": ["*"],
  // billing/resource_billing_budget.go
  "gcp:billing/budget:Budget": ["billingAccount"],
  // monitoring/resource_monitoring_alert_policy.go
  "gcp:monitoring/alertPolicy:AlertPolicy": ["project"],
  // compute/resource_compute_disk.go (size only grows in place; labels are updated)
  "gcp:compute/disk:Disk": [
    "project",
    "zone",
    "name",
    "description",
    "type",
    "image",
    "snapshot",
    "diskEncryptionKey",
  ],
  // compute/resource_compute_firewall.go
  "gcp:compute/firewall:Firewall": ["project", "name", "network", "direction"],
  // compute/resource_compute_instance.go
  "gcp:compute/instance:Instance": [
    "project",
    "zone",
    "name",
    "hostname",
    "description",
    "canIpForward",
    "bootDisk",
    "guestAccelerators",
    "metadataStartupScript",
    "scratchDisks",
    "scheduling.preemptible",
    "scheduling.provisioningModel",
    "scheduling.maxRunDuration",
    "networkInterfaces[*].nicType",
    "reservationAffinity",
  ],
  // compute/resource_compute_network.go
  "gcp:compute/network:Network": ["project", "name", "description", "autoCreateSubnetworks"],
  // compute/resource_compute_router.go, resource_compute_router_nat.go
  "gcp:compute/router:Router": ["project", "region", "name", "network", "encryptedInterconnectRouter"],
  "gcp:compute/routerNat:RouterNat": ["project", "region", "name", "router", "type"],
  // compute/resource_compute_subnetwork.go (a primary range can be widened in place, any other change of it replaces)
  "gcp:compute/subnetwork:Subnetwork": [
    "project",
    "region",
    "name",
    "network",
    "ipCidrRange",
    "purpose",
    "description",
  ],
  // container/resource_container_cluster.go
  "gcp:container/cluster:Cluster": [
    "project",
    "location",
    "name",
    "description",
    "initialNodeCount",
    "network",
    "subnetwork",
    "networkingMode",
    "clusterIpv4Cidr",
    "ipAllocationPolicy.clusterSecondaryRangeName",
    "ipAllocationPolicy.servicesSecondaryRangeName",
    "ipAllocationPolicy.clusterIpv4CidrBlock",
    "ipAllocationPolicy.servicesIpv4CidrBlock",
    "datapathProvider",
    "defaultMaxPodsPerNode",
    "enableAutopilot",
    "enableKubernetesAlpha",
    "enableTpu",
    "nodeConfig",
    "privateClusterConfig.enablePrivateNodes",
    "privateClusterConfig.masterIpv4CidrBlock",
    "privateClusterConfig.privateEndpointSubnetwork",
    "confidentialNodes",
  ],
  // container/resource_container_node_pool.go and node_config.go: machine, disk, image, labels and taints are updated in place
  "gcp:container/nodePool:NodePool": [
    "project",
    "cluster",
    "location",
    "name",
    "namePrefix",
    "initialNodeCount",
    "maxPodsPerNode",
    "placementPolicy",
    "queuedProvisioning",
    "nodeConfig.advancedMachineFeatures",
    "nodeConfig.bootDiskKmsKey",
    "nodeConfig.confidentialNodes",
    "nodeConfig.enableConfidentialStorage",
    "nodeConfig.ephemeralStorageLocalSsdConfig",
    "nodeConfig.flexStart",
    "nodeConfig.guestAccelerators",
    "nodeConfig.gvnic",
    "nodeConfig.hostMaintenancePolicy",
    "nodeConfig.localNvmeSsdBlockConfig",
    "nodeConfig.localSsdCount",
    "nodeConfig.maxRunDuration",
    "nodeConfig.metadata",
    "nodeConfig.minCpuPlatform",
    "nodeConfig.nodeGroup",
    "nodeConfig.oauthScopes",
    "nodeConfig.preemptible",
    "nodeConfig.reservationAffinity",
    "nodeConfig.secondaryBootDisks",
    "nodeConfig.serviceAccount",
    "nodeConfig.shieldedInstanceConfig",
    "nodeConfig.soleTenantConfig",
    "nodeConfig.spot",
  ],
  // tpgiamresource: a member of a policy has nothing but its identity
  "gcp:projects/iAMMember:IAMMember": ["*"],
  "gcp:storage/bucketIAMMember:BucketIAMMember": ["*"],
  "gcp:serviceaccount/iAMMember:IAMMember": ["*"],
  // resourcemanager/resource_google_project_service.go, resource_google_service_account.go
  "gcp:projects/service:Service": ["project", "service"],
  "gcp:serviceaccount/account:Account": ["project", "accountId"],
  // storage/resource_storage_bucket.go, resource_storage_bucket_object.go (new contents are a new generation, in place)
  "gcp:storage/bucket:Bucket": ["project", "name", "location", "customPlacementConfig"],
  "gcp:storage/bucketObject:BucketObject": [
    "bucket",
    "name",
    "cacheControl",
    "contentDisposition",
    "contentEncoding",
    "contentLanguage",
    "contentType",
    "metadata",
    "storageClass",
  ],
};

/** Replaced by every pulumi-kubernetes resource: an object cannot be renamed or moved. */
const KUBERNETES_ALWAYS = ["metadata.name", "metadata.namespace", "apiVersion", "kind"];

const KUBERNETES_REPLACE: Readonly<Record<string, readonly string[]>> = {
  "kubernetes:apps/v1:DaemonSet": ["spec.selector"],
  "kubernetes:apps/v1:Deployment": ["spec.selector"],
  "kubernetes:apps/v1:StatefulSet": [
    "spec.podManagementPolicy",
    "spec.revisionHistoryLimit",
    "spec.selector",
    "spec.serviceName",
    "spec.volumeClaimTemplates",
  ],
  "kubernetes:batch/v1:Job": ["spec.completions", "spec.parallelism", "spec.selector", "spec.template"],
  "kubernetes:core/v1:PersistentVolume": ["spec.csi"],
  // Not the size: a claim grows in place (pulumi-kubernetes#1665).
  "kubernetes:core/v1:PersistentVolumeClaim": [
    "spec.accessModes",
    "spec.selector",
    "spec.storageClassName",
    "spec.volumeName",
  ],
  "kubernetes:core/v1:Service": ["spec.clusterIP"],
  "kubernetes:rbac.authorization.k8s.io/v1:ClusterRoleBinding": ["roleRef"],
  "kubernetes:rbac.authorization.k8s.io/v1:RoleBinding": ["roleRef"],
  "kubernetes:storage.k8s.io/v1:StorageClass": ["parameters", "provisioner"],
};

const RANDOM_REPLACE: Readonly<Record<string, readonly string[]>> = {
  // Every argument of the random provider's resources forces replacement (hashicorp/terraform-provider-random, internal/provider/resource_password.go).
  "random:index/randomPassword:RandomPassword": ["*"],
  "random:index/randomId:RandomId": ["*"],
  "random:index/randomString:RandomString": ["*"],
};

/** What the comparison knows about the provider that manages the resource. */
export type ProviderInputs = PropertyMap | undefined;

/**
 * Patterns of the inputs whose change replaces the resource.
 *
 * @throws for a type of a known package without an entry: an unlisted type would pass as "never replaced"
 */
export function replacePatterns(
  prior: Pick<Registration, "inputs">,
  next: Pick<Registration, "type" | "inputs">,
  provider: ProviderInputs,
): readonly string[] {
  const { type } = next;
  if (type === "pulumi:providers:kubernetes") return kubernetesProvider(prior.inputs, next.inputs);
  if (type.startsWith("pulumi:providers:")) return [];
  if (type.startsWith("kubernetes:"))
    return [...KUBERNETES_ALWAYS, ...immutableData(type, provider), ...(KUBERNETES_REPLACE[type] ?? [])];
  const known = GCP_REPLACE[type] ?? RANDOM_REPLACE[type] ?? DOCKER_REPLACE[type];
  if (known === undefined) {
    throw new Error(
      `No replace rules for ${type}: add its ForceNew properties, with their source, to replace-rules.ts.`,
    );
  }
  return known;
}

/** `pulumi/pulumi-docker-build` provider: an image is built anew in place, nothing is replaced. */
const DOCKER_REPLACE: Readonly<Record<string, readonly string[]>> = { "docker-build:index:Image": [] };

/** pulumi-kubernetes replaces ConfigMaps and Secrets whose contents change unless the provider is told otherwise. */
function immutableData(type: string, provider: ProviderInputs): readonly string[] {
  const mutable = (option: string): boolean => provider?.[option] === true || provider?.[option] === "true";
  if (type === "kubernetes:core/v1:ConfigMap" && !mutable("enableConfigMapMutable"))
    return ["data", "binaryData"];
  if (type === "kubernetes:core/v1:Secret")
    return mutable("enableSecretMutable") ? ["type"] : ["type", "data", "stringData"];
  return [];
}

/**
 * pulumi-kubernetes#1148, #2745: with a cluster identifier a changed or unknown kubeconfig updates the provider; without one
 * it replaces the provider and everything in the cluster.
 */
function kubernetesProvider(before: PropertyMap, after: PropertyMap): readonly string[] {
  const identified = before.clusterIdentifier !== undefined && after.clusterIdentifier !== undefined;
  return identified ? ["clusterIdentifier"] : ["clusterIdentifier", "kubeconfig", "context", "cluster"];
}
