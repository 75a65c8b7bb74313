/** The components' pure parts: what is written into manifests and policies, without Pulumi's engine. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { driverVersion, gpuTaint, withGpuTaint, type DriverMode } from "../../components/gpu-node-pool";
import { images, pinned } from "../../components/images";
import { kubeconfig } from "../../components/kubeconfig";
import { controllerPod, loadTaint, workerPod } from "../../components/load-generator-pods";
import { allow, allowDns, denyAll, from, pods, to, toGoogleApis } from "../../components/network-policies";
import type { Taint } from "../../components/node-pool";
import { readerRoles, workloadPrincipal, writerRoles } from "../../components/repository-grants";
import { subject } from "../../components/sweep-access";
import { tritonArguments, tritonPod, type TritonPodArgs } from "../../components/triton-pod";
import {
  exitTimeoutS,
  preStopS,
  smallestReadinessBudgetS,
  terminationGraceS,
  tritonProbes,
} from "../../components/triton-startup";
import { imageProblem } from "../../stack/versions";

/** Manifest parts as plain data: nothing here is an output. */
type Plain = Record<string, unknown>;
const plain = (value: unknown): Plain => JSON.parse(JSON.stringify(value)) as Plain;
const podSpec = (template: unknown) =>
  plain(template).spec as {
    containers: [
      {
        resources: { requests: Record<string, string>; limits: Record<string, string> };
        args: string[];
      } & Plain,
    ];
    volumes: Plain[];
  } & Plain;

const triton: TritonPodArgs = {
  image: "nvcr.io/nvidia/tritonserver:25.02-py3",
  repositoryUrl: "gs://models-1/models",
  modelControlMode: "explicit",
  modelName: "tftrt_fp16",
  cpu: 6,
  memoryGi: 16,
  shmGi: 2,
  repositoryCopyGi: 20,
  modelLoadBudgetS: 600,
  metricsIntervalMs: 1000,
  grpcThreads: 8,
  serviceAccountName: "triton",
  configHash: "abc",
};

describe("GPU nodes", () => {
  it.each<[DriverMode, string]>([
    ["daemonset", "INSTALLATION_DISABLED"],
    ["gke-default", "DEFAULT"],
    ["gke-latest", "LATEST"],
  ])("driver mode %s is always written as %s", (mode, version) => {
    expect(driverVersion(mode)).toBe(version);
  });

  // terraform-provider-google#7928
  it("carry the GPU taint exactly once, whatever taints are given", () => {
    const taint = fc.record({
      key: fc.constantFrom("nvidia.com/gpu", "team", "x"),
      value: fc.constantFrom("present", "true"),
      effect: fc.constantFrom<Taint["effect"]>("NO_SCHEDULE", "NO_EXECUTE"),
    });
    fc.assert(
      fc.property(fc.array(taint), (taints) => {
        const result = withGpuTaint(taints);
        expect(result.filter(({ key }) => key === gpuTaint.key)).toHaveLength(1);
        expect(result.filter(({ key }) => key !== gpuTaint.key)).toEqual(
          taints.filter(({ key }) => key !== gpuTaint.key),
        );
      }),
    );
  });
});

describe("Triton's start and end", () => {
  // triton-inference-server/server#6469
  it("gives the startup probe the whole load budget, and liveness no say in readiness (#7014)", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 10_000 }), (modelLoadBudgetS) => {
        const { startup, readiness, liveness } = tritonProbes({ modelLoadBudgetS, httpPort: 8000 });
        const patience = Number(startup.periodSeconds) * Number(startup.failureThreshold);
        expect(patience).toBeGreaterThanOrEqual(modelLoadBudgetS);
        expect(patience).toBeLessThan(modelLoadBudgetS + 60);
        expect(plain(startup).httpGet).toEqual({ path: "/v2/health/ready", port: 8000 });
        expect(plain(readiness).httpGet).toEqual({ path: "/v2/health/ready", port: 8000 });
        expect(plain(liveness).httpGet).toEqual({ path: "/v2/health/live", port: 8000 });
      }),
    );
  });

  it("waits longer for a rollout than everything that may take long together", () => {
    expect(smallestReadinessBudgetS(600)).toBe(1500);
  });

  it("leaves time to leave the Services, to drain, and to end", () => {
    expect(terminationGraceS).toBeGreaterThan(preStopS + exitTimeoutS);
    const { containers } = podSpec(tritonPod(triton));
    expect(containers[0].args).toContain(`--exit-timeout-secs=${exitTimeoutS}`);
    expect(containers[0].lifecycle).toEqual({ preStop: { exec: { command: ["sleep", String(preStopS)] } } });
  });
});

