/** What must hold for every stack: known failures of similar systems, secrets, addresses, and what outlives what. */
import { beforeAll, describe, expect, it } from "vitest";
import { parseConfig } from "../../stack/config";
import { parseStackOutputs } from "../../stack/outputs";
import { acceleratorZones } from "../../stack/zones";
import {
  at,
  clearTexts,
  input,
  plain,
  secretPaths,
  walk,
  type Plain,
  type Recording,
  type Registration,
} from "./harness";
import { PROJECT_NUMBER } from "./harness/invokes";
import { preview, PROJECT, STACKS, up, type StackName } from "./real-stack";

const CLUSTER = "gcp:container/cluster:Cluster";
const POOL = "gcp:container/nodePool:NodePool";
const DEPLOYMENT = "kubernetes:apps/v1:Deployment";
const SERVICE = "kubernetes:core/v1:Service";
const INSTANCE = "gcp:compute/instance:Instance";

type Json = { [key: string]: Plain };
const json = (registration: Registration, path: string): Json => plain(input(registration, path)) as Json;
const list = (registration: Registration, path: string): Json[] =>
  (plain(input(registration, path)) ?? []) as Json[];
const text = (registration: Registration, path: string): string => plain(input(registration, path)) as string;

const POD = "spec.template.spec";
const workloads = (recording: Recording): Registration[] =>
  recording.all.filter(({ type }) => /^kubernetes:apps\/v1:(Deployment|DaemonSet|StatefulSet)$/.test(type));
const seconds = (duration: string): number => {
  const match = /^(\d+)([smh])$/.exec(duration);
  if (match === null) throw new Error(`"${duration}" is no duration.`);
  return Number(match[1]) * { s: 1, m: 60, h: 3600 }[match[2] as "s" | "m" | "h"];
};

const recordings = new Map<StackName, Recording>();
beforeAll(async () => {
  for (const stack of STACKS) recordings.set(stack, await up(stack));
});
const recordingOf = (stack: StackName): Recording => {
  const recording = recordings.get(stack);
  if (recording === undefined) throw new Error(`${stack} was not run.`);
  return recording;
};

