/** The rules on everything that the real program registers, and the pack in Pulumi's own policy host. */
import { spawn, type ChildProcess } from "node:child_process";
import { createRequire } from "node:module";
import { join } from "node:path";
import { credentials } from "@grpc/grpc-js";
import { AnalyzerClient } from "@pulumi/pulumi/proto/analyzer_grpc_pb";
import {
  AnalyzeRequest,
  AnalyzerResourceOptions,
  type AnalyzeResponse,
  type AnalyzerInfo,
} from "@pulumi/pulumi/proto/analyzer_pb";
import { Empty } from "google-protobuf/google/protobuf/empty_pb";
import { Struct, type JavaScriptValue } from "google-protobuf/google/protobuf/struct_pb";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { allRules, violationsOf } from "../../policy/all-rules";
import { exceptionFor, exceptions } from "../../policy/exceptions";
import type { Properties, Resource } from "../../policy/rule";
import { plain, type Recording } from "../stack-engine/harness";
import { programDir, STACKS, up, type Overrides } from "../stack-engine/real-stack";

const resourcesOf = (recording: Recording): Resource[] =>
  recording.all.map(({ type, name, inputs, protect }) => ({
    type,
    name,
    properties: plain(inputs) as Properties,
    protect: protect ?? false,
  }));

const violations = (resources: readonly Resource[]): string[] =>
  allRules.flatMap((rule) =>
    resources.flatMap((resource) =>
      violationsOf(rule, resource).map((text) => `${rule.name}: ${resource.name} ${text}`),
    ),
  );

const settings: [string, (typeof STACKS)[number], Overrides][] = [
  ["dev", "dev", {}],
  ["prod", "prod", {}],
  [
    "dev with everything else",
    "dev",
    {
      autoscale: true,
      autoscaleMaxReplicas: 2,
      autoscaleRatePerS: 900,
      gpuMaxNodes: 2,
      loadGenerator: false,
      jupyterLab: true,
    },
  ],
];

describe.each(settings)("%s", (_name, stack, overrides) => {
  let resources: Resource[];
  beforeAll(async () => {
    resources = resourcesOf(await up(stack, overrides));
  });

  it("violates no rule", () => expect(violations(resources)).toEqual([]));

  it("gives every rule something to look at, keys and bindings apart", () => {
    const idle = allRules
      .filter((rule) => !resources.some(({ type }) => rule.appliesTo(type)))
      .map(({ name }) => name);
    const instance = stack === "prod" ? ["gpu-machine-ends"] : [];
    const absent = [
      "no-service-account-keys",
      "additive-iam",
      ...instance,
      ...(stack === "prod" ? ["closed-firewall"] : []),
    ];
    expect(idle.filter((name) => !absent.includes(name))).toEqual([]);
  });

  it("uses every exception", () => {
    for (const exception of exceptions) {
      const rule = allRules.find(({ name }) => name === exception.rule);
      const used = resources.some(
        (resource) =>
          rule?.appliesTo(resource.type) &&
          rule
            .violations(resource)
            .some((text) => exceptionFor(exception.rule, resource, text) === exception),
      );
      expect(used, exception.reason).toBe(true);
    }
  });
});

it("a public control plane for everybody would be found", async () => {
  const resources = resourcesOf(
    await up("dev", { controlPlaneAccess: "public", authorizedNetworks: ["203.0.113.0/24"] }),
  );
  expect(violations(resources)).toEqual([]);
  const opened = resources.map((resource) =>
    resource.type === "gcp:container/cluster:Cluster"
      ? {
          ...resource,
          properties: {
            ...resource.properties,
            masterAuthorizedNetworksConfig: { cidrBlocks: [{ cidrBlock: "0.0.0.0/0" }] },
          },
        }
      : resource,
  );
  expect(violations(opened)).toEqual([
    "private-cluster: cluster the control plane admits the whole internet",
  ]);
});

