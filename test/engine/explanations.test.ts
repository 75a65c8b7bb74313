import type { Stack } from "@pulumi/pulumi/automation";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { setFate } from "./cluster/fate";
import { gpuNodes, kubectl, nodeOf, podsOf } from "./cluster/pods";
import { until } from "./cluster/program";
import { Environment } from "./environment";

/**
 * Each gate is shut in a running cluster, and the command a person would run says which one, with evidence and what to do.
 * Containers do not run here: their states come from kwok and their logs from the test.
 */
let environment: Environment;
let stack: Stack;
const undo: (() => Promise<void> | void)[] = [];

beforeAll(async () => {
  environment = await Environment.start();
  const config = {
    project: "test-project",
    asleep: "true",
    monitoring: "false",
    loadGenerator: "false",
    conversionVm: "false",
  };
  stack = await environment.stack(
    "dev",
    Object.fromEntries(Object.entries(config).map(([key, value]) => [`triton-slo-stack:${key}`, { value }])),
  );
  await environment.wake(stack);
});
afterAll(() => environment.close());
afterEach(async () => {
  for (const action of undo.splice(0).reverse()) await action();
  // A pod that was refused for long is asked again late: another one is not.
  let restartedAt = 0;
  await until(
    "Triton is ready again",
    async () => {
      if (Date.now() - restartedAt > 20_000) {
        await restartTriton();
        restartedAt = Date.now();
      }
      const pods = await podsOf(environment.api, "triton");
      return pods.length === 1 && pods[0]?.status?.phase === "Running";
    },
    120_000,
  );
});

async function restartTriton(): Promise<void> {
  for (const pod of await podsOf(environment.api, "triton")) {
    await environment.api.delete(`/api/v1/namespaces/triton/pods/${pod.metadata.name}?gracePeriodSeconds=0`);
  }
}

/** Takes the GPU machines away, as a preemption does. */
async function loseGpuNodes(): Promise<void> {
  for (const name of await gpuNodes(environment.api)) {
    const node = await environment.api.get(`/api/v1/nodes/${name}`);
    if (node) await environment.gke.removeNode(node);
  }
}

/** Runs the command until it names the gate. */
async function explained(gate: string): Promise<string> {
  return until(
    `the explanation names the gate ${gate}`,
    async () => {
      const { text } = await environment.script("scripts/explain.ts", ["--stack", "dev"]);
      if (!text.includes(`[gate: ${gate}]`)) throw new Error(text);
      return text;
    },
    60_000,
    500,
  );
}

describe("the gate is named", () => {
  it("nothing, when all is well", async () => {
    const { code, text } = await environment.script("scripts/explain.ts", ["--stack", "dev"]);
    expect(text).toContain("Nothing holds the stack");
    expect(code).toBe(0);
  });

  it("quota", async () => {
    environment.gke.scaleUpFailure = "GCE quota exceeded";
    undo.push(() => void (environment.gke.scaleUpFailure = undefined));
    await loseGpuNodes();
    const text = await explained("quota");
    expect(text).toContain("event FailedScaleUp of pod triton/triton-");
    expect(text).toContain("gcloud compute regions describe us-central1 --project test-project");
  });

  it("stockout", async () => {
    environment.gke.scaleUpFailure = "GCE out of resources";
    undo.push(() => void (environment.gke.scaleUpFailure = undefined));
    await loseGpuNodes();
    const text = await explained("stockout");
    expect(text).toContain("GCE out of resources. Pod is at risk of not being scheduled.");
    expect(text).toContain("pulumi config set --path 'zones[1]' ZONE");
  });

  it("driver", async () => {
    environment.gke.driverBroken = true;
    undo.push(() => void (environment.gke.driverBroken = false));
    await loseGpuNodes();
    const text = await explained("driver");
    expect(text).toMatch(/node gke-\S+-gpu-pool-\S+: no allocatable nvidia\.com\/gpu/);
    expect(text).toMatch(
      /kubectl -n kube-system logs nvidia-driver-installer-\w+ -c nvidia-driver-installer/,
    );
  });

  it("image", async () => {
    const message =
      'Failed to pull image "nvcr.io/nvidia/tritonserver:25.02-py3": nvcr.io/nvidia/tritonserver:25.02-py3: not found';
    undo.push(await setFate(environment.api, { app: "triton", waiting: "ImagePullBackOff", message }));
    await restartTriton();
    const text = await explained("image");
    expect(text).toContain("cannot pull nvcr.io/nvidia/tritonserver:");
    expect(text).toContain("pulumi config set tritonVersion YY.MM && pulumi up");
  });

  it("model load", async () => {
    environment.gke.cluster.setLog(
      "triton",
      "I1129 server.cc:674] \nE1129 model_repository_manager.cc:703] failed to load 'tftrt_fp16' version 1: Internal: unable to load model",
    );
    undo.push(
      await setFate(environment.api, {
        app: "triton",
        waiting: "CrashLoopBackOff",
        message: "back-off 1m20s restarting failed container",
      }),
    );
    await restartTriton();
    const text = await explained("model");
    expect(text).toContain("failed to load 'tftrt_fp16' version 1");
    expect(text).toContain("4 restarts");
    expect(text).toMatch(/kubectl -n triton logs triton-\S+ -c triton --previous/);
  });

  it("access to the bucket", async () => {
    const line =
      "error: creating server: Internal - Could not get MetaData for directory gs://models/models: 403 Anonymous caller does not have storage.objects.get access";
    environment.gke.cluster.setLog("triton", line);
    undo.push(
      await setFate(environment.api, { app: "triton", waiting: "CrashLoopBackOff", message: "back-off" }),
    );
    await restartTriton();
    const text = await explained("iam");
    expect(text).toContain("Anonymous caller does not have storage.objects.get access");
    expect(text).toMatch(/gcloud storage buckets get-iam-policy gs:\/\/models-[0-9a-f]{7}/);
  });
});