describe.each(STACKS)("%s: Google Cloud", (stack) => {
  it("has no nodeConfig on a cluster whose default pool is removed (pulumi-gcp#744, pulumi#8991)", () => {
    const cluster = recordingOf(stack).one(CLUSTER);
    expect(cluster.inputs).toMatchObject({ removeDefaultNodePool: true, initialNodeCount: 1 });
    expect(cluster.inputs.nodeConfig).toBeUndefined();
  });

  it("says whether the cluster may be deleted (pulumi-gcp#1394, #1253)", () => {
    const { inputs, protect } = recordingOf(stack).one(CLUSTER);
    expect(inputs.deletionProtection).toBe(stack === "prod");
    expect(protect ?? false).toBe(stack === "prod");
  });

  it("names the project on the provider and on everything that has one (pulumi-gcp#1435)", () => {
    const recording = recordingOf(stack);
    expect(recording.one("pulumi:providers:gcp").inputs.project).toBe(PROJECT);
    const without = [
      "gcp:storage/bucketObject:BucketObject",
      "gcp:storage/bucketIAMMember:BucketIAMMember",
      "gcp:billing/budget:Budget",
    ];
    for (const { name, inputs } of recording.all.filter(
      ({ type }) => type.startsWith("gcp:") && !without.includes(type),
    )) {
      expect(inputs.project, name).toBe(PROJECT);
    }
  });

  it("leaves the number of nodes to the autoscaler (pulumi-gcp#412, terraform-provider-google#6901)", () => {
    for (const pool of recordingOf(stack).ofType(POOL)) {
      expect(pool.inputs.nodeCount, pool.name).toBeUndefined();
      expect(pool.ignoreChanges, pool.name).toContain("initialNodeCount");
      expect(Number(input(pool, "autoscaling.totalMaxNodeCount"))).toBeGreaterThan(0);
    }
  });

  it("declares the GPU taint once (terraform-provider-google#7928)", () => {
    const taints = list(recordingOf(stack).one(POOL, "gpu-pool"), "nodeConfig.taints");
    expect(taints).toEqual([{ key: "nvidia.com/gpu", value: "present", effect: "NO_SCHEDULE" }]);
  });

  it("makes the GPU pool after the system pool (terraform-google-kubernetes-engine#703)", () => {
    const recording = recordingOf(stack);
    const [gpu, load, system] = ["gpu-pool", "load-pool", "system-pool"].map((name) =>
      recording.one(POOL, name),
    ) as [Registration, Registration, Registration];
    expect(recording.comesAfter(gpu, system)).toBe(true);
    expect(recording.comesAfter(load, system)).toBe(true);
  });

  it("puts GPU nodes only where the GPU is (terraform-provider-google#6287)", () => {
    const zones = list(recordingOf(stack).one(POOL, "gpu-pool"), "nodeLocations") as unknown as string[];
    expect(zones.length).toBeGreaterThan(0);
    for (const zone of zones) expect(acceleratorZones("nvidia-tesla-t4", "us-central1", [])).toContain(zone);
  });

  it("upgrades GPU nodes without a spare GPU (LLMKube#192)", () => {
    expect(json(recordingOf(stack).one(POOL, "gpu-pool"), "upgradeSettings")).toMatchObject({
      maxSurge: 0,
      maxUnavailable: 1,
    });
  });

  it("has nothing that leaves network endpoint groups behind (accelerated-platforms#193)", () => {
    const recording = recordingOf(stack);
    expect(recording.all.filter(({ type }) => /:(Ingress|Gateway)$/.test(type))).toEqual([]);
    expect(input(recording.one(CLUSTER), "addonsConfig.httpLoadBalancing.disabled")).toBe(true);
    expect(
      seconds(recording.one("gcp:compute/network:Network").customTimeouts.delete),
    ).toBeGreaterThanOrEqual(600);
  });

  it("gives slow resources time", () => {
    const recording = recordingOf(stack);
    for (const { name, customTimeouts } of [recording.one(CLUSTER), ...recording.ofType(POOL)]) {
      for (const duration of [customTimeouts.create, customTimeouts.delete])
        expect(seconds(duration), name).toBeGreaterThanOrEqual(1800);
    }
  });

  it("uses APIs after they are enabled, and leaves them enabled", () => {
    const recording = recordingOf(stack);
    const services = recording.ofType("gcp:projects/service:Service");
    for (const service of services) expect(service.inputs.disableOnDestroy, service.name).toBe(false);
    const made = recording.all.filter(
      ({ type }) => type.startsWith("gcp:") && !type.startsWith("gcp:projects/service"),
    );
    for (const registration of made) {
      expect(
        services.some((service) => recording.comesAfter(registration, service)),
        registration.name,
      ).toBe(true);
    }
  });
});

describe.each(["daemonset", "gke-default", "gke-latest"])("driver mode %s", (driverMode) => {
  let recording: Recording;
  beforeAll(async () => {
    recording = await up("dev", { driverMode });
  });
  const versions: Record<string, string> = {
    daemonset: "INSTALLATION_DISABLED",
    "gke-default": "DEFAULT",
    "gke-latest": "LATEST",
  };

  it("is always written out (magic-modules#11152, k8s-config-connector#2985)", () => {
    const [accelerator] = list(recording.one(POOL, "gpu-pool"), "nodeConfig.guestAccelerators");
    expect(accelerator).toMatchObject({
      gpuDriverInstallationConfig: { gpuDriverVersion: versions[driverMode] },
    });
  });

  it("runs exactly one installer: two mask each other", () => {
    expect(recording.ofType("kubernetes:apps/v1:DaemonSet")).toHaveLength(driverMode === "daemonset" ? 1 : 0);
  });

  it("starts Triton after the driver", () => {
    const driver =
      driverMode === "daemonset"
        ? recording.one("kubernetes:apps/v1:DaemonSet")
        : recording.one(POOL, "gpu-pool");
    expect(recording.comesAfter(recording.one(DEPLOYMENT, "triton"), driver)).toBe(true);
  });
});

