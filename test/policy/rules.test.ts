/** Every rule on its own, with good and bad resources. */
import { describe, expect, it } from "vitest";
import { allRules, violationsOf } from "../../policy/all-rules";
import { exceptions } from "../../policy/exceptions";
import type { Properties, Rule } from "../../policy/rule";
import { inexactImage } from "../../policy/rules/pod-rules";

interface Case {
  readonly rule: string;
  readonly type: string;
  readonly about: string;
  readonly properties: Properties;
  readonly protect?: boolean;
  /** Violations; none for a good resource. */
  readonly bad?: readonly string[];
}

const SERVICE = "kubernetes:core/v1:Service";
const CLUSTER = "gcp:container/cluster:Cluster";
const POOL = "gcp:container/nodePool:NodePool";
const BUCKET = "gcp:storage/bucket:Bucket";
const INSTANCE = "gcp:compute/instance:Instance";
const FIREWALL = "gcp:compute/firewall:Firewall";
const DEPLOYMENT = "kubernetes:apps/v1:Deployment";
const MEMBER = "gcp:projects/iAMMember:IAMMember";
const DIGEST = `sha256:${"0123456789abcdef".repeat(4)}`;

const pod = (container: Properties, more: Properties = {}): Properties => ({
  spec: { template: { spec: { containers: [{ name: "main", image: "web:1.2", ...container }], ...more } } },
});
const restricted = { securityContext: { runAsNonRoot: true, allowPrivilegeEscalation: false } };
const lockedBucket = {
  publicAccessPrevention: "enforced",
  uniformBucketLevelAccess: true,
  versioning: { enabled: true },
};
const gpu = {
  type: "nvidia-tesla-t4",
  count: 1,
  gpuDriverInstallationConfig: { gpuDriverVersion: "DEFAULT" },
};
const gpuTaint = { key: "nvidia.com/gpu", value: "present", effect: "NO_SCHEDULE" };
const prod = { labels: { environment: "prod", stack: "s" } };

