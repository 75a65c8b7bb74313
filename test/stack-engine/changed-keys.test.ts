/** One changed key at a time: what an up would do to a stack that stands, and to nothing else. More keys in the slow file. */
import { beforeAll, describe, expect, it } from "vitest";
import { diff, summary, type Recording } from "./harness";
import { up, type Overrides } from "./real-stack";

let standing: Recording;
beforeAll(async () => {
  standing = await up("dev");
});

const stepsOf = async (overrides: Overrides): Promise<string[]> =>
  summary(diff(standing, await up("dev", overrides, { prior: standing })));

/** The dashboards know what a server costs, so another machine changes them. */
const butDashboards = (steps: readonly string[]): string[] =>
  steps.filter((step) => !/ConfigMap grafana-grafana-dashboards|Deployment grafana /.test(step));

const TRITON = "kubernetes:apps/v1:Deployment triton";
const GPU_POOL = "gcp:container/nodePool:NodePool gpu-pool";
const CONVERTER = "gcp:compute/instance:Instance converter";
const CONVERSION = [
  `update ${CONVERTER} (metadata.startup-script)`,
  "update gcp:storage/bucketObject:BucketObject models-conversion-plan (content)",
];
const driverOfGoogle = (): string[] => [
  "delete kubernetes:apps/v1:DaemonSet gpu-driver",
  "delete triton-slo:index:GpuDriver gpu-driver",
  `replace ${GPU_POOL} (nodeConfig.guestAccelerators[0].gpuDriverInstallationConfig.gpuDriverVersion)`,
];

describe("serving", () => {
  it("another variant of the repository changes Triton's arguments and nothing that is converted", async () => {
    const steps = await stepsOf({ variant: "tftrt_int8_bs16_count4" });
    expect(steps).toEqual([
      `update ${TRITON} (spec.template.metadata.annotations["triton-slo/config-hash"], spec.template.spec.containers[0].args[3])`,
    ]);
  });

  it("an inline variant uploads its configuration and restarts Triton with it", async () => {
    const variant = { artefact: "tftrt_fp16_bs64", maxBatchSize: 32, instanceCount: 2, queueDelayUs: 5000 };
    const steps = await stepsOf({ variant });
    expect(steps.filter((step) => step.startsWith("create"))).toHaveLength(2);
    for (const step of steps) {
      expect(step).toMatch(/BucketObject|Deployment triton|Instance converter \(metadata\.startup-script\)/);
      expect(step).not.toMatch(/^(replace|delete)/);
    }
  });

  it("a shorter repository deletes uploaded objects only", async () => {
    const steps = await stepsOf({ repositoryVariants: ["original"] });
    expect(steps.filter((step) => !CONVERSION.includes(step))).toHaveLength(10);
    for (const step of steps.filter((item) => !CONVERSION.includes(item)))
      expect(step).toMatch(/^delete .*BucketObject/);
  });

  const updates: [string, Overrides, string[]][] = [
    [
      "a new Triton release",
      { tritonVersion: "24.12" },
      [...CONVERSION, `update ${TRITON} (spec.template.spec.containers[0].image)`],
    ],
    [
      "more gRPC threads",
      { grpcThreads: 16 },
      [`update ${TRITON} (spec.template.spec.containers[0].args[11])`],
    ],
    [
      "a longer load budget",
      { modelLoadBudgetS: 900 },
      [`update ${TRITON} (spec.template.spec.containers[0].startupProbe.failureThreshold)`],
    ],
    [
      "sleep",
      { asleep: true },
      [
        "update kubernetes:apps/v1:Deployment load-workers (spec.replicas)",
        `update ${TRITON} (spec.replicas)`,
      ],
    ],
    ["another SLO", { sloPercentile: 99 }, []],
  ];
  it.each(updates)("%s is an update", async (_name, overrides, expected) => {
    const steps = await stepsOf(overrides);
    expect(
      steps.filter((step) => !/Grafana|grafana|prometheus-config|StatefulSet prometheus/.test(step)),
    ).toEqual(expected);
  });

  it("a history of measurements that stays: a disk of its own, which only the controller's pod may use", async () => {
    const recording = await up("dev", { loadHistory: "persistent" }, { prior: standing });
    expect(summary(diff(standing, recording))).toEqual([
      "create gcp:compute/disk:Disk load-history-disk",
      "create kubernetes:core/v1:PersistentVolume load-history",
      "create kubernetes:core/v1:PersistentVolumeClaim load-history",
      "create triton-slo:index:DataDisk load-history-disk",
      "create triton-slo:index:StaticVolume load-history",
      expect.stringMatching(
        /^update kubernetes:apps\/v1:Deployment load-controller \(.*args\[18\].*volumeMounts\[1\].*volumes\[1\]\)$/,
      ),
    ]);
    const disk = recording.one("gcp:compute/disk:Disk", "load-history-disk");
    const volume = recording.one("kubernetes:core/v1:PersistentVolume", "load-history");
    const claim = recording.one("kubernetes:core/v1:PersistentVolumeClaim", "load-history");
    const controller = recording.one("kubernetes:apps/v1:Deployment", "load-controller");
    for (const object of [volume, claim])
      expect(object.inputs).toMatchObject({ spec: { accessModes: ["ReadWriteOncePod"] } });
    // On destroy: controller, claim and volume while the cluster is there; the disk after the machines.
    expect(recording.comesAfter(controller, claim)).toBe(true);
    expect(recording.comesAfter(claim, volume)).toBe(true);
    expect(recording.comesAfter(recording.one("gcp:container/nodePool:NodePool", "system-pool"), disk)).toBe(
      true,
    );
    for (const object of [controller, claim, volume]) expect(object.deletedWith, object.name).toBe("");
  });

  it("a second server makes room for itself, and has a disruption budget", async () => {
    const steps = await stepsOf({ replicas: 2, gpuMaxNodes: 2 });
    expect(steps.filter((step) => !step.includes("prometheus"))).toEqual([
      "create kubernetes:policy/v1:PodDisruptionBudget triton-disruption",
      `update ${GPU_POOL} (autoscaling.totalMaxNodeCount)`,
      `update ${TRITON} (spec.replicas)`,
    ]);
  });
});