describe.each(STACKS)("%s: cluster access", (stack) => {
  it("identifies the cluster by its id, so that a changed kubeconfig replaces nothing (pulumi-kubernetes#1148, #2745, #4019, pulumi#4326)", () => {
    const recording = recordingOf(stack);
    const provider = recording.one("pulumi:providers:kubernetes");
    expect(provider.inputs.clusterIdentifier).toBe(recording.one(CLUSTER).id);
    expect(provider.propertyDependencies.clusterIdentifier).toEqual([recording.one(CLUSTER).urn]);
    expect(provider.inputs.deleteUnreachable).not.toBe("true");
  });

  it("stores no token (pulumi#4981, pulumi-digitalocean#77, pulumi-azure-native#2895)", () => {
    const kubeconfig = JSON.parse(
      text(recordingOf(stack).one("pulumi:providers:kubernetes"), "kubeconfig"),
    ) as { users: { user: object }[] };
    expect(kubeconfig.users.map(({ user }) => Object.keys(user))).toEqual([["exec"]]);
    expect(recordingOf(stack).invokes.map(({ token }) => token)).not.toContain(
      "gcp:organizations/getClientConfig:getClientConfig",
    );
  });

  it("uses no Helm release, which could hang half-installed (pulumi-kubernetes#2054)", () => {
    expect(recordingOf(stack).all.filter(({ type }) => type.startsWith("kubernetes:helm"))).toEqual([]);
  });
});

it("marks the token secret where one is asked for", async () => {
  for (const run of [up, preview]) {
    const recording = await run("dev", { kubeconfigAuth: "token" });
    const { inputs } = recording.one("pulumi:providers:kubernetes");
    if (run === up) expect(secretPaths(inputs)).toEqual(["kubeconfig"]);
    for (const { inputs: visible } of recording.all)
      expect(clearTexts(visible).join("\n")).not.toContain("token-of-this-run");
  }
});

