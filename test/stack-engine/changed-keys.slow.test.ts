/** One changed key at a time: what an up would do to a stack that stands, and to nothing else. */
import { beforeAll, describe, expect, it } from "vitest";
import { diff, summary, type Recording } from "./harness";
import { preview, up, type Overrides } from "./real-stack";

let standing: Recording;
beforeAll(async () => {
  standing = await up("dev");
});

const stepsOf = async (overrides: Overrides): Promise<string[]> =>
  summary(diff(standing, await up("dev", overrides, { prior: standing })));

const TRITON = "kubernetes:apps/v1:Deployment triton";

describe("cluster", () => {
  // pulumi-kubernetes#1148, #2745, #4019: the endpoint is unknown while the cluster is updated, and clusterIdentifier keeps
  // that from replacing everything in the cluster.
  it.each([
    { labels: { team: "vision" } },
    { releaseChannel: "STABLE" },
    { deletionProtection: "on" },
  ] as Overrides[])("an update of the cluster replaces nothing: %j", async (overrides) => {
    const steps = diff(standing, await preview("dev", overrides, { prior: standing }));
    const provider = steps.find(({ type }) => type === "pulumi:providers:kubernetes");
    expect(provider).toMatchObject({ operation: "update", changed: ["kubeconfig"] });
    expect(steps.filter(({ operation }) => operation !== "update")).toEqual([]);
    expect(steps.filter(({ type }) => type.startsWith("kubernetes:"))).toEqual([]);
  });

  it.each([{ kubeconfigAuth: "token" }, { controlPlaneAccess: "private" }] as Overrides[])(
    "another way to reach the cluster updates the provider and no object: %j",
    async (overrides) => {
      const steps = await stepsOf(overrides);
      expect(steps).toContain("update pulumi:providers:kubernetes kubernetes (kubeconfig)");
      expect(steps.filter((step) => / kubernetes:|^replace/.test(step))).toEqual([]);
    },
  );

  it("a new token at every run is no change of any object (pulumi#4981)", async () => {
    const token = (accessToken: string) => ({
      invokes: { "gcp:organizations/getClientConfig:getClientConfig": () => ({ id: "c", accessToken }) },
    });
    const before = await up("dev", { kubeconfigAuth: "token" }, token("first"));
    const after = await up("dev", { kubeconfigAuth: "token" }, { ...token("second"), prior: before });
    expect(summary(diff(before, after))).toEqual([
      "update pulumi:providers:kubernetes kubernetes (kubeconfig)",
    ]);
  });

  it.each([
    { subnetCidr: "10.40.0.0/20" },
    { podCidr: "10.64.0.0/16" },
    { serviceCidr: "10.80.0.0/20" },
  ] as Overrides[])("other addresses replace the cluster, as Pulumi.yaml says: %j", async (overrides) => {
    const steps = diff(standing, await up("dev", overrides, { prior: standing }));
    for (const type of ["gcp:compute/subnetwork:Subnetwork", "gcp:container/cluster:Cluster"]) {
      expect(steps.find((step) => step.type === type)?.operation, type).toBe("replace");
    }
    // Two subnetworks of one VPC cannot share a range, and some ranges stay.
    expect(standing.one("gcp:compute/subnetwork:Subnetwork").deleteBeforeReplace).toBe(true);
  });
});

describe("monitoring, load and conversion", () => {
  it("a larger disk grows in place and keeps its data", async () => {
    const steps = await stepsOf({ prometheusDiskGi: 40 });
    expect(steps).toContain("update gcp:compute/disk:Disk prometheus-disk (size)");
    for (const step of steps) expect(step).toMatch(/^update/);
  });

  it("longer retention restarts Prometheus only", async () => {
    expect(await stepsOf({ retentionDays: 30 })).toEqual([
      "update kubernetes:apps/v1:StatefulSet prometheus (spec.template.spec.containers[0].args[2])",
    ]);
  });

  it("other readings restart what reads its configuration at start", async () => {
    const steps = await stepsOf({ scrapeIntervalS: 10 });
    for (const pod of ["Deployment grafana", "StatefulSet prometheus"]) {
      expect(steps.some((step) => step.includes(pod) && step.includes("config-hash"))).toBe(true);
    }
    for (const step of steps) expect(step).toMatch(/grafana|prometheus/);
  });

  it("more load workers are an update, and an alert knows their number", async () => {
    const steps = await stepsOf({ loadWorkers: 6 });
    expect(steps).toContain("update kubernetes:apps/v1:Deployment load-workers (spec.replicas)");
    for (const step of steps)
      expect(step).toMatch(/^(update .*(load-workers|prometheus)|replace .*ConfigMap prometheus-config)/);
  });

  it("Google Managed Prometheus instead of the stack's own is read by another namespace, and nothing is replaced", async () => {
    const steps = await stepsOf({ monitoring: false, managedPrometheus: true });
    expect(steps).toEqual(
      expect.arrayContaining([
        ...["triton", "triton-ready", "load-generator"].map(
          (job) => `create kubernetes:monitoring.googleapis.com/v1:PodMonitoring managed-prometheus-${job}`,
        ),
        "create kubernetes:monitoring.googleapis.com/v1:ClusterRules managed-prometheus-rules",
      ]),
    );
    expect(steps.filter((step) => step.startsWith("replace"))).toEqual([]);
    expect(steps.some((step) => step.startsWith("update gcp:container/cluster:Cluster"))).toBe(true);
  });

  it("no conversion VM deletes the VM with its account, and leaves what it made", async () => {
    const steps = await stepsOf({ conversionVm: false });
    for (const step of steps) expect(step).toMatch(/^delete .*(onver|writer|iap-ssh)/);
    expect(steps.some((step) => step.includes("Bucket models"))).toBe(false);
  });

  it("a new Deep Learning VM image of the family does not replace the VM", async () => {
    const newer = {
      "gcp:compute/getImage:getImage": () => ({
        id: "newer",
        name: "newer",
        selfLink: "https://newer",
        diskSizeGb: 50,
      }),
    };
    expect(diff(standing, await up("dev", {}, { prior: standing, invokes: newer }))).toEqual([]);
  });

  it("no load generator and no monitoring leave serving alone", async () => {
    const steps = await stepsOf({ loadGenerator: false, monitoring: false });
    for (const step of steps) expect(step).toMatch(/^delete|NetworkPolicy triton|sweep-access/);
    expect(steps.some((step) => step.includes(TRITON))).toBe(false);
  });

  it("a budget adds its alert and the API it needs", async () => {
    const steps = await stepsOf({ budget: 100, billingAccount: "ABCDEF-012345-6789AB" });
    expect(steps).toEqual(
      expect.arrayContaining([
        "create gcp:billing/budget:Budget budget",
        "create gcp:projects/service:Service services-billingbudgets",
      ]),
    );
    expect(steps.filter((step) => /^(replace|delete)/.test(step))).toEqual([]);
  });
});
