import {
  choice,
  flag,
  integer,
  list,
  map,
  nameOrObject,
  namesOrObjects,
  text,
  type KeySpec,
} from "./key-types";

/**
 * Every key of the stack's configuration. Pulumi.yaml declares the same keys with the same types, defaults and descriptions;
 * a test holds the two together.
 */
export const configKeys = {
  // Where
  project: text("", "Google Cloud project id. Required."),
  environment: choice(["dev", "prod"], "dev", "dev or prod; prod is protected against deletion."),
  region: text("us-central1", "Region of everything."),
  zones: list(
    [],
    "Zones for nodes and the conversion VM, best first; all with the GPU type. Default: every such zone of the region.",
  ),
  acceleratorZones: list(
    [],
    "Zones that have the GPU type beyond the built-in table of T4 zones (gcloud compute accelerator-types list).",
  ),
  clusterLocation: choice(
    ["zonal", "regional"],
    "zonal",
    "Control plane in one zone (cheaper) or in the whole region (no downtime at upgrades).",
  ),
  labels: map("Labels of every Google Cloud resource that takes them."),
  deletionProtection: choice(
    ["by-environment", "on", "off"],
    "by-environment",
    "Protection of cluster, bucket and disks; by-environment protects prod.",
  ),
  namespacePrefix: text("", "Prefix of the Kubernetes namespaces, for two stacks in one cluster."),
  asleep: flag(
    false,
    "Scale Triton and the load workers, and with them their nodes, to zero; models and data stay.",
  ),

  // Money
  budget: integer(
    0,
    10_000_000,
    0,
    "Alert when the project spends this much a month, in whole units of budgetCurrency; 0 for no alert.",
  ),
  budgetCurrency: text("USD", "Currency of the billing account, ISO 4217."),
  billingAccount: text("", "Billing account id, needed with a budget."),

  // Network and cluster
  existingNetwork: text("", "Name of a VPC to use instead of making one."),
  existingSubnetwork: text("", "Name of its subnetwork in the region."),
  existingPodRange: text("", "Name of the subnetwork's secondary range for pods."),
  existingServiceRange: text("", "Name of the subnetwork's secondary range for Services."),
  existingCluster: text(
    "",
    "Name of a GKE cluster to use instead of making one; it needs Workload Identity.",
  ),
  existingBucket: text("", "Name of a bucket to use as model repository instead of making one."),
  subnetCidr: text("10.10.0.0/20", "Addresses of nodes. A change replaces the cluster."),
  podCidr: text("10.20.0.0/16", "Addresses of pods. A change replaces the cluster."),
  serviceCidr: text("10.30.0.0/20", "Addresses of Services. A change replaces the cluster."),
  controlPlaneAccess: choice(
    ["dns", "private", "public"],
    "dns",
    "Reach the control plane by Google's DNS endpoint and IAM, from inside the VPC only, or by a public address.",
  ),
  authorizedNetworks: list([], "CIDR blocks that may reach the public control plane address."),
  kubeconfigAuth: choice(
    ["exec", "token"],
    "exec",
    "exec runs gke-gcloud-auth-plugin; token needs no plugin but stores a short-lived token, encrypted, in the state.",
  ),
  releaseChannel: choice(["RAPID", "REGULAR", "STABLE"], "REGULAR", "GKE release channel."),
  managedDcgm: flag(
    false,
    "Google-managed DCGM exporter; needs Google-managed drivers (driverMode gke-default or gke-latest).",
  ),
  systemMachineType: text(
    "e2-standard-4",
    "Machine of the system pool: Prometheus, Grafana, the load controller.",
  ),
  systemMaxNodes: integer(1, 100, 3, "Largest number of system nodes."),

  // GPU nodes
  gpuType: text("nvidia-tesla-t4", "Accelerator type of serving nodes and conversion VM."),
  gpuMachineType: text("n1-standard-8", "Machine of the GPU nodes."),
  gpusPerNode: integer(1, 8, 1, "GPUs of one node; each Triton server uses one."),
  gpuMinNodes: integer(0, 100, 0, "Smallest number of GPU nodes; 0 costs nothing when nothing is served."),
  gpuMaxNodes: integer(1, 100, 1, "Largest number of GPU nodes."),
  gpuInitialNodes: integer(
    0,
    100,
    0,
    "GPU nodes at creation: 0 shows a missing quota as an event of a waiting pod, 1 fails the creation at once.",
  ),
  gpuSpot: flag(
    false,
    "Spot GPU nodes: about a third of the price, taken away at any time. A change replaces the pool.",
  ),
  gpuReservation: text("", "Name of a reservation to use. A change replaces the pool."),
  gpuImageType: choice(
    ["COS_CONTAINERD", "UBUNTU_CONTAINERD"],
    "COS_CONTAINERD",
    "Node image of the GPU nodes.",
  ),
  driverMode: choice(
    ["daemonset", "gke-default", "gke-latest"],
    "daemonset",
    "Who installs the GPU driver: this stack's DaemonSet, or GKE in its default or latest version. A change replaces the pool.",
  ),

  // Serving
  tritonVersion: text("25.02", "Triton release, YY.MM. 25.02 is the last with the TensorFlow backend."),
  tritonImage: text("", "Triton image with exact tag or digest instead of the one of tritonVersion."),
  artefactPath: choice(
    ["tf-trt", "onnx-tensorrt"],
    "tf-trt",
    "How models are converted: TF-TRT SavedModels or ONNX to TensorRT.",
  ),
  variant: nameOrObject(
    "tftrt_fp16",
    "What Triton loads: a catalogue name, or an object {artefact, maxBatchSize, instanceCount, queueDelayUs, preferredBatchSizes}.",
  ),
  repositoryVariants: namesOrObjects(
    [
      "original",
      "tftrt_fp32",
      "tftrt_fp16",
      "tftrt_int8",
      "tftrt_fp16_bs8_count4",
      "tftrt_int8_bs8_count4",
      "tftrt_int8_bs16_count4",
    ],
    "Variants uploaded for the sweep, names or objects; the served variant is always uploaded.",
  ),
  modelControlMode: choice(
    ["explicit", "poll", "none"],
    "explicit",
    "Triton's model control; the sweep without restarts needs explicit.",
  ),
  replicas: integer(1, 100, 1, "Triton servers, one GPU each."),
  autoscale: flag(
    false,
    "Let an autoscaler choose the number of servers between replicas and autoscaleMaxReplicas.",
  ),
  autoscaleMaxReplicas: integer(1, 100, 2, "Largest number of servers with autoscale."),
  autoscaleRatePerS: integer(
    0,
    100_000,
    0,
    "Requests a second that one server should get: about 0.8 of the SLO rate that the sweep found. Needed with autoscale.",
  ),
  tritonCpu: integer(1, 96, 6, "CPU cores of one server."),
  tritonMemoryGi: integer(1, 600, 16, "Memory of one server and its models, GiB, without /dev/shm."),
  shmGi: integer(1, 64, 1, "Shared memory of one server, GiB; counts as memory."),
  repositoryCopyGi: integer(1, 1000, 20, "Disk for a server's local copy of its models, GiB."),
  grpcThreads: integer(2, 128, 8, "Threads that take gRPC requests in (--grpc-infer-thread-count)."),
  modelLoadBudgetS: integer(
    10,
    7200,
    600,
    "Longest time a model may take to load, seconds, engine build included.",
  ),
  readinessBudgetS: integer(
    60,
    14_400,
    1800,
    "How long an update waits for the servers, seconds: node, driver, image and model load.",
  ),
  clientNamespaces: list([], "Further namespaces whose pods may send inference requests."),
  sloPercentile: integer(50, 99, 95, "Percentile of the service level objective."),
  sloBoundMs: integer(1, 60_000, 100, "Bound of the service level objective, milliseconds."),

  // Load generator
  loadGenerator: flag(true, "Deploy the load generator."),
  loadImage: text("", "Load generator image with exact tag or digest; empty builds it."),
  loadMachineType: text("n2-standard-8", "Machine of the load pool; its egress decides how many are needed."),
  loadAsleep: flag(
    false,
    "Scale the load workers alone, and with them their nodes, to zero: between sweeps.",
  ),
  loadSpot: flag(false, "Spot machines for the load pool; a worker taken away spoils the trial it was in."),
  peakRatePerS: integer(1, 100_000, 2500, "Highest request rate the load generator must reach, per second."),
  loadWorkers: integer(
    0,
    1000,
    0,
    "Load workers; 0 derives them from peakRatePerS and the bytes of a request.",
  ),
  loadBusyWaitMs: integer(
    0,
    // The worker's own limit.
    10,
    0,
    "Milliseconds that a load worker waits awake for each planned send: it sends less late, and one of its two cores never rests. 0: it sleeps.",
  ),
  loadMaxNodes: integer(0, 100, 0, "Largest number of load nodes; 0 derives them from workers and egress."),
  loadHistory: choice(
    ["pod", "persistent"],
    "pod",
    "Where the load controller keeps its history of measurements: pod ends with its pod; persistent is a disk of 10 GB, about a dollar a month.",
  ),
  tuneMembers: list([], "Who may run the sweep: user:E-MAIL, group:E-MAIL or serviceAccount:E-MAIL."),

  // Monitoring
  monitoring: flag(true, "Deploy Prometheus and Grafana."),
  scrapeIntervalS: integer(1, 60, 5, "Seconds between two readings of metrics."),
  retentionDays: integer(1, 400, 15, "Days that metrics are kept."),
  prometheusDiskGi: integer(
    0,
    2000,
    0,
    "Disk of Prometheus, GiB; 0 derives it from retentionDays, scrapeIntervalS and servers. Can grow, never shrink.",
  ),
  managedPrometheus: flag(
    false,
    "Let Google Managed Prometheus read servers and load generator, with the same alerts, instead of the stack's own Prometheus.",
  ),

  // Conversion
  model: nameOrObject(
    "resnet50",
    "Model to convert: resnet50 (Keras, ImageNet weights) or an object {source, ...}; docs/conversion.md lists its fields.",
  ),
  calibrationImages: text(
    "",
    "gs:// folder of photographs for INT8; empty is calibration/ in the model bucket.",
  ),
  calibrationCount: integer(1, 10_000, 500, "How many of them are used, spread evenly; fewer is an error."),
  heldOutImages: text(
    "",
    "gs:// folder of photographs that accuracy is measured on; empty is held-out/ in the model bucket.",
  ),
  heldOutCount: integer(1, 10_000, 100, "How many of them are used; none at all leaves accuracy unmeasured."),
  conversionVm: flag(true, "Create the conversion VM."),
  conversionMachineType: text("n1-standard-8", "Machine of the conversion VM."),
  conversionDiskGb: integer(100, 2000, 200, "Boot disk of the conversion VM, GB."),
  conversionMaxLifetimeH: integer(1, 72, 6, "Hours after which a running conversion VM is stopped."),
  conversionSpot: flag(false, "Spot conversion VM."),
  conversionImageFamily: text(
    "common-cu129-ubuntu-2204-nvidia-580",
    "Deep Learning VM image family of project deeplearning-platform-release.",
  ),
  conversionImage: text("", "A fixed Deep Learning VM image instead of the family's newest at creation."),
  converterVersion: text(
    "",
    "Release of the conversion container, YY.MM; empty is tritonVersion, and nothing else fits.",
  ),
  converterImage: text(
    "",
    "Conversion image with exact tag or digest instead of the one of converterVersion.",
  ),
  jupyterLab: flag(false, "JupyterLab on the conversion VM through Google's proxy."),
  sshThroughIap: flag(true, "SSH to the conversion VM through Identity-Aware Proxy."),

  // Images
  imageDigests: map("Digest by image reference, written by scripts/resolve-digests.ts."),
} as const;

export type ConfigKey = keyof typeof configKeys;

/** Values of all keys, read but not yet checked against each other. */
export type ConfigValues = {
  readonly [K in ConfigKey]: (typeof configKeys)[K] extends KeySpec<infer T> ? T : never;
};