describe.each(STACKS)("%s: Triton", (stack) => {
  const triton = (): Registration => recordingOf(stack).one(DEPLOYMENT, "triton");
  const container = (): Json => {
    const [only, ...others] = list(triton(), `${POD}.containers`);
    expect(others).toEqual([]);
    return only ?? {};
  };
  const probe = (
    name: string,
  ): { httpGet: { path: string }; periodSeconds: number; failureThreshold: number } =>
    container()[name] as never;
  const loadBudgetS = 600;

  it("has time to load before it is killed (server#6469, server PR #5257)", () => {
    const { httpGet, periodSeconds, failureThreshold } = probe("startupProbe");
    expect(httpGet.path).toBe("/v2/health/ready");
    // One restart while the metadata server does not answer yet (google-auth-library-python#604) fits in as well.
    expect(periodSeconds * failureThreshold).toBeGreaterThanOrEqual(loadBudgetS + 30);
  });

  it("is not restarted while a sweep exchanges models (server#7014)", () => {
    expect(probe("livenessProbe").httpGet.path).toBe("/v2/health/live");
    expect(probe("readinessProbe").httpGet.path).toBe("/v2/health/ready");
  });

  it("is awaited longer than node, driver, image and model may take (pulumi-kubernetes#712, #1628, #2662)", () => {
    const { periodSeconds, failureThreshold } = probe("startupProbe");
    const { create, update } = triton().customTimeouts;
    const deadlineS = Number(input(triton(), "spec.progressDeadlineSeconds"));
    // 10 minutes for a node with its driver, 5 for the image.
    expect(deadlineS).toBeGreaterThanOrEqual(600 + 300 + loadBudgetS);
    expect(deadlineS).toBeGreaterThan(periodSeconds * failureThreshold);
    for (const timeout of [create, update]) expect(seconds(timeout)).toBeGreaterThan(deadlineS);
  });

  it("finishes requests before it ends: preStop, drain and grace add up", () => {
    const delayS = Number(at(input(triton(), `${POD}.containers`), "[0].lifecycle.preStop.exec.command[1]"));
    const drainS = Number(/--exit-timeout-secs=(\d+)/.exec((container().args as string[]).join(" "))?.[1]);
    expect(delayS).toBeGreaterThan(0);
    expect(Number(input(triton(), `${POD}.terminationGracePeriodSeconds`))).toBeGreaterThan(delayS + drainS);
  });

  it("counts /dev/shm in its memory (kserve#1937, server#3504, #3678), and asks for all of it (kserve#2361)", () => {
    const gi = (quantity: string): number =>
      Number(/^(\d+)(Mi|Gi)$/.exec(quantity)?.[1]) / (quantity.endsWith("Mi") ? 1024 : 1);
    const shm = list(triton(), `${POD}.volumes`).find(({ name }) => name === "shm")?.emptyDir as {
      medium: string;
      sizeLimit: string;
    };
    expect(shm.medium).toBe("Memory");
    expect(container().volumeMounts).toContainEqual({ name: "shm", mountPath: "/dev/shm" });
    const { limits, requests } = container().resources as {
      limits: Record<string, string>;
      requests: Record<string, string>;
    };
    expect(limits.memory).toBe(requests.memory);
    // Models and server, shared memory, pinned pool.
    expect(gi(limits.memory ?? "")).toBeGreaterThanOrEqual(16 + gi(shm.sizeLimit) + 0.25);
  });

  it("has room for its copy of the repository", () => {
    const copy = list(triton(), `${POD}.volumes`).find(({ name }) => name === "repository")?.emptyDir as {
      sizeLimit: string;
    };
    const { limits } = container().resources as { limits: Record<string, string> };
    expect(parseInt(limits["ephemeral-storage"] ?? "", 10)).toBeGreaterThanOrEqual(
      parseInt(copy.sizeLimit, 10),
    );
  });

  it("never needs a GPU more than there are for a rollout (LLMKube#192, bayes-platform#776)", () => {
    expect(json(triton(), "spec.strategy")).toEqual({
      ...{ type: "RollingUpdate", rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } },
    });
    expect(Number(input(triton(), "spec.replicas"))).toBe(stack === "dev" ? 1 : 2);
    expect(recordingOf(stack).ofType("kubernetes:policy/v1:PodDisruptionBudget")).toHaveLength(
      stack === "dev" ? 0 : 1,
    );
  });

  // What Pulumi waits for is not to be met by what was there before; seen with both on a real control plane.
  it("has no rollout that begins as a complete one", () => {
    for (const deployment of recordingOf(stack).ofType(DEPLOYMENT)) {
      const { strategy, revisionHistoryLimit } = at(deployment.inputs, "spec") as {
        strategy?: { type: string };
        revisionHistoryLimit?: number;
      };
      expect([deployment.name, strategy?.type ?? "RollingUpdate", revisionHistoryLimit]).toEqual([
        ...[deployment.name, "RollingUpdate", 0],
      ]);
    }
  });

  it("can be reached pod by pod (server#6177)", () => {
    const services = recordingOf(stack)
      .ofType(SERVICE)
      .filter((service) => at(service.inputs, "spec.selector.app") === "triton");
    expect(services.map((service) => input(service, "spec.clusterIP") ?? "own").sort()).toEqual([
      "None",
      "own",
    ]);
    for (const service of services) {
      expect(list(service, "spec.ports").map(({ port }) => port)).toEqual([8000, 8001]);
    }
  });

  it("loads the configured variant alone", () => {
    const args = container().args as string[];
    const variant = stack === "dev" ? "tftrt_fp16" : "tftrt_int8_bs16_count4";
    expect(args.filter((arg) => arg.startsWith("--load-model="))).toEqual([`--load-model=${variant}`]);
    expect(args).toContain("--model-control-mode=explicit");
  });
});

