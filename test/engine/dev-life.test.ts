import type { Stack } from "@pulumi/pulumi/automation";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { explain } from "../../diagnose-up/explain";
import { noEvidence } from "../../diagnose-up/evidence";
import { convertModels } from "./cloud/google";
import { poolType } from "./cloud/gke";
import { manifestsOf, restrictedRefusal, strictRefusal } from "./cluster/admission";
import { setFate } from "./cluster/fate";
import type { KubeObject } from "./cluster/kube-api";
import { gpuNodes, isReady, kubectl, longestDuring, nodeOf, placedPods, podsOf } from "./cluster/pods";
import { until } from "./cluster/program";
import { Environment } from "./environment";
import { destroy, failing, preview, refresh, repositoryVariants, summary, up } from "./operations";

/** The life of a dev stack, from nothing to nothing. Each test goes on where the one before it ended. */
let environment: Environment;
let stack: Stack;
const set = (key: string, value: string) => stack.setConfig(`triton-slo-stack:${key}`, { value });

beforeAll(async () => {
  environment = await Environment.start();
  stack = await environment.stack("dev", {
    "triton-slo-stack:project": { value: "test-project" },
    "triton-slo-stack:asleep": { value: "true" },
  });
});
afterAll(() => environment.close());

/** Pods of the driver's DaemonSet. */
const installers = (): Promise<KubeObject[]> =>
  environment.api.list("/api/v1/namespaces/kube-system/pods?labelSelector=k8s-app=nvidia-driver-installer");

/** Images of the ready servers. */
async function readyTritons(): Promise<string[]> {
  const ready = (await podsOf(environment.api, "triton")).filter(isReady);
  return ready.map((pod) => (pod.spec as { containers: { image: string }[] }).containers[0]!.image);
}

describe("from nothing", () => {
  it("previews although nothing exists", async () => {
    const { steps } = await preview(stack);
    expect(new Set(steps.map((step) => step.op))).toEqual(new Set(["create"]));
    expect(steps.length).toBeGreaterThan(90);
    expect(environment.world.all()).toEqual([]);
  });

  it("comes up asleep, without a GPU node, before the models are converted", async () => {
    const startedMs = Date.now();
    await up(stack);
    console.log(`up from nothing: ${((Date.now() - startedMs) / 1000).toFixed(0)} s`);
    expect(await gpuNodes(environment.api)).toEqual([]);
    expect(await podsOf(environment.api, "triton")).toEqual([]);
  });

  it("refuses to wake before the models are converted, and says what to do", async () => {
    await set("asleep", "false");
    expect((await failing(preview(stack))).text).toContain("convert the model first");
  });

  it("wakes with one T4 node, which gets its driver from the DaemonSet", async () => {
    convertModels(environment.world, await repositoryVariants(stack));
    await up(stack);
    const [node] = await gpuNodes(environment.api);
    const pods = await podsOf(environment.api, "triton");
    expect(pods.map(nodeOf)).toEqual([node]);
  });

  it("has nothing to do then", async () => {
    expect(summary(await preview(stack))).toEqual([]);
    expect(summary(await refresh(stack))).toEqual([]);
  });
});