describe("GPU nodes", () => {
  // terraform-provider-google#23248: the driver version cannot be changed in place; container-engine-accelerators#107: a
  // DaemonSet does not upgrade a loaded driver either. So new nodes, and nothing else.
  it.each(["gke-default", "gke-latest"])(
    "driver mode %s replaces the T4 pool and nothing else",
    async (driverMode) => {
      expect(await stepsOf({ driverMode })).toEqual(driverOfGoogle());
    },
  );

  it("the replaced pool has an automatic name, so the new one comes before the old one goes", () => {
    const pool = standing.one("gcp:container/nodePool:NodePool", "gpu-pool");
    expect(pool.inputs.name).toBeUndefined();
    expect(pool.deleteBeforeReplace).toBeFalsy();
  });

  const cases: [string, Overrides, string[]][] = [
    [
      "one more node is an update",
      { gpuMaxNodes: 2 },
      [`update ${GPU_POOL} (autoscaling.totalMaxNodeCount)`],
    ],
    // pulumi-gcp#412, terraform-provider-google#6901
    ["another count at creation changes nothing later", { gpuInitialNodes: 1 }, []],
    ["Spot or not replaces the pool", { gpuSpot: false }, [`replace ${GPU_POOL} (nodeConfig.spot)`]],
    [
      "a second zone is an update of the pools",
      { zones: ["us-central1-a", "us-central1-b"] },
      [
        `update ${GPU_POOL} (nodeLocations[1])`,
        "update gcp:container/nodePool:NodePool load-pool (nodeLocations[1])",
      ],
    ],
  ];
  it.each(cases)("%s", async (_name, overrides, expected) => {
    expect(butDashboards(await stepsOf(overrides))).toEqual(expected);
  });

  it("another machine rolls the nodes in place", async () => {
    const smaller = { gpuMachineType: "n1-standard-4", tritonCpu: 3, tritonMemoryGi: 8 };
    const steps = butDashboards(await stepsOf(smaller));
    expect(steps[0]).toBe(`update ${GPU_POOL} (nodeConfig.machineType)`);
    expect(steps).toHaveLength(2);
    expect(steps[1]).toMatch(/^update kubernetes:apps\/v1:Deployment triton \(.*resources/);
  });
});