describe.each(STACKS)("%s: GPUs", (stack) => {
  it("gives every pod of the GPU pool a GPU, and no other (container-engine-accelerators#139)", () => {
    for (const workload of workloads(recordingOf(stack)).filter(({ type }) => !type.endsWith("DaemonSet"))) {
      const onGpu = at(workload.inputs, `${POD}.nodeSelector["triton-slo/pool"]`) === "gpu";
      const gpus = list(workload, `${POD}.containers`).map(
        ({ resources }) => (resources as { limits?: Json }).limits?.["nvidia.com/gpu"],
      );
      expect(
        gpus.filter((count) => count !== undefined),
        workload.name,
      ).toEqual(onGpu ? ["1"] : []);
      const tolerates = list(workload, `${POD}.tolerations`).some(({ key }) => key === "nvidia.com/gpu");
      expect(tolerates, workload.name).toBe(onGpu);
    }
  });

  it("never lets load share a node with Triton", () => {
    const worker = recordingOf(stack).one(DEPLOYMENT, "load-workers");
    expect(at(worker.inputs, `${POD}.nodeSelector["triton-slo/pool"]`)).toBe("load");
    const [rule] = list(
      worker,
      `${POD}.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution`,
    );
    expect(rule).toMatchObject({
      topologyKey: "kubernetes.io/hostname",
      labelSelector: { matchLabels: { app: "triton" } },
    });
  });

  it("pins every pod but the driver's to a pool", () => {
    const pools = recordingOf(stack)
      .ofType(POOL)
      .map((pool) => at(pool.inputs, 'nodeConfig.labels["triton-slo/pool"]'));
    for (const workload of workloads(recordingOf(stack)).filter(({ type }) => !type.endsWith("DaemonSet"))) {
      expect(pools, workload.name).toContain(at(workload.inputs, `${POD}.nodeSelector["triton-slo/pool"]`));
    }
  });
});

describe("conversion", () => {
  const vm = (): Registration => recordingOf("dev").one(INSTANCE);

  it("builds engines on the GPU that serves them (TensorRT#3130)", () => {
    const [built] = list(vm(), "guestAccelerators");
    const [served] = list(recordingOf("dev").one(POOL, "gpu-pool"), "nodeConfig.guestAccelerators");
    expect(built?.type).toBe(served?.type);
  });

  it("uses images of one month for building and serving (server#317, #1786, serving#4018, server PR #8068)", () => {
    const [server] = list(recordingOf("dev").one(DEPLOYMENT, "triton"), `${POD}.containers`);
    const served = /tritonserver:(\d\d\.\d\d)-py3$/.exec(server?.image as string)?.[1];
    const built = /IMAGE=nvcr\.io\/nvidia\/tensorflow:(\d\d\.\d\d)-tf2-py3$/m.exec(
      text(vm(), 'metadata["startup-script"]'),
    )?.[1];
    expect(served).toBe("25.02");
    expect(built).toBe(served);
  });

  it("can be stopped for maintenance and ends by itself (cluster-toolkit#460, karpenter-gcp#167, devpod#973)", () => {
    expect(json(vm(), "scheduling")).toMatchObject({
      onHostMaintenance: "TERMINATE",
      automaticRestart: false,
      maxRunDuration: { seconds: 6 * 3600 },
    });
    expect(text(vm(), 'metadata["startup-script"]')).toContain("shutdown -h now");
  });

  it("keeps its script where an edit does not replace the machine", () => {
    expect(vm().inputs.metadataStartupScript).toBeUndefined();
  });

  it("has no public address, and reaches what it needs through NAT", () => {
    for (const nic of list(vm(), "networkInterfaces")) expect(nic.accessConfigs).toBeUndefined();
    expect(recordingOf("dev").ofType("gcp:compute/routerNat:RouterNat")).toHaveLength(1);
  });
});