describe("on the scheduler", () => {
  it("pods with a GPU are on T4 nodes and only there; all others but the installer never are", async () => {
    const { api } = environment;
    const withGpu = await gpuNodes(api);
    for (const pod of await api.list("/api/v1/pods")) {
      const { containers } = pod.spec as {
        containers: { resources?: { limits?: Record<string, string> } }[];
      };
      const wantsGpu = containers.some(
        (container) => container.resources?.limits?.["nvidia.com/gpu"] !== undefined,
      );
      const isInstaller = pod.metadata.labels?.["k8s-app"] === "nvidia-driver-installer";
      expect([pod.metadata.name, withGpu.includes(nodeOf(pod))]).toEqual([
        pod.metadata.name,
        wantsGpu || isInstaller,
      ]);
    }
  });

  it("a pod that knows nothing of GPUs stays off the T4 node even when all else is full", async () => {
    const { api } = environment;
    const resources = { requests: { cpu: "7" } };
    await api.create("/api/v1/namespaces/default/pods", {
      metadata: { name: "stranger" },
      spec: { containers: [{ name: "stranger", image: "none:1", resources }] },
    });
    const pod = await until("the scheduler has looked at it", async () => {
      const found = await api.get("/api/v1/namespaces/default/pods/stranger");
      return (
        ((found?.status?.conditions ?? []) as { message?: string }[]).some((one) => one.message) && found
      );
    });
    expect(nodeOf(pod)).toBe("");
    expect(JSON.stringify(pod.status)).toMatch(/untolerated taint/);
    await api.delete("/api/v1/namespaces/default/pods/stranger?gracePeriodSeconds=0");
  });

  it("load workers never share a node with Triton, and are in its zone", async () => {
    const { api } = environment;
    const workers = await podsOf(api, "load-worker");
    expect(workers.length).toBeGreaterThan(0);
    const triton = (await podsOf(api, "triton")).map(nodeOf);
    const nodes = await api.list("/api/v1/nodes");
    const zone = (name: string) =>
      nodes.find((node) => node.metadata.name === name)?.metadata.labels?.["topology.kubernetes.io/zone"];
    for (const worker of workers) {
      expect(triton).not.toContain(nodeOf(worker));
      expect(zone(nodeOf(worker))).toBe(zone(triton[0]!));
    }
  });

  it("the installer runs on every T4 node and nowhere else", async () => {
    expect((await installers()).map(nodeOf).sort()).toEqual(await gpuNodes(environment.api));
  });

  it("takes every manifest with strict field validation", async () => {
    for (const { resource, object } of await manifestsOf(stack)) {
      expect([resource, await strictRefusal(environment.api, object)]).toEqual([resource, undefined]);
    }
    const [first] = await manifestsOf(stack);
    const misspelt = { ...first!.object, nosuch: 1 };
    expect(await strictRefusal(environment.api, misspelt)).toContain("field not declared in schema");
  });

  it("admits every pod as restricted, but the driver installer", async () => {
    const refused: string[] = [];
    for (const { resource, object } of await manifestsOf(stack)) {
      const template = object.spec?.template as KubeObject | undefined;
      if (template && (await restrictedRefusal(environment.api, template))) refused.push(resource);
    }
    expect(refused).toEqual(["gpu-driver"]);
  });
});

describe("changes", () => {
  it("another variant restarts Triton and touches nothing else, for every variant", async () => {
    const names = await repositoryVariants(stack);
    for (const name of [...names.slice(1), names[0]!]) {
      await set("variant", name);
      expect([name, summary(await up(stack))]).toEqual([name, ["update triton"]]);
      const [pod] = await podsOf(environment.api, "triton");
      expect(JSON.stringify(pod?.spec)).toContain(`--load-model=${name}`);
    }
  }, 600_000);

  it("another Triton rolls out without a second GPU, and is awaited", async () => {
    const { api } = environment;
    const endFate = await setFate(api, { app: "triton", readyAfter: "5s" });
    await set("tritonVersion", "25.01");
    const running = up(stack);
    expect(await longestDuring(running, () => placedPods(api, "triton"))).toHaveLength(1);
    expect(await readyTritons()).toEqual([expect.stringContaining("25.01")]);
    expect(await gpuNodes(api)).toHaveLength(1);
    const changed = summary(await running);
    expect(changed).toContain("update triton");
    expect(
      changed.filter((step) => /replace|delete/.test(step) && !/converter|conversion/.test(step)),
    ).toEqual([]);
    // Back to what was there before, which Kubernetes would have kept.
    await set("tritonVersion", "25.02");
    await up(stack);
    expect(await readyTritons()).toEqual([expect.stringContaining("25.02")]);
    await endFate();
  });

  it("another driver mode replaces the T4 pool and nothing else", async () => {
    const before = await gpuNodes(environment.api);
    await set("driverMode", "gke-default");
    const { steps } = await up(stack);
    const replaced = steps.filter((step) => step.op.includes("replace")).map((step) => step.name);
    expect(new Set(replaced)).toEqual(new Set(["gpu-pool"]));
    expect(summary({ steps }).filter((step) => step.startsWith("delete "))).toEqual(["delete gpu-driver"]);
    expect(await installers()).toEqual([]);
    const after = await until("Triton runs on a new node", async () => {
      const nodes = await gpuNodes(environment.api);
      const placed = (await podsOf(environment.api, "triton")).map(nodeOf);
      return placed.some((node) => nodes.includes(node)) && nodes;
    });
    expect(after.filter((node) => before.includes(node))).toEqual([]);
  });

  it("a second GPU node and server come without replacing anything", async () => {
    await set("gpuMaxNodes", "2");
    await set("replicas", "2");
    const { steps } = await up(stack);
    const gone = steps.filter((step) => /replace|delete/.test(step.op));
    // The alert rules name the number of servers; Pulumi replaces a ConfigMap whose content changes.
    expect(gone.filter((step) => step.name !== "prometheus-config")).toEqual([]);
    const nodes = await gpuNodes(environment.api);
    expect(nodes).toHaveLength(2);
    expect((await podsOf(environment.api, "triton")).map(nodeOf).sort()).toEqual(nodes);
  });
});

