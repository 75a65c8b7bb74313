import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import * as gcp from "@pulumi/gcp";
import { LocalWorkspace, PulumiCommand, type Stack } from "@pulumi/pulumi/automation";
import * as pulumi from "@pulumi/pulumi";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { Environment } from "./environment";
import { destroy, failing, preview, refresh, summary, up } from "./operations";
import type { Thing } from "./cloud/world";

/**
 * The stand-in of Google Cloud on the real engine, with programs of a few lines. What the stack's own program makes of it is
 * in the other files.
 */
const project = "test-project";
let environment: Environment;
let stack: Stack;
let program: () => Promise<Record<string, unknown> | void>;

const computeApi = () => new gcp.projects.Service("compute", { project, service: "compute.googleapis.com" });

beforeAll(async () => {
  environment = await Environment.start();
  const workDir = join(environment.dir, "inline");
  mkdirSync(workDir);
  mkdirSync(join(environment.dir, "state"));
  stack = await LocalWorkspace.createOrSelectStack(
    { stackName: "test", projectName: "stand-ins", program: () => program() },
    {
      ...{ workDir, envVars: environment.cliEnv, pulumiHome: join(environment.dir, "home") },
      pulumiCommand: await PulumiCommand.get({ root: join(environment.dir, "cli") }),
    },
  );
});
beforeEach(async () => {
  if (environment.world.all().length > 0) await destroy(stack);
  environment.world.log.length = 0;
});
afterAll(() => environment.close());

const network = (args: Partial<gcp.compute.NetworkArgs> = {}) =>
  new gcp.compute.Network(
    "net",
    { project, autoCreateSubnetworks: false, ...args },
    { dependsOn: [computeApi()] },
  );

describe("inputs are checked against the provider's typings", () => {
  it("an unknown property, with resource and path", async () => {
    // The SDK's own classes drop what they do not know.
    program = async () =>
      void new (class extends pulumi.CustomResource {})("gcp:compute/network:Network", "net", {
        project,
        nosuch: 1,
      });
    const { text } = await failing(preview(stack));
    expect(text).toContain("gcp:compute:Network");
    expect(text).toContain('gcp:compute/network:Network has no property "nosuch"');
  });

  it("wrong types and missing properties deep inside", async () => {
    program = async () => {
      const nodeConfig = {
        guestAccelerators: [{ type: "nvidia-tesla-t4", count: "1", driver: {} }],
        taints: [{ key: "a" }],
      };
      new gcp.container.NodePool("pool", { project, cluster: "c", nodeConfig } as never);
    };
    const { text } = await failing(preview(stack));
    expect(text).toContain("nodeConfig.guestAccelerators[0].count");
    expect(text).toContain('expected number, got string "1"');
    expect(text).toContain('NodePoolNodeConfigGuestAccelerator has no property "driver"');
    expect(text).toContain('NodePoolNodeConfigTaint needs the property "value"');
  });

  it("a type that the stand-in does not know is no success", async () => {
    program = async () => void new gcp.redis.Instance("cache", { project, memorySizeGb: 1 });
    expect((await failing(preview(stack))).text).toContain("knows no gcp:redis/instance:Instance");
  });
});