describe.each(STACKS)("%s: the way from Triton to its models (server#6344, #5537)", (stack) => {
  const grants = (): Registration[] =>
    recordingOf(stack)
      .ofType("gcp:storage/bucketIAMMember:BucketIAMMember")
      .filter(({ inputs }) => (inputs.member as string).startsWith("principal://"));

  it("grants the pod's own identity, by the names that the pod has", () => {
    const triton = recordingOf(stack).one(DEPLOYMENT, "triton");
    const pool = `projects/${PROJECT_NUMBER}/locations/global/workloadIdentityPools/${PROJECT}.svc.id.goog`;
    const member = `principal://iam.googleapis.com/${pool}/subject/ns/${text(triton, "metadata.namespace")}/sa/${text(triton, `${POD}.serviceAccountName`)}`;
    expect(grants().map(({ inputs }) => inputs.member)).toEqual([member, member]);
  });

  it("grants listing and the bucket's metadata, on the bucket that is served", () => {
    const bucket = recordingOf(stack).one("gcp:storage/bucket:Bucket").outputs.name;
    expect(
      grants()
        .map(({ inputs }) => inputs.role)
        .sort(),
    ).toEqual(["roles/storage.legacyBucketReader", "roles/storage.objectViewer"]);
    for (const { inputs } of grants()) expect(inputs.bucket).toBe(bucket);
    const [container] = list(recordingOf(stack).one(DEPLOYMENT, "triton"), `${POD}.containers`);
    const values = new Map(((container?.env ?? []) as Json[]).map(({ name, value }) => [name, value]));
    // $(NAME) in arguments is the container's environment variable NAME, as Kubernetes expands it.
    const args = (container?.args as string[]).map((arg) =>
      arg.replace(/\$\((\w+)\)/g, (_all, name: string) => values.get(name) as string),
    );
    expect(args).toContain(`--model-repository=gs://${bucket as string}/models`);
  });

  it("starts Triton after the grants and after the configuration is uploaded", () => {
    const recording = recordingOf(stack);
    const triton = recording.one(DEPLOYMENT, "triton");
    const needed = [
      ...grants(),
      ...recording
        .ofType("gcp:storage/bucketObject:BucketObject")
        .filter(({ name }) => name.endsWith("config.pbtxt")),
    ];
    expect(needed.length).toBeGreaterThan(7);
    for (const registration of needed)
      expect(recording.comesAfter(triton, registration), registration.name).toBe(true);
  });

  it("lets nodes answer for the pod's identity", () => {
    for (const pool of recordingOf(stack).ofType(POOL))
      expect(input(pool, "nodeConfig.workloadMetadataConfig.mode")).toBe("GKE_METADATA");
    expect(input(recordingOf(stack).one(CLUSTER), "workloadIdentityConfig.workloadPool")).toBe(
      `${PROJECT}.svc.id.goog`,
    );
    expect(input(recordingOf(stack).one(DEPLOYMENT, "triton"), `${POD}.hostNetwork`)).toBeUndefined();
  });

  it("mixes in no other credentials (server#5039, core PR #148, #164)", () => {
    for (const workload of workloads(recordingOf(stack))) {
      const names = list(workload, `${POD}.containers`).flatMap(({ env }) =>
        ((env ?? []) as Json[]).map(({ name }) => name),
      );
      expect(names, workload.name).not.toContain("GOOGLE_APPLICATION_CREDENTIALS");
    }
    for (const tritonVersion of ["22.08", "22.12", "23.02"]) {
      expect(() => parseConfig({ project: PROJECT, tritonVersion })).toThrow(/Workload Identity/);
    }
  });
});