describe("Triton's pod", () => {
  const spec = podSpec(tritonPod(triton));
  const [container] = spec.containers;

  it("loads exactly the one variant", () => {
    expect(container.args.filter((arg) => arg.startsWith("--load-model"))).toEqual([
      "--load-model=tftrt_fp16",
    ]);
    expect(container.args).toContain("--model-control-mode=explicit");
    for (const mode of ["poll", "none"] as const) {
      const args = tritonArguments({ ...triton, modelControlMode: mode });
      expect(args.filter((arg) => arg.startsWith("--load-model"))).toEqual([]);
    }
  });

  // container-engine-accelerators#139
  it("has one whole GPU as limit, and tolerates the taint", () => {
    expect(container.resources.limits["nvidia.com/gpu"]).toBe("1");
    expect(spec.tolerations).toEqual([{ key: "nvidia.com/gpu", operator: "Exists", effect: "NoSchedule" }]);
  });

  // kserve#1937, #2361
  it("counts /dev/shm and the pinned pool in its memory", () => {
    const memoryMi = (16 + 2) * 1024 + 256;
    expect(container.resources.limits.memory).toBe(`${memoryMi}Mi`);
    expect(container.resources.requests.memory).toBe(`${memoryMi}Mi`);
    expect(spec.volumes).toContainEqual({ name: "shm", emptyDir: { medium: "Memory", sizeLimit: "2Gi" } });
    expect(container.volumeMounts).toContainEqual({ name: "shm", mountPath: "/dev/shm" });
  });

  it("has disk for the copy of its models, and keeps it there", () => {
    expect(container.resources.limits["ephemeral-storage"]).toBe("22Gi");
    const directory = (container.env as { name: string; value: string }[]).find(
      ({ name }) => name === "TRITON_GCS_MOUNT_DIRECTORY",
    );
    expect(container.volumeMounts).toContainEqual({ name: "repository", mountPath: directory?.value });
  });

  // triton-inference-server/server#5039: a key file would be preferred to Workload Identity.
  it("has no Google credentials but its identity", () => {
    expect(JSON.stringify(spec)).not.toContain("GOOGLE_APPLICATION_CREDENTIALS");
    expect(spec.serviceAccountName).toBe("triton");
    expect(spec.hostNetwork).toBeUndefined();
  });
});