describe("in Pulumi's policy host", { timeout: 90_000 }, () => {
  let host: ChildProcess;
  let client: AnalyzerClient;
  beforeAll(async () => {
    const runner = createRequire(__filename).resolve("@pulumi/pulumi/cmd/run-policy-pack");
    host = spawn(process.execPath, [runner, "127.0.0.1:1", "."], {
      cwd: join(programDir, "policy"),
      env: { ...process.env, PULUMI_NODEJS_TRANSPILE_ONLY: "true", NODE_OPTIONS: "" },
      stdio: ["ignore", "pipe", "inherit"],
    });
    const port = await new Promise<string>((resolve, reject) => {
      host.stdout?.once("data", (chunk: Buffer) => resolve(chunk.toString().trim()));
      host.once("exit", (code) => reject(new Error(`The policy host ended with exit code ${code}.`)));
    });
    client = new AnalyzerClient(`127.0.0.1:${port}`, credentials.createInsecure());
  }, 90_000);
  afterAll(() => {
    client.close();
    host.kill("SIGKILL");
  });

  const analyze = (resource: Resource): Promise<string[]> => {
    const request = new AnalyzeRequest();
    request.setType(resource.type);
    request.setUrn(`urn:pulumi:dev::p::${resource.type}::${resource.name}`);
    request.setName(resource.name);
    request.setProperties(Struct.fromJavaScript(resource.properties as { [key: string]: JavaScriptValue }));
    const options = new AnalyzerResourceOptions();
    options.setProtect(resource.protect);
    request.setOptions(options);
    return new Promise((resolve, reject) => {
      client.analyze(request, (error, response: AnalyzeResponse) => {
        if (error) reject(error);
        else
          resolve(
            response
              .getDiagnosticsList()
              .map(
                (diagnostic) =>
                  `${diagnostic.getPolicyname()} ${diagnostic.getEnforcementlevel()}: ${diagnostic.getMessage()}`,
              ),
          );
      });
    });
  };
  const bucket = { type: "gcp:storage/bucket:Bucket", name: "models", protect: false };
  const good = {
    publicAccessPrevention: "enforced",
    uniformBucketLevelAccess: true,
    versioning: { enabled: true },
    labels: { environment: "dev", stack: "s" },
  };

  it("has all rules, and every one is mandatory", async () => {
    const info = await new Promise<AnalyzerInfo>((resolve, reject) => {
      client.getAnalyzerInfo(new Empty(), (error, response) => (error ? reject(error) : resolve(response)));
    });
    expect(info.getName()).toBe("triton-slo");
    const policies = info.getPoliciesList();
    expect(policies.map((policy) => policy.getName()).sort()).toEqual(
      allRules.map(({ name }) => name).sort(),
    );
    expect(new Set(policies.map((policy) => policy.getEnforcementlevel()))).toEqual(new Set([1]));
  });

  it("stops a bad resource with the fix, and lets a good one pass", async () => {
    expect(await analyze({ ...bucket, properties: good })).toEqual([]);
    const [message, ...others] = await analyze({
      ...bucket,
      properties: { ...good, publicAccessPrevention: "inherited" },
    });
    expect(others).toEqual([]);
    expect(message).toContain("bucket-locked-down 1: ");
    expect(message).toContain('Set publicAccessPrevention to "enforced"');
  });

  it("sees Pulumi's own protection", async () => {
    const prod = { ...good, labels: { environment: "prod", stack: "s" } };
    expect(await analyze({ ...bucket, properties: prod, protect: true })).toEqual([]);
    expect((await analyze({ ...bucket, properties: prod })).join()).toContain("prod-protected 1: ");
  });

  it("puts off what a preview cannot know", async () => {
    const unknown = { ...good, publicAccessPrevention: "04da6b54-80e4-46f7-96ec-b56ff0331ba9" };
    const [message] = await analyze({ ...bucket, properties: unknown });
    expect(message).toContain("bucket-locked-down 0: ");
    expect(message).toContain("can't be known during preview");
  });
});
