import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Stack } from "@pulumi/pulumi/automation";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { clusterType } from "./cloud/gke";
import { setFate } from "./cluster/fate";
import { gpuNodes, isReady, longestDuring, nodeOf, placedPods, podsOf } from "./cluster/pods";
import { checkout, Environment } from "./environment";
import { destroy, preview, refresh, summary, up } from "./operations";

/** The life of a prod stack: protected, two servers on two GPU nodes. Each test goes on where the one before it ended. */
let environment: Environment;
let stack: Stack;
const set = (key: string, value: string) => stack.setConfig(`triton-slo-stack:${key}`, { value });

beforeAll(async () => {
  environment = await Environment.start();
  stack = await environment.stack("prod", {
    "triton-slo-stack:project": { value: "test-project" },
    "triton-slo-stack:asleep": { value: "true" },
  });
});
afterAll(() => environment.close());

describe("the command line, as in the workflow", () => {
  // `--config` writes into the stack's file.
  const file = () => join(environment.project(), "Pulumi.prod.yaml");
  let before = "";
  beforeEach(() => void (before = readFileSync(file(), "utf8")));
  afterEach(() => writeFileSync(file(), before));

  const previewWithPolicies = (...more: string[]) =>
    environment.run(
      "preview",
      "--stack",
      "prod",
      "--non-interactive",
      "--policy-pack",
      join(checkout, "policy"),
      ...more,
    );

  it("previews with the policy pack, which has nothing to say", async () => {
    const { code, text } = await previewWithPolicies();
    expect([code, text]).toEqual([0, expect.stringContaining("triton-slo")]);
    expect(text).not.toMatch(/\[mandatory\]|Policy Violation/);
  });

  it("fails with the policy's own words when prod is not protected", async () => {
    const { code, text } = await previewWithPolicies("--config", "triton-slo-stack:deletionProtection=off");
    expect(code).not.toBe(0);
    expect(text).toMatch(/\[mandatory\]/);
    expect(text).toMatch(/protect/i);
  });

  it("reports all errors of the configuration at once", async () => {
    const { code, text } = await environment.run(
      ...["preview", "--stack", "prod", "--non-interactive"],
      ...["--config", "triton-slo-stack:replicas=9", "--config", "triton-slo-stack:tritonVersion=latest"],
    );
    expect(code).not.toBe(0);
    expect(text).toContain("replicas");
    expect(text).toContain("tritonVersion");
  });
});

describe("from nothing", () => {
  it("comes up asleep, then with two servers on two GPU nodes", async () => {
    await environment.wake(stack);
    const nodes = await gpuNodes(environment.api);
    expect(nodes).toHaveLength(2);
    expect((await podsOf(environment.api, "triton")).map(nodeOf).sort()).toEqual(nodes);
  });

  it("has nothing to do then", async () => {
    expect(summary(await preview(stack))).toEqual([]);
    expect(summary(await refresh(stack))).toEqual([]);
  });
});

describe("protected", () => {
  it("a destroy is refused in its preview and takes nothing", async () => {
    const before = environment.world.all().length;
    const { code, text } = await environment.run("destroy", "--yes", "--stack", "prod");
    expect([code === 0, text]).toEqual([false, expect.stringMatching(/protect/)]);
    expect(environment.world.all()).toHaveLength(before);
    expect(await podsOf(environment.api, "triton")).toHaveLength(2);
    // The provider refuses as well, should Pulumi's own protection be taken off.
    expect(environment.world.all(clusterType)[0]?.inputs.deletionProtection).toBe(true);
  });
});

describe("changes", () => {
  it("another variant rolls out one server at a time: one always serves, and no third is ever made", async () => {
    const { api } = environment;
    const endFate = await setFate(api, { app: "triton", readyAfter: "4s" });
    await set("variant", "tftrt_fp16");
    const running = up(stack);
    let fewestReady = 2;
    const placed = await longestDuring(running, async () => {
      const pods = await api.list("/api/v1/pods?labelSelector=app=triton");
      fewestReady = Math.min(fewestReady, pods.filter(isReady).length);
      return placedPods(api, "triton");
    });
    await endFate();
    expect(summary(await running)).toEqual(["update triton"]);
    expect(placed).toHaveLength(2);
    expect(fewestReady).toBe(1);
    expect(await gpuNodes(api)).toHaveLength(2);
  });
});

describe("to nothing", () => {
  it("unprotected by config, it goes and leaves nothing", async () => {
    await set("deletionProtection", "off");
    const { steps } = await up(stack);
    expect(steps.filter((step) => /replace|delete/.test(step.op))).toEqual([]);
    await destroy(stack);
    expect(environment.gke.orphans).toEqual([]);
    expect(environment.world.all().map((thing) => thing.id)).toEqual([]);
  });
});