describe("Google's refusals", () => {
  it("an API that nothing has enabled", async () => {
    program = async () => void new gcp.compute.Network("net", { project, autoCreateSubnetworks: false });
    const { text } = await failing(up(stack));
    expect(text).toContain(
      "compute.googleapis.com has not been used in project 123456789012 before or it is disabled",
    );
    expect(environment.world.all()).toEqual([]);
  });

  it("on demand, as often as asked, and nothing is created", async () => {
    program = async () => void network();
    environment.world.fail({ kind: "permission-denied", type: "gcp:compute/network:Network", times: 1 });
    expect((await failing(up(stack))).text).toContain(
      'Required "compute.networks.create" permission(s) for "projects/test-project"',
    );
    environment.world.fail({ kind: "quota", type: "gcp:compute/network:Network", times: 1 });
    expect((await failing(up(stack))).text).toContain("Error 403: Insufficient regional quota");
    expect(environment.world.all("gcp:compute/network:Network")).toEqual([]);
    expect(summary(await up(stack))).toEqual(["create net"]);
  });

  it("a reference to something that does not exist", async () => {
    program = async () =>
      void new gcp.compute.Subnetwork(
        "sub",
        { project, region: "us-central1", network: "nowhere", ipCidrRange: "10.0.0.0/24" },
        { dependsOn: [computeApi()] },
      );
    expect((await failing(up(stack))).text).toContain("Error 404: The resource 'nowhere' was not found");
  });

  it("deletion of what is in use", async () => {
    program = async () => void network();
    await up(stack);
    const [net] = environment.world.all("gcp:compute/network:Network");
    const user: Thing = {
      type: "gcp:compute/router:Router",
      id: "r",
      logicalName: "",
      inputs: { network: net?.id },
      computed: {},
    };
    environment.world.put(user);
    expect((await failing(destroy(stack))).text).toContain(
      "is already being used by 'r', resourceInUseByAnotherResource",
    );
    environment.world.remove(user);
    await destroy(stack);
    expect(environment.world.all()).toEqual([]);
  });
});

describe("resources live as in Google Cloud", () => {
  it("computed outputs are unknown in a preview and known after it", async () => {
    program = async () => ({ link: network().selfLink });
    expect((await preview(stack)).text).toMatch(/link *: *(output<string>|\[unknown\])/);
    await up(stack);
    expect((await stack.outputs()).link?.value).toMatch(
      /^https:\/\/www\.googleapis\.com\/compute\/v1\/projects\/test-project\/global\/networks\/net-[0-9a-f]{7}$/,
    );
  });

  it("what forces replacement replaces: first the new one, unless the name is given", async () => {
    let location = "US";
    let named: { name?: string } = {};
    program = async () => {
      const api = new gcp.projects.Service("storage", { project, service: "storage.googleapis.com" });
      new gcp.storage.Bucket("b", { project, location, ...named }, { dependsOn: [api] });
    };
    await up(stack);
    const operations = () => environment.world.log.splice(0).map((entry) => entry.operation);
    operations();
    location = "EU";
    await up(stack);
    expect(operations()).toEqual(["create", "delete"]);
    named = { name: "given" };
    await up(stack);
    operations();
    location = "ASIA";
    await up(stack);
    expect(operations()).toEqual(["delete", "create"]);
  });

  it("state is on disk, and drift in it is seen by a refresh", async () => {
    program = async () => void network({ routingMode: "REGIONAL" });
    await up(stack);
    expect(summary(await up(stack))).toEqual([]);
    const [net] = environment.world.all("gcp:compute/network:Network");
    environment.world.put({ ...net!, inputs: { ...net!.inputs, routingMode: "GLOBAL" } });
    expect(readFileSync(join(environment.dir, "cloud.json"), "utf8")).toContain('"GLOBAL"');
    expect(summary(await refresh(stack))).toEqual(["update net"]);
    const { steps } = await up(stack);
    expect(steps).toEqual([
      { op: "update", type: "gcp:compute/network:Network", name: "net", diffs: ["routingMode"] },
    ]);
    environment.world.remove(environment.world.all("gcp:compute/network:Network")[0]!);
    expect(summary(await refresh(stack))).toEqual(["delete net"]);
    expect(summary(await up(stack))).toEqual(["create net"]);
  });

  it("slow operations take their time", async () => {
    program = async () => void network();
    environment.world.fail({ kind: "slow", type: "gcp:compute/network:Network", times: 1, delayMs: 3000 });
    const startedMs = Date.now();
    await up(stack);
    expect(Date.now() - startedMs).toBeGreaterThan(3000);
  });
});