const CASES: readonly Case[] = [
  {
    rule: "no-public-service",
    type: SERVICE,
    about: "ClusterIP",
    properties: { spec: { type: "ClusterIP" } },
  },
  {
    rule: "no-public-service",
    type: SERVICE,
    about: "headless",
    properties: { spec: { clusterIP: "None" } },
  },
  {
    rule: "no-public-service",
    type: SERVICE,
    about: "an internal load balancer",
    properties: {
      metadata: { annotations: { "networking.gke.io/load-balancer-type": "Internal" } },
      spec: { type: "LoadBalancer" },
    },
  },
  {
    rule: "no-public-service",
    type: SERVICE,
    about: "a load balancer",
    properties: { spec: { type: "LoadBalancer" } },
    bad: ["type LoadBalancer gets a public address"],
  },
  {
    rule: "no-public-service",
    type: SERVICE,
    about: "a node port",
    properties: { spec: { type: "NodePort" } },
    bad: ["type NodePort opens a port on every node"],
  },
  {
    rule: "no-public-service",
    type: SERVICE,
    about: "external addresses",
    properties: { spec: { externalIPs: ["203.0.113.1"] } },
    bad: ["externalIPs take traffic from outside the cluster"],
  },
  {
    rule: "no-public-service",
    type: "kubernetes:networking.k8s.io/v1:Ingress",
    about: "an Ingress",
    properties: {},
    bad: ["Ingress makes a public load balancer"],
  },
  {
    rule: "no-public-service",
    type: "kubernetes:gateway.networking.k8s.io/v1:Gateway",
    about: "a Gateway",
    properties: {},
    bad: ["Gateway makes a public load balancer"],
  },

  {
    rule: "no-public-address",
    type: INSTANCE,
    about: "a private machine",
    properties: { networkInterfaces: [{ subnetwork: "s" }] },
  },
  {
    rule: "no-public-address",
    type: INSTANCE,
    about: "a machine with a public address",
    properties: { networkInterfaces: [{ accessConfigs: [{}] }] },
    bad: ["accessConfigs give the machine a public address"],
  },
  {
    rule: "no-public-address",
    type: INSTANCE,
    about: "a machine with a public IPv6 address",
    properties: { networkInterfaces: [{ ipv6AccessConfigs: [{ networkTier: "PREMIUM" }] }] },
    bad: ["accessConfigs give the machine a public address"],
  },
  {
    rule: "no-public-address",
    type: "gcp:compute/address:Address",
    about: "an internal address",
    properties: { addressType: "INTERNAL" },
  },
  {
    rule: "no-public-address",
    type: "gcp:compute/address:Address",
    about: "an address by default",
    properties: {},
    bad: ["addressType is not INTERNAL"],
  },
  {
    rule: "no-public-address",
    type: "gcp:compute/globalAddress:GlobalAddress",
    about: "a global address",
    properties: { addressType: "EXTERNAL" },
    bad: ["addressType is not INTERNAL"],
  },
  {
    rule: "no-public-address",
    type: "gcp:compute/forwardingRule:ForwardingRule",
    about: "an internal rule",
    properties: { loadBalancingScheme: "INTERNAL_MANAGED" },
  },
  {
    rule: "no-public-address",
    type: "gcp:compute/forwardingRule:ForwardingRule",
    about: "a rule by default",
    properties: {},
    bad: ["loadBalancingScheme is not internal"],
  },

  {
    rule: "private-cluster",
    type: CLUSTER,
    about: "a private one",
    properties: { privateClusterConfig: { enablePrivateNodes: true, enablePrivateEndpoint: true } },
  },
  {
    rule: "private-cluster",
    type: CLUSTER,
    about: "a public endpoint for named networks",
    properties: {
      privateClusterConfig: { enablePrivateNodes: true, enablePrivateEndpoint: false },
      masterAuthorizedNetworksConfig: { cidrBlocks: [{ cidrBlock: "203.0.113.0/24" }] },
    },
  },
  {
    rule: "private-cluster",
    type: CLUSTER,
    about: "the defaults",
    properties: {},
    bad: ["nodes have public addresses", "the public control plane admits everybody"],
  },
  {
    rule: "private-cluster",
    type: CLUSTER,
    about: "a public endpoint for everybody",
    properties: {
      privateClusterConfig: { enablePrivateNodes: true },
      masterAuthorizedNetworksConfig: { cidrBlocks: [{ cidrBlock: "0.0.0.0/0" }] },
    },
    bad: ["the control plane admits the whole internet"],
  },

  {
    rule: "effective-network-policies",
    type: CLUSTER,
    about: "Dataplane V2",
    properties: { datapathProvider: "ADVANCED_DATAPATH" },
  },
  {
    rule: "effective-network-policies",
    type: CLUSTER,
    about: "Calico",
    properties: { networkPolicy: { enabled: true } },
  },
  {
    rule: "effective-network-policies",
    type: CLUSTER,
    about: "neither",
    properties: {},
    bad: ["NetworkPolicies would be accepted and ignored"],
  },

  {
    rule: "closed-firewall",
    type: FIREWALL,
    about: "a named range",
    properties: { allows: [{}], sourceRanges: ["35.235.240.0/20"] },
  },
  {
    rule: "closed-firewall",
    type: FIREWALL,
    about: "a named tag",
    properties: { allows: [{}], sourceTags: ["nodes"] },
  },
  {
    rule: "closed-firewall",
    type: FIREWALL,
    about: "a denial",
    properties: { denies: [{}], sourceRanges: ["0.0.0.0/0"] },
  },
  {
    rule: "closed-firewall",
    type: FIREWALL,
    about: "a way out",
    properties: { direction: "EGRESS", allows: [{}] },
  },
  {
    rule: "closed-firewall",
    type: FIREWALL,
    about: "everywhere",
    properties: { allows: [{}], sourceRanges: ["0.0.0.0/0"] },
    bad: ["admits connections from anywhere"],
  },
  {
    rule: "closed-firewall",
    type: FIREWALL,
    about: "everywhere by default",
    properties: { allows: [{}] },
    bad: ["admits connections from anywhere"],
  },

  {
    rule: "no-service-account-keys",
    type: "gcp:serviceaccount/key:Key",
    about: "a key",
    properties: {},
    bad: ["makes a key"],
  },
  {
    rule: "no-service-account-keys",
    type: "gcp:serviceaccount/account:Account",
    about: "an account",
    properties: {},
  },

  {
    rule: "no-primitive-roles",
    type: MEMBER,
    about: "a predefined role",
    properties: { role: "roles/logging.logWriter" },
  },
  {
    rule: "no-primitive-roles",
    type: MEMBER,
    about: "editor",
    properties: { role: "roles/editor" },
    bad: ["grants roles/editor"],
  },
  {
    rule: "no-primitive-roles",
    type: "gcp:artifactregistry/repositoryIamMember:RepositoryIamMember",
    about: "viewer",
    properties: { role: "roles/viewer" },
    bad: ["grants roles/viewer"],
  },

  {
    rule: "no-public-members",
    type: "gcp:storage/bucketIAMMember:BucketIAMMember",
    about: "an account",
    properties: { member: "serviceAccount:a@b" },
  },
  {
    rule: "no-public-members",
    type: "gcp:storage/bucketIAMMember:BucketIAMMember",
    about: "everybody",
    properties: { member: "allUsers" },
    bad: ["grants to allUsers"],
  },
  {
    rule: "no-public-members",
    type: "gcp:storage/bucketIAMBinding:BucketIAMBinding",
    about: "everybody with an account",
    properties: { members: ["user:a@b", "allAuthenticatedUsers"] },
    bad: ["grants to allAuthenticatedUsers"],
  },

  { rule: "additive-iam", type: MEMBER, about: "a member", properties: {} },
  {
    rule: "additive-iam",
    type: "gcp:storage/bucketIAMBinding:BucketIAMBinding",
    about: "a binding",
    properties: {},
    bad: ["BucketIAMBinding takes away the grants of others"],
  },
  {
    rule: "additive-iam",
    type: "gcp:projects/iAMPolicy:IAMPolicy",
    about: "a policy",
    properties: {},
    bad: ["IAMPolicy takes away the grants of others"],
  },

  {
    rule: "own-identity",
    type: POOL,
    about: "an own account",
    properties: { nodeConfig: { serviceAccount: "nodes@p.iam.gserviceaccount.com" } },
  },
  {
    rule: "own-identity",
    type: POOL,
    about: "none",
    properties: { nodeConfig: {} },
    bad: ["runs under the default service account"],
  },
  {
    rule: "own-identity",
    type: INSTANCE,
    about: "the default by name",
    properties: { serviceAccount: { email: "123-compute@developer.gserviceaccount.com" } },
    bad: ["runs under the default service account"],
  },

  {
    rule: "workload-identity",
    type: CLUSTER,
    about: "a pool of identities",
    properties: { workloadIdentityConfig: { workloadPool: "p.svc.id.goog" } },
  },
  { rule: "workload-identity", type: CLUSTER, about: "none", properties: {}, bad: ["has no workload pool"] },
  {
    rule: "workload-identity",
    type: POOL,
    about: "nodes that hide theirs",
    properties: { nodeConfig: { workloadMetadataConfig: { mode: "GKE_METADATA" } } },
  },
  {
    rule: "workload-identity",
    type: POOL,
    about: "nodes that show theirs",
    properties: { nodeConfig: {} },
    bad: ["pods can take the node's identity"],
  },

  {
    rule: "no-literal-secrets",
    type: DEPLOYMENT,
    about: "a reference",
    properties: pod({
      env: [{ name: "LOADGEN_TOKEN", valueFrom: { secretKeyRef: { name: "s", key: "k" } } }],
    }),
  },
  {
    rule: "no-literal-secrets",
    type: DEPLOYMENT,
    about: "a name of no secret",
    properties: pod({ env: [{ name: "TOKENIZER", value: "bpe" }] }),
  },
  {
    rule: "no-literal-secrets",
    type: DEPLOYMENT,
    about: "a text",
    properties: pod({ env: [{ name: "ADMIN_PASSWORD", value: "pw" }] }),
    bad: ["ADMIN_PASSWORD is written into the pod"],
  },

  { rule: "labels-present", type: BUCKET, about: "both", properties: prod },
  {
    rule: "labels-present",
    type: POOL,
    about: "in the wrong place",
    properties: { ...prod },
    bad: ["label environment is missing", "label stack is missing"],
  },
  {
    rule: "labels-present",
    type: CLUSTER,
    about: "one of two",
    properties: { resourceLabels: { stack: "s" } },
    bad: ["label environment is missing"],
  },

  { rule: "bucket-locked-down", type: BUCKET, about: "a locked one", properties: lockedBucket },
  {
    rule: "bucket-locked-down",
    type: BUCKET,
    about: "the defaults",
    properties: {},
    bad: ["public access is not prevented", "object ACLs can bypass IAM", "overwritten objects are lost"],
  },
  {
    rule: "bucket-locked-down",
    type: BUCKET,
    about: "inherited prevention",
    properties: { ...lockedBucket, publicAccessPrevention: "inherited" },
    bad: ["public access is not prevented"],
  },

  {
    rule: "prod-protected",
    type: BUCKET,
    about: "an open one in dev",
    properties: { labels: { environment: "dev" } },
  },
  { rule: "prod-protected", type: BUCKET, about: "a protected one", properties: prod, protect: true },
  {
    rule: "prod-protected",
    type: BUCKET,
    about: "an open one",
    properties: { ...prod, forceDestroy: true },
    bad: ["is not protected", "forceDestroy deletes a bucket with its objects"],
  },
  {
    rule: "prod-protected",
    type: CLUSTER,
    about: "one that Google may delete",
    properties: { resourceLabels: { environment: "prod" }, deletionProtection: false },
    protect: true,
    bad: ["deletionProtection is off"],
  },
  {
    rule: "prod-protected",
    type: "gcp:compute/disk:Disk",
    about: "an open disk",
    properties: prod,
    bad: ["is not protected"],
  },

  {
    rule: "explicit-deletion-protection",
    type: CLUSTER,
    about: "off, said so",
    properties: { deletionProtection: false },
  },
  {
    rule: "explicit-deletion-protection",
    type: CLUSTER,
    about: "not said",
    properties: {},
    bad: ["deletionProtection is not set"],
  },

  { rule: "gpu-pool-tainted", type: POOL, about: "a pool without GPUs", properties: { nodeConfig: {} } },
  {
    rule: "gpu-pool-tainted",
    type: POOL,
    about: "a tainted one",
    properties: { nodeConfig: { guestAccelerators: [gpu], taints: [gpuTaint] } },
  },
  {
    rule: "gpu-pool-tainted",
    type: POOL,
    about: "an open one",
    properties: { nodeConfig: { guestAccelerators: [gpu] } },
    bad: ["has the GPU taint 0 times"],
  },
  {
    rule: "gpu-pool-tainted",
    type: POOL,
    about: "a double taint (terraform-provider-google#7928)",
    properties: { nodeConfig: { guestAccelerators: [gpu], taints: [gpuTaint, gpuTaint] } },
    bad: ["has the GPU taint 2 times"],
  },
  {
    rule: "gpu-pool-tainted",
    type: POOL,
    about: "a taint that only asks",
    properties: {
      nodeConfig: { guestAccelerators: [gpu], taints: [{ ...gpuTaint, effect: "PREFER_NO_SCHEDULE" }] },
    },
    bad: ["the GPU taint only asks"],
  },
  {
    rule: "gpu-pool-tainted",
    type: POOL,
    about: "no driver mode (magic-modules#11152)",
    properties: {
      nodeConfig: { guestAccelerators: [{ type: "nvidia-tesla-t4", count: 1 }], taints: [gpuTaint] },
    },
    bad: ["does not say who installs the driver"],
  },

  { rule: "gpu-machine-ends", type: INSTANCE, about: "a machine without GPU", properties: {} },
  {
    rule: "gpu-machine-ends",
    type: INSTANCE,
    about: "one that ends",
    properties: {
      guestAccelerators: [gpu],
      scheduling: { maxRunDuration: { seconds: 3600 }, onHostMaintenance: "TERMINATE" },
    },
  },
  {
    rule: "gpu-machine-ends",
    type: INSTANCE,
    about: "one that does not (cluster-toolkit#460)",
    properties: { guestAccelerators: [gpu], scheduling: { onHostMaintenance: "MIGRATE" } },
    bad: ["runs, and costs, without end", "machines with GPUs cannot migrate"],
  },

  { rule: "exact-images", type: DEPLOYMENT, about: "a version", properties: pod({}) },
  {
    rule: "exact-images",
    type: DEPLOYMENT,
    about: "latest",
    properties: pod({ image: "web:latest" }),
    bad: ["web:latest has a tag that moves"],
  },
  {
    rule: "exact-images",
    type: DEPLOYMENT,
    about: "no tag, first container",
    properties: pod({}, { initContainers: [{ image: "registry:5000/web" }] }),
    bad: ["registry:5000/web has no tag, which means latest"],
  },
  {
    rule: "exact-images",
    type: "kubernetes:batch/v1:CronJob",
    about: "no image",
    properties: { spec: { jobTemplate: { spec: { template: { spec: { containers: [{}] } } } } } },
    bad: ["has no image"],
  },
  {
    rule: "exact-images",
    type: "docker-build:index:Image",
    about: "a built tag",
    properties: { tags: ["r/load:latest"] },
    bad: ["r/load:latest has a tag that moves"],
  },

  {
    rule: "unprivileged-pods",
    type: DEPLOYMENT,
    about: "a plain pod",
    properties: pod({}, { volumes: [{ name: "tmp", emptyDir: {} }] }),
  },
  {
    rule: "unprivileged-pods",
    type: DEPLOYMENT,
    about: "all powers",
    properties: pod(
      { securityContext: { privileged: true, capabilities: { add: ["SYS_ADMIN"] } } },
      { hostNetwork: true, hostPID: true, hostIPC: true, volumes: [{ hostPath: { path: "/etc" } }] },
    ),
    bad: [
      "uses hostNetwork",
      "uses hostPID",
      "uses hostIPC",
      "mounts the node's /etc",
      "main is privileged",
      "main adds SYS_ADMIN",
    ],
  },

  { rule: "non-root-pods", type: DEPLOYMENT, about: "a restricted one", properties: pod(restricted) },
  {
    rule: "non-root-pods",
    type: DEPLOYMENT,
    about: "restricted by the pod",
    properties: pod(
      { securityContext: { allowPrivilegeEscalation: false } },
      { securityContext: { runAsNonRoot: true } },
    ),
  },
  {
    rule: "non-root-pods",
    type: DEPLOYMENT,
    about: "the defaults",
    properties: pod({}),
    bad: ["main may run as root", "main may gain privileges"],
  },
];