describe("load generator's pods", () => {
  const args = {
    image: "x.io/load:1",
    serviceAccountName: "load-generator",
    tokenSecretName: "t",
    tokenSecretKey: "token",
  };
  const worker = podSpec(
    workerPod({ ...args, controllerAddress: "c:8081", cpu: 2, tritonNamespace: "triton" }),
  );

  it("get whole cores of their own: the class Guaranteed", () => {
    const { requests, limits } = worker.containers[0].resources;
    expect(requests).toEqual(limits);
    expect(limits.cpu).toMatch(/^\d+$/);
  });

  it("wait awake only when told so, and only with a core for that", () => {
    const awake = (busyWaitMs: number, cpu: number): string =>
      podSpec(
        workerPod({ ...args, controllerAddress: "c:8081", cpu, busyWaitMs, tritonNamespace: "triton" }),
      ).containers[0].args.join(" ");
    expect(worker.containers[0].args.join(" ")).not.toContain("busy");
    expect(awake(0, 1)).toBe(worker.containers[0].args.join(" "));
    expect(awake(2, 2)).toMatch(/ --busy-wait-ms 2$/);
    for (const cpu of [1, 2.5])
      expect(() => awake(2, cpu)).toThrow(/give it 2 or more whole cores, not (1|2\.5), or busyWaitMs 0/);
  });

  it("stay off Triton's nodes and in its zone", () => {
    const { podAntiAffinity, podAffinity } = worker.affinity as Record<string, Record<string, Plain[]>>;
    const rule = "requiredDuringSchedulingIgnoredDuringExecution";
    const selector = { labelSelector: { matchLabels: { app: "triton" } } };
    expect(podAntiAffinity?.[rule]).toEqual([
      expect.objectContaining({ ...selector, topologyKey: "kubernetes.io/hostname" }),
    ]);
    expect(podAffinity?.[rule]).toEqual([
      expect.objectContaining({ ...selector, topologyKey: "topology.kubernetes.io/zone" }),
    ]);
    expect(worker.tolerations).toEqual([
      { key: loadTaint.key, operator: "Equal", value: loadTaint.value, effect: "NoSchedule" },
    ]);
  });

  it("get the token from the secret, never as text", () => {
    for (const spec of [
      worker,
      podSpec(
        controllerPod({ ...args, sloBoundMs: 100, tritonPods: "triton-pods.serving.svc", maxRatePerS: 5000 }),
      ),
    ]) {
      expect(spec.containers[0].env).toContainEqual({
        name: "LOADGEN_TOKEN",
        valueFrom: { secretKeyRef: { name: "t", key: "token" } },
      });
      expect(spec.automountServiceAccountToken).toBe(false);
    }
  });
});

it("the controller loads the stack's servers and nothing else, and keeps its history over a restart of the container", () => {
  const common = { image: "x", serviceAccountName: "s", tokenSecretName: "t", tokenSecretKey: "k" };
  const pod = podSpec(
    controllerPod({ ...common, sloBoundMs: 100, tritonPods: "triton-pods.serving.svc", maxRatePerS: 5000 }),
  );
  const words = pod.containers[0].args.join(" ");
  expect(words).toContain("--target dns:///triton-pods.serving.svc:8001");
  expect(words).toContain("--metrics-url http://triton-pods.serving.svc:8002/metrics");
  expect(words).toContain("--max-rate 5000 --max-in-flight 100000 --state-dir /tmp/state");
  expect(pod.volumes).toHaveLength(1);
  const kept = podSpec(
    controllerPod({
      ...common,
      ...{ sloBoundMs: 100, tritonPods: "triton-pods.serving.svc", maxRatePerS: 5000 },
      historyClaim: "load-history",
    }),
  );
  // A folder below: a disk's own has a lost+found.
  expect(kept.containers[0].args.join(" ")).toMatch(/--state-dir \/var\/lib\/load-history\/runs$/);
  expect(kept.containers[0].volumeMounts).toContainEqual({
    name: "history",
    mountPath: "/var/lib/load-history",
  });
  expect(kept.volumes).toContainEqual({
    name: "history",
    persistentVolumeClaim: { claimName: "load-history" },
  });
});

// Every pod in a namespace of level `restricted`.
describe.each([
  ["triton", tritonPod(triton)],
  [
    "worker",
    workerPod({
      image: "x",
      serviceAccountName: "s",
      tokenSecretName: "t",
      tokenSecretKey: "k",
      controllerAddress: "c:1",
      cpu: 1,
      tritonNamespace: "t",
    }),
  ],
  [
    "controller",
    controllerPod({
      ...{ image: "x", serviceAccountName: "s", tokenSecretName: "t", tokenSecretKey: "k" },
      sloBoundMs: 100,
      tritonPods: "triton-pods.serving.svc",
      maxRatePerS: 5000,
    }),
  ],
])("%s", (_name, template) => {
  const spec = podSpec(template);
  it("is restricted", () => {
    expect(spec.securityContext).toMatchObject({
      runAsNonRoot: true,
      seccompProfile: { type: "RuntimeDefault" },
    });
    for (const container of spec.containers) {
      expect(container.securityContext).toMatchObject({
        allowPrivilegeEscalation: false,
        capabilities: { drop: ["ALL"] },
      });
    }
    expect(spec.volumes.filter((volume) => "hostPath" in volume)).toEqual([]);
  });
});