describe("models that are not there yet", () => {
  it("end the up with what to do, not with a server that restarts for half an hour", async () => {
    const none = {
      "gcp:storage/getBucketObjects:getBucketObjects": () => ({ id: "none", bucketObjects: [] }),
    };
    await expect(up("dev", {}, { invokes: none, timeoutS: 15 })).rejects.toThrow(
      /tftrt_fp16\/1\/ is empty: convert the model first/,
    );
    const asleep = await up("dev", { asleep: true }, { invokes: none });
    expect(input(asleep.one(DEPLOYMENT, "triton"), "spec.replicas")).toBe(0);
  });
});

describe.each(STACKS)("%s: secrets", (stack) => {
  it("are generated, marked, and nowhere in clear", () => {
    const recording = recordingOf(stack);
    const passwords = recording.ofType("random:index/randomPassword:RandomPassword");
    expect(passwords.map(({ name }) => name).sort()).toEqual(["grafana-password", "load-token"]);
    const values = passwords.map(({ outputs }) => plain(outputs.result) as string);
    for (const { urn, inputs, outputs } of recording.all) {
      const visible = [...clearTexts(inputs), ...clearTexts(outputs)].join("\n");
      for (const value of values) expect(visible, urn).not.toContain(value);
    }
    for (const value of values) expect(clearTexts(recording.stackOutputs).join("\n")).not.toContain(value);
  });

  it("reach pods from Secrets alone", () => {
    for (const secret of recordingOf(stack).ofType("kubernetes:core/v1:Secret"))
      expect(secretPaths(secret.inputs).length).toBeGreaterThan(0);
  });
});

describe.each(STACKS)("%s: outputs", (stack) => {
  it("are what the tune command reads", () => {
    const outputs = parseStackOutputs(plain(recordingOf(stack).stackOutputs));
    expect(outputs.environment).toBe(stack);
    expect(outputs.cluster.name).toBe(recordingOf(stack).one(CLUSTER).outputs.name);
  });

  it("name Services and Deployments that exist", () => {
    const recording = recordingOf(stack);
    const { triton, loadGenerator, monitoring } = parseStackOutputs(plain(recording.stackOutputs));
    const has = (type: string, namespace: string, name: string): boolean =>
      recording
        .ofType(type)
        .some(
          (item) =>
            at(item.inputs, "metadata.namespace") === namespace && at(item.inputs, "metadata.name") === name,
        );
    expect(has(DEPLOYMENT, triton.namespace, triton.deployment)).toBe(true);
    for (const service of [triton.service, triton.headlessService])
      expect(has(SERVICE, triton.namespace, service)).toBe(true);
    expect(has(SERVICE, loadGenerator?.namespace ?? "", loadGenerator?.controllerService ?? "")).toBe(true);
    expect(has(SERVICE, monitoring?.namespace ?? "", monitoring?.prometheusService ?? "")).toBe(true);
    for (const { namespace, name } of [loadGenerator?.token, monitoring?.grafanaPassword].flatMap(
      (key) => key ?? [],
    )) {
      expect(has("kubernetes:core/v1:Secret", namespace, name)).toBe(true);
    }
  });
});