const ruleNamed = (name: string): Rule => {
  const rule = allRules.find((candidate) => candidate.name === name);
  if (rule === undefined) throw new Error(`There is no rule ${name}.`);
  return rule;
};

describe.each(allRules.map(({ name }) => name))("%s", (name) => {
  const cases = CASES.filter(({ rule }) => rule === name);
  it("has good and bad examples", () => {
    expect(cases.some(({ bad }) => bad === undefined)).toBe(true);
    expect(cases.some(({ bad }) => bad !== undefined)).toBe(true);
  });
  it.each(cases)("$about", ({ type, properties, protect = false, bad = [] }) => {
    expect(violationsOf(ruleNamed(name), { type, name: "x", properties, protect })).toEqual(bad);
  });
  it("says what must hold and how to make it hold", () => {
    expect(ruleNamed(name).description).toMatch(/\.$/);
    expect(ruleNamed(name).fix).toMatch(/\.$/);
  });
});

describe("images", () => {
  const exact = [
    "nvcr.io/nvidia/tritonserver:25.02-py3",
    "host:5000/web:v1",
    `web@${DIGEST}`,
    `web:latest@${DIGEST}`,
    "web:2024-05-01",
  ];
  const moving = [
    "web",
    "host:5000/web",
    "web:latest",
    "web:latest-25",
    "web:stable",
    "web:main",
    "web@sha256:123",
    "",
  ];
  it.each(exact)("%s is exact", (image) => expect(inexactImage(image)).toBeNull());
  it.each(moving)("%s is not", (image) => expect(inexactImage(image)).not.toBeNull());
});

describe("exceptions", () => {
  it("name a rule that exists, and give a reason", () => {
    for (const { rule, reason } of exceptions) {
      expect(ruleNamed(rule).name).toBe(rule);
      expect(reason.length).toBeGreaterThan(30);
    }
  });

  it("accept for one object only, and only what they say", () => {
    const image = (name: string, reference: string) => ({
      type: "kubernetes:apps/v1:DaemonSet",
      name: "driver",
      protect: false,
      properties: { metadata: { namespace: "kube-system", name }, ...pod({ image: reference }) },
    });
    const rule = ruleNamed("exact-images");
    expect(violationsOf(rule, image("nvidia-driver-installer", "cos-nvidia-installer:fixed"))).toEqual([]);
    expect(violationsOf(rule, image("nvidia-driver-installer", "web:latest"))).toEqual([
      "web:latest has a tag that moves",
    ]);
    expect(violationsOf(rule, image("other", "cos-nvidia-installer:fixed"))).toHaveLength(1);
  });
});