describe("two servers for one GPU", () => {
  it("one waits, and an update that cannot succeed is stopped with the explanation", async () => {
    const { api, gke } = environment;
    kubectl(gke.cluster.kubeconfig, "-n", "triton", "scale", "deployment/triton", "--replicas=2");
    const pods = await until("there are two", async () => {
      const found = await podsOf(api, "triton");
      return found.length === 2 && found;
    });
    expect(pods.map(nodeOf).filter(Boolean)).toHaveLength(1);
    expect(await explained("pool-full")).toMatch(/pod triton\/triton-\S+ holds 1 GPU on node gke-/);
    kubectl(gke.cluster.kubeconfig, "-n", "triton", "scale", "deployment/triton", "--replicas=1");

    // Somebody else's pod gets the only GPU first, and the update waits for Triton.
    const limits = { "nvidia.com/gpu": "1" };
    // Another one than before, also when this is tried again.
    const key = "triton-slo-stack:variant";
    const before = (await stack.getAllConfig())[key]?.value;
    await stack.setConfig(key, { value: before === "original" ? "tftrt_fp16" : "original" });
    undo.push(() => api.delete("/api/v1/namespaces/default/pods/notebook?gracePeriodSeconds=0"));
    await restartTritonAfter(async () => {
      await api.create("/api/v1/namespaces/default/pods", {
        metadata: { name: "notebook" },
        spec: {
          tolerations: [{ operator: "Exists" }],
          containers: [{ name: "notebook", image: "none:1", resources: { limits } }],
        },
      });
    });
    const { code, text } = await environment.script("scripts/explain.ts", [
      ...["--stack", "dev", "--every-s", "2", "--stop-after-s", "4", "--"],
      ...[environment.pulumi, "up", "--yes", "--skip-preview", "--stack", "dev"],
    ]);
    expect(code, text).not.toBe(0);
    expect(text).toContain("[gate: pool-full]");
    expect(text).toContain("pod default/notebook holds 1 GPU");
    expect(text).toContain('Stopping: waiting cannot open the gate "pool-full".');
  });
});

/** Lets something else have the GPU: Triton is gone when it asks. */
async function restartTritonAfter(action: () => Promise<void>): Promise<void> {
  kubectl(environment.gke.cluster.kubeconfig, "-n", "triton", "scale", "deployment/triton", "--replicas=0");
  await until("Triton is gone", async () => (await podsOf(environment.api, "triton")).length === 0);
  await action();
  await until("the GPU is taken", async () => {
    const pod = await environment.api.get("/api/v1/namespaces/default/pods/notebook");
    return pod?.status?.phase === "Running";
  });
}