describe("what somebody changed with kubectl", () => {
  const run = (...args: string[]) => kubectl(environment.gke.cluster.kubeconfig, ...args);

  it("is seen by a refresh; the number of servers is the stack's, and comes back", async () => {
    run("-n", "triton", "scale", "deployment/triton", "--replicas=1");
    expect(summary(await refresh(stack))).toEqual(["update triton"]);
    expect(summary(await up(stack))).toEqual(["update triton"]);
    expect(await podsOf(environment.api, "triton")).toHaveLength(2);
  });

  it("comes back when it was deleted", async () => {
    run("-n", "triton", "delete", "service", "triton");
    expect(summary(await refresh(stack))).toEqual(["delete triton-service"]);
    expect(summary(await up(stack))).toEqual(["create triton-service"]);
  });

  it("comes back when it is an edit of a field that the stack has set", async () => {
    const image = () =>
      run(
        "-n",
        "load",
        "get",
        "deployment/load-controller",
        "-o",
        "jsonpath={.spec.template.spec.containers[0].image}",
      );
    const own = image();
    run("-n", "load", "set", "image", "deployment/load-controller", "controller=elsewhere/image:1");
    expect(summary(await refresh(stack))).toEqual(["update load-controller"]);
    expect(summary(await up(stack))).toEqual(["update load-controller"]);
    expect(image()).toBe(own);
  });

  it.each(["a scale by hand", "another manager's value"])(
    "is not overwritten elsewhere: %s stops the update, and the explanation says how to go on",
    async (what) => {
      const image = run(
        "-n",
        "monitoring",
        "get",
        "deployment/grafana",
        "-o",
        "jsonpath={.spec.template.spec.containers[0].image}",
      );
      const change = (replicas: number, newImage: string) =>
        what === "a scale by hand"
          ? run("-n", "monitoring", "scale", "deployment/grafana", `--replicas=${replicas}`)
          : run(
              "-n",
              "monitoring",
              "set",
              "image",
              "deployment/grafana",
              `grafana=${newImage}`,
              "--field-manager=platform-team",
            );
      change(2, "elsewhere/image:1");
      expect(summary(await refresh(stack))).toEqual(["update grafana"]);
      const { text } = await failing(up(stack));
      const [explanation] = explain({ ...noEvidence, pulumiOutput: text });
      expect(explanation?.gate).toBe("field-conflict");
      // As the explanation says: the stack's value, set with the same tool, ends the conflict.
      change(1, image);
      await up(stack);
      expect(summary(await preview(stack))).toEqual([]);
    },
  );
});

describe("to nothing", () => {
  it("destroy takes what holds something outside the cluster first, and leaves nothing", async () => {
    environment.world.log.length = 0;
    await destroy(stack);
    expect(environment.gke.orphans).toEqual([]);
    expect(environment.gke.hasCluster).toBe(false);
    expect(environment.world.all().map((thing) => thing.id)).toEqual([]);
    const order = environment.world.log.map((entry) => entry.type);
    expect(order.lastIndexOf(poolType)).toBeLessThan(order.indexOf("gcp:container/cluster:Cluster"));
  });
});