describe("network policies", () => {
  it("deny everything but name resolution to start with", () => {
    expect(denyAll).toEqual({ podSelector: {}, policyTypes: ["Ingress", "Egress"] });
    expect(plain(allowDns).ingress).toBeUndefined();
    const ports = (plain(allowDns).egress as { ports: { port: number }[] }[]).flatMap((rule) =>
      rule.ports.map(({ port }) => port),
    );
    expect(new Set(ports)).toEqual(new Set([53]));
  });

  it("name both directions, so that what is not listed stays closed", () => {
    const policy = plain(allow({ app: "a" }, [from([pods("b")], [1])], [to([pods("c", { app: "d" })], [2])]));
    expect(policy).toEqual({
      podSelector: { matchLabels: { app: "a" } },
      policyTypes: ["Ingress", "Egress"],
      ingress: [
        {
          from: [
            {
              namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "b" } },
              podSelector: { matchLabels: {} },
            },
          ],
          ports: [{ protocol: "TCP", port: 1 }],
        },
      ],
      egress: [
        {
          to: [
            {
              namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "c" } },
              podSelector: { matchLabels: { app: "d" } },
            },
          ],
          ports: [{ protocol: "TCP", port: 2 }],
        },
      ],
    });
  });

  it("keep Google's APIs apart from private addresses", () => {
    expect(JSON.stringify(toGoogleApis)).toContain("10.0.0.0/8");
  });
});

describe("access", () => {
  it("to the bucket is bound to one Kubernetes service account", () => {
    expect(workloadPrincipal("123", "my-project", { namespace: "triton", name: "triton" })).toBe(
      "principal://iam.googleapis.com/projects/123/locations/global/workloadIdentityPools/my-project.svc.id.goog/subject/ns/triton/sa/triton",
    );
  });

  it("lets readers read and nobody administer", () => {
    expect(readerRoles).toEqual(["roles/storage.objectViewer", "roles/storage.legacyBucketReader"]);
    expect([...readerRoles, ...writerRoles].filter((role) => /admin|owner|editor/i.test(role))).toEqual([]);
  });

  it.each([
    ["user:a@b.c", "User", "a@b.c"],
    ["group:a@b.c", "Group", "a@b.c"],
    ["serviceAccount:a@b.iam.gserviceaccount.com", "User", "a@b.iam.gserviceaccount.com"],
  ])("of %s is given to the %s of that address", (member, kind, name) => {
    expect(subject(member)).toMatchObject({ kind, name });
  });
});

describe("kubeconfig", () => {
  const input = { name: "c", server: "https://c.gke.goog", caCertificate: "" };

  it("runs the plugin and holds no secret by default", () => {
    const config = JSON.parse(kubeconfig(input)) as {
      users: [{ user: Plain }];
      clusters: [{ cluster: Plain }];
    };
    expect(config.users[0].user).toMatchObject({ exec: { command: "gke-gcloud-auth-plugin" } });
    expect(config.users[0].user.token).toBeUndefined();
    expect(config.clusters[0].cluster).toEqual({ server: "https://c.gke.goog" });
  });

  it("carries a token and a CA when given", () => {
    const text = kubeconfig({ ...input, caCertificate: "Q0E=", token: "t-1" });
    const config = JSON.parse(text) as { users: [{ user: Plain }]; clusters: [{ cluster: Plain }] };
    expect(config.users[0].user).toEqual({ token: "t-1" });
    expect(config.clusters[0].cluster["certificate-authority-data"]).toBe("Q0E=");
  });
});

describe("images", () => {
  const all = Object.entries(images).map(
    ([name, image]) => [name, typeof image === "function" ? image("25.02") : image] as const,
  );

  it.each(all.filter(([name]) => name !== "cosGpuInstaller"))(
    "%s has an exact version: %s",
    (_name, image) => {
      expect(imageProblem(image)).toBeNull();
    },
  );

  it("are replaced by a digest where one is known", () => {
    expect(pinned("a:1", { "a:1": "sha256:x" })).toBe("a:1@sha256:x");
    expect(pinned("a:1", { "a:2": "sha256:x" })).toBe("a:1");
  });
});
