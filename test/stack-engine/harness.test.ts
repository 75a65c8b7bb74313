/** The harness itself: that it shows what mocks hide. harness.slow.test.ts runs it with Pulumi's own host. */
import { join } from "node:path";
import * as random from "@pulumi/random";
import { beforeAll, describe, expect, it } from "vitest";
import { program } from "./fixtures/tiny/program";
import * as harness from "./harness";
import { diff, runStack, stackConfig, summary, type Recording } from "./harness";

const programDir = join(__dirname, "fixtures/tiny");
const config = (overrides = {}) => stackConfig(programDir, "dev", overrides);
const inline = { programDir, program, config: config() };

describe("configuration", () => {
  it("puts the stack's values over the project's defaults, and a test's over both", () => {
    const { values, secretKeys } = stackConfig(programDir, "dev", { behaviour: "throw", zones: ["a", "b"] });
    expect(values).toEqual({
      "gcp:project": "test-project",
      "tiny:behaviour": "throw",
      "tiny:image": "nginx:1.27.1",
      "tiny:token": "hidden",
      "tiny:zones": '["a","b"]',
    });
    expect(secretKeys).toEqual(["tiny:token"]);
  });

  it("falls back to the default where a test removes the stack's value", () => {
    expect(stackConfig(programDir, "dev", { image: undefined }).values["tiny:image"]).toBe("nginx:1.27.0");
  });
});

describe("first preview", () => {
  let preview: Recording;
  beforeAll(async () => {
    preview = await runStack({ ...inline, mode: "preview" });
  });

  it("answers nothing, so that all outputs are unknown", () => {
    const secret = preview.one("kubernetes:core/v1:Secret");
    expect(harness.unknownPaths(secret.inputs)).toEqual(["stringData"]);
    expect(harness.unknownPaths(preview.stackOutputs)).toEqual(["endpoint", "password"]);
    expect(harness.unknownPaths(preview.one("gcp:container/nodePool:NodePool").inputs)).toContain("cluster");
  });

  it("answers with inputs when asked to, as most providers do", async () => {
    const echoed = await runStack({ ...inline, mode: "preview", previewAnswers: "inputs" });
    expect(harness.unknownPaths(echoed.one("kubernetes:apps/v1:Deployment").inputs)).toEqual([]);
  });
});

describe("up", () => {
  let up: Recording;
  beforeAll(async () => {
    up = await runStack({ ...inline, mode: "up" });
  });

  it("shows all children of components without awaiting any (pulumi#6562)", () => {
    expect(up.one("random:index/randomPassword:RandomPassword").parent).toBe(up.one("tiny:index:Pair").urn);
    expect(up.one("random:index/randomPassword:RandomPassword").urn).toBe(
      "urn:pulumi:dev::tiny::tiny:index:Pair$random:index/randomPassword:RandomPassword::pair-password",
    );
  });

  it("shows every option", () => {
    const cluster = up.one("gcp:container/cluster:Cluster");
    expect(cluster).toMatchObject({ protect: true, customTimeouts: { create: "40m" } });
    expect(harness.providerUrn(cluster.provider)).toBe(up.one("pulumi:providers:gcp").urn);
    const pool = up.one("gcp:container/nodePool:NodePool");
    expect(pool).toMatchObject({ parent: cluster.urn, ignoreChanges: ["initialNodeCount"] });
    expect(pool.propertyDependencies.cluster).toEqual([cluster.urn]);
    const secret = up.one("kubernetes:core/v1:Secret");
    expect(secret.deletedWith).toBe(cluster.urn);
    expect(secret.dependencies).toContain(pool.urn);
    expect(up.comesAfter(secret, cluster)).toBe(true);
    expect(up.comesAfter(cluster, secret)).toBe(false);
  });

  it("carries secrets from config and from providers to inputs and outputs", () => {
    expect(harness.secretPaths(up.one("kubernetes:core/v1:Secret").inputs)).toEqual(["stringData"]);
    expect(harness.secretPaths(up.stackOutputs)).toEqual(["password"]);
    expect(harness.clearTexts(up.one("kubernetes:core/v1:Secret").inputs)).not.toContain("hidden");
  });

  it("answers data sources", () => {
    expect(up.invokes.map((invoke) => invoke.token)).toEqual(["gcp:organizations/getProject:getProject"]);
    expect(harness.at(up.one("kubernetes:apps/v1:Deployment").inputs, "metadata.labels.number")).toBe(
      "123456789012",
    );
  });

  it("has nothing to do the second time", async () => {
    const second = await runStack({ ...inline, mode: "up", prior: up });
    expect(diff(up, second)).toEqual([]);
  });

  const changes: [string, Record<string, string>, string[]][] = [
    [
      "an argument that is updated in place",
      { image: "nginx:1.28.0" },
      ["update kubernetes:apps/v1:Deployment web (spec.template.spec.containers[0].image)"],
    ],
    [
      "an argument that forces replacement",
      { spot: "yes" },
      ["replace gcp:container/nodePool:NodePool pool (nodeConfig.spot)"],
    ],
    ["an ignored argument", { nodes: "2" }, []],
  ];
  it.each(changes)("predicts the effect of %s", async (_name, overrides, expected) => {
    const second = await runStack({ ...inline, config: config(overrides), mode: "up", prior: up });
    expect(summary(diff(up, second))).toEqual(expected);
  });

  it("predicts in a preview what an unknown output of an updated cluster does (pulumi-kubernetes#1148)", async () => {
    const identified = await runStack({
      ...inline,
      config: config({ level: "high" }),
      mode: "preview",
      prior: up,
    });
    expect(summary(diff(up, identified))).toEqual([
      "update gcp:container/cluster:Cluster cluster (resourceLabels.level)",
      "update pulumi:providers:kubernetes in-cluster (kubeconfig)",
    ]);
    const before = await runStack({ ...inline, config: config({ anonymous: "yes" }), mode: "up" });
    const anonymous = await runStack({
      ...inline,
      config: config({ anonymous: "yes", level: "high" }),
      mode: "preview",
      prior: before,
    });
    expect(summary(diff(before, anonymous))).toEqual([
      "replace kubernetes:apps/v1:Deployment web (provider)",
      "replace kubernetes:core/v1:Secret password (provider)",
      "replace pulumi:providers:kubernetes in-cluster (kubeconfig)",
      "update gcp:container/cluster:Cluster cluster (resourceLabels.level)",
    ]);
  });
});

describe("what the stub lacks", () => {
  it("is said, instead of leaving the program waiting", async () => {
    const outputs = {
      "gcp:container/cluster:Cluster": () => {
        throw new Error("no answer for clusters");
      },
    };
    await expect(runStack({ ...inline, mode: "up", outputs })).rejects.toThrow("no answer for clusters");
  });

  it("refuses two resources of one name, as the engine does", async () => {
    const twice = async () => {
      new random.RandomPassword("one", { length: 8 });
      new random.RandomPassword("one", { length: 9 });
    };
    await expect(runStack({ ...inline, program: twice, mode: "up" })).rejects.toThrow(
      "Duplicate resource URN 'urn:pulumi:dev::tiny::random:index/randomPassword:RandomPassword::one'",
    );
  });
});
