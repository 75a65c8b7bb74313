import { objectsAt, textAt, types, valueAt, type Properties, type Rule } from "../rule";

/** Where each type keeps its labels. */
const labelPaths: Readonly<Record<string, string>> = {
  "gcp:container/cluster:Cluster": "resourceLabels",
  "gcp:container/nodePool:NodePool": "nodeConfig.resourceLabels",
  "gcp:storage/bucket:Bucket": "labels",
  "gcp:compute/disk:Disk": "labels",
  "gcp:compute/instance:Instance": "labels",
  "gcp:artifactregistry/repository:Repository": "labels",
};

/** Labels that say whose a resource is and where its costs go. */
const requiredLabels = ["environment", "stack"];

const labelOf = (type: string, properties: Properties, label: string): string =>
  textAt(properties, `${labelPaths[type] ?? "labels"}.${label}`);

const labelsPresent: Rule = {
  name: "labels-present",
  description: "Everything that costs money says which environment and stack it belongs to.",
  fix: `Set the labels ${requiredLabels.join(" and ")}.`,
  appliesTo: (type) => type in labelPaths,
  violations: ({ type, properties }) =>
    requiredLabels
      .filter((label) => labelOf(type, properties, label) === "")
      .map((label) => `label ${label} is missing`),
};

const bucketLockedDown: Rule = {
  name: "bucket-locked-down",
  description: "Buckets cannot be made public, are governed by IAM alone, and keep overwritten objects.",
  fix: 'Set publicAccessPrevention to "enforced", uniformBucketLevelAccess and versioning.enabled to true.',
  appliesTo: types("gcp:storage/bucket:Bucket"),
  violations: ({ properties }) => [
    ...(textAt(properties, "publicAccessPrevention") === "enforced"
      ? []
      : ["public access is not prevented"]),
    ...(valueAt(properties, "uniformBucketLevelAccess") === true ? [] : ["object ACLs can bypass IAM"]),
    ...(valueAt(properties, "versioning.enabled") === true ? [] : ["overwritten objects are lost"]),
  ],
};

const prodProtected: Rule = {
  name: "prod-protected",
  description: "In production, what holds data or serves cannot be deleted by accident.",
  fix: "Set protect; on clusters deletionProtection too; on buckets forceDestroy to false.",
  appliesTo: types("gcp:container/cluster:Cluster", "gcp:storage/bucket:Bucket", "gcp:compute/disk:Disk"),
  violations: ({ type, properties, protect }) => {
    if (labelOf(type, properties, "environment") !== "prod") return [];
    return [
      ...(protect ? [] : ["is not protected"]),
      ...(type.endsWith(":Cluster") && valueAt(properties, "deletionProtection") !== true
        ? ["deletionProtection is off"]
        : []),
      ...(type.endsWith(":Bucket") && valueAt(properties, "forceDestroy") === true
        ? ["forceDestroy deletes a bucket with its objects"]
        : []),
    ];
  },
};

const explicitDeletionProtection: Rule = {
  name: "explicit-deletion-protection",
  description:
    "Clusters say whether they can be deleted: the provider's default forbids it and makes a destroy fail.",
  fix: "Set deletionProtection to true or false.",
  appliesTo: types("gcp:container/cluster:Cluster"),
  violations: ({ properties }) =>
    typeof valueAt(properties, "deletionProtection") === "boolean" ? [] : ["deletionProtection is not set"],
};

const gpuPoolTainted: Rule = {
  name: "gpu-pool-tainted",
  description: "GPU nodes repel pods without a GPU, and say who installs their driver.",
  fix: 'Declare the taint {"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"} once, and gpuDriverInstallationConfig.',
  appliesTo: types("gcp:container/nodePool:NodePool"),
  violations: ({ properties }) => {
    const accelerators = objectsAt(properties, "nodeConfig.guestAccelerators");
    if (accelerators.length === 0) return [];
    const taints = objectsAt(properties, "nodeConfig.taints").filter(
      (taint) => textAt(taint, "key") === "nvidia.com/gpu",
    );
    return [
      ...(taints.length === 1 ? [] : [`has the GPU taint ${taints.length} times`]),
      ...(taints.some((taint) => textAt(taint, "effect") === "PREFER_NO_SCHEDULE")
        ? ["the GPU taint only asks"]
        : []),
      ...(accelerators.every((gpu) => textAt(gpu, "gpuDriverInstallationConfig.gpuDriverVersion") !== "")
        ? []
        : ["does not say who installs the driver"]),
    ];
  },
};

const gpuMachineEnds: Rule = {
  name: "gpu-machine-ends",
  description:
    "Machines with a GPU outside the cluster end by themselves, and can be stopped for maintenance.",
  fix: 'Set scheduling.maxRunDuration and scheduling.onHostMaintenance "TERMINATE".',
  appliesTo: types("gcp:compute/instance:Instance"),
  violations: ({ properties }) => {
    if (objectsAt(properties, "guestAccelerators").length === 0) return [];
    return [
      ...(valueAt(properties, "scheduling.maxRunDuration.seconds") === undefined
        ? ["runs, and costs, without end"]
        : []),
      ...(textAt(properties, "scheduling.onHostMaintenance") === "TERMINATE"
        ? []
        : ["machines with GPUs cannot migrate"]),
    ];
  },
};

export const dataRules: readonly Rule[] = [
  labelsPresent,
  bucketLockedDown,
  prodProtected,
  explicitDeletionProtection,
  gpuPoolTainted,
  gpuMachineEnds,
];