describe.each(STACKS)("%s: what outlives what", (stack) => {
  const ownsOutside = (type: string): boolean =>
    /:(StatefulSet|PersistentVolume|PersistentVolumeClaim)$/.test(type);

  it("protects in prod what holds data, and nothing in dev", () => {
    const guarded = recordingOf(stack)
      .all.filter(({ protect }) => protect)
      .map(({ name }) => name);
    expect(guarded.sort()).toEqual(stack === "prod" ? ["cluster", "models", "prometheus-disk"] : []);
    expect(recordingOf(stack).one("gcp:storage/bucket:Bucket").inputs.forceDestroy).toBe(stack === "dev");
  });

  it("drops in-cluster objects with the cluster, unless they hold something outside it", () => {
    const recording = recordingOf(stack);
    const cluster = recording.one(CLUSTER);
    for (const object of recording.all.filter(({ type }) => type.startsWith("kubernetes:"))) {
      expect(object.deletedWith, object.name).toBe(ownsOutside(object.type) ? "" : cluster.urn);
    }
  });

  it("deletes and awaits volumes before nodes and cluster, and their disk after the nodes", () => {
    const recording = recordingOf(stack);
    const [claim, volume, set] = [
      "kubernetes:core/v1:PersistentVolumeClaim",
      "kubernetes:core/v1:PersistentVolume",
      "kubernetes:apps/v1:StatefulSet",
    ].map((type) => recording.one(type)) as [Registration, Registration, Registration];
    const disk = recording.one("gcp:compute/disk:Disk");
    const pool = recording.one(POOL, "system-pool");
    // comesAfter: made later, deleted earlier.
    expect(recording.comesAfter(set, claim)).toBe(true);
    expect(recording.comesAfter(claim, volume)).toBe(true);
    for (const object of [set, claim, volume]) {
      expect(recording.comesAfter(object, recording.one(CLUSTER)), object.name).toBe(true);
      expect(recording.comesAfter(object, disk), object.name).toBe(true);
    }
    expect(recording.comesAfter(set, pool)).toBe(true);
    expect(recording.comesAfter(pool, disk)).toBe(true);
    expect(text(volume, "spec.persistentVolumeReclaimPolicy")).toBe("Retain");
    expect(at(set.inputs, "spec.volumeClaimTemplates")).toBeUndefined();
  });

  it("deletes nodes before the cluster, and the cluster before its network", () => {
    const recording = recordingOf(stack);
    const cluster = recording.one(CLUSTER);
    for (const pool of recording.ofType(POOL)) expect(recording.comesAfter(pool, cluster)).toBe(true);
    for (const type of ["gcp:compute/subnetwork:Subnetwork", "gcp:compute/network:Network"]) {
      expect(recording.comesAfter(cluster, recording.one(type))).toBe(true);
    }
  });

  it("keeps nothing that a destroy has dropped", () => {
    for (const { retainOnDelete, name } of recordingOf(stack).all)
      expect(retainOnDelete ?? false, name).toBe(false);
  });
});

describe("existing things", () => {
  it("an adopted cluster keeps its objects' deletion to Pulumi, and is not managed", async () => {
    const identity = { workloadIdentityConfigs: [{ workloadPool: `${PROJECT}.svc.id.goog` }] };
    const adopted = {
      "gcp:container/getCluster:getCluster": () => ({
        ...identity,
        id: "projects/test-project/locations/us-central1-a/clusters/old",
        name: "old",
        endpoint: "203.0.113.10",
        masterAuths: [{ clusterCaCertificate: "Q0E=" }],
        controlPlaneEndpointsConfigs: [
          { dnsEndpointConfigs: [{ endpoint: "gke-old.us-central1.gke.goog" }] },
        ],
      }),
    };
    const recording = await up("dev", { existingCluster: "old", conversionVm: false }, { invokes: adopted });
    expect(recording.ofType(CLUSTER)).toEqual([]);
    expect(recording.ofType("gcp:compute/network:Network")).toEqual([]);
    for (const object of recording.all.filter(({ type }) => type.startsWith("kubernetes:")))
      expect(object.deletedWith, object.name).toBe("");
    for (const pool of recording.ofType(POOL)) expect(pool.inputs.cluster).toBe("old");
  });
});

it("no text in any input is a placeholder", () => {
  for (const { urn, inputs } of recordingOf("dev").all) {
    walk(inputs, (path, value) => {
      if (typeof value === "string")
        expect(value, `${urn} ${path}`).not.toMatch(
          /\bundefined\b|\bNaN\b|\[object Object\]|Calling \[toString\]/,
        );
    });
  }
});
