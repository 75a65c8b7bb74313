/** The whole program as `pulumi preview` and `pulumi up` run it: in Pulumi's own Node host, for each stack file. */
import { beforeAll, describe, expect, it } from "vitest";
import {
  diff,
  input,
  providerUrn,
  runStack,
  runningHosts,
  secretPaths,
  tryStack,
  unknownPaths,
} from "./harness";
import type { Recording } from "./harness";
import { configOf, hosted, preview, STACKS, up } from "./real-stack";

const SHOWN = ({ urn, inputs, dependencies, provider }: Recording["all"][number]) => ({
  urn,
  inputs,
  dependencies: [...dependencies].sort(),
  provider,
});
const shown = (recording: Recording) => recording.all.map(SHOWN).sort((a, b) => (a.urn < b.urn ? -1 : 1));

describe.each(STACKS)("%s, an empty stack", (stack) => {
  let first: Recording;
  beforeAll(async () => {
    first = await runStack(hosted(stack, "preview"));
  });

  it("previews with every output unknown, without warnings (pulumi-kubernetes#3027, #2374)", () => {
    expect(first.complaints).toEqual([]);
    expect(input(first.one("pulumi:providers:kubernetes"), "kubeconfig")).toMatchObject({ kind: "unknown" });
    expect(runningHosts()).toEqual([]);
  });

  it("shows in the preview everything that up creates", async () => {
    const created = await up(stack);
    expect(first.all.map(({ urn }) => urn).sort()).toEqual(created.all.map(({ urn }) => urn).sort());
    expect(created.complaints).toEqual([]);
  });
});

describe.each(STACKS)("%s, up", (stack) => {
  let first: Recording;
  beforeAll(async () => {
    first = await up(stack);
  });

  it("is the same in Pulumi's Node host", async () => {
    expect(shown(await runStack(hosted(stack, "up")))).toEqual(shown(first));
  });

  it("has no changes the second time, in preview and up", async () => {
    expect(diff(first, await preview(stack, {}, { prior: first }))).toEqual([]);
    expect(diff(first, await up(stack, {}, { prior: first }))).toEqual([]);
  });

  it("leaves nothing unknown", () => {
    for (const { urn, inputs } of first.all) expect(unknownPaths(inputs), urn).toEqual([]);
    expect(unknownPaths(first.stackOutputs)).toEqual([]);
  });

  it("uses an explicit provider for everything in Google Cloud and in the cluster", () => {
    const google = first.one("pulumi:providers:gcp");
    const cluster = first.one("pulumi:providers:kubernetes");
    for (const registration of first.all.filter(
      ({ custom, type }) => custom && !type.startsWith("pulumi:providers:"),
    )) {
      const expected = { gcp: google.urn, kubernetes: cluster.urn }[registration.type.split(":")[0] ?? ""];
      if (expected !== undefined) expect(providerUrn(registration.provider), registration.urn).toBe(expected);
    }
    for (const invoke of first.invokes) expect(providerUrn(invoke.provider), invoke.token).toBe(google.urn);
  });

  it("lets default providers serve only what has no settings", () => {
    const byDefault = first.all.filter(
      ({ custom, provider, type }) => custom && provider === "" && !type.startsWith("pulumi:"),
    );
    const packages = new Set(byDefault.map(({ type }) => type.split(":")[0]));
    expect([...packages].sort()).toEqual(["docker-build", "random"]);
    expect(JSON.parse(configOf(stack).values["pulumi:disable-default-providers"] ?? "[]")).toEqual(
      expect.arrayContaining(["gcp", "kubernetes"]),
    );
  });

  it("registers the outputs of every component", () => {
    for (const component of first.all.filter(({ custom }) => !custom)) {
      expect(first.registeredOutputs.has(component.urn), component.urn).toBe(true);
    }
  });

  it("gives every component an alias-able type of its own namespace", () => {
    const types = first.all
      .filter(({ custom, type }) => !custom && type !== "pulumi:pulumi:Stack")
      .map(({ type }) => type);
    for (const type of types) expect(type).toMatch(/^triton-slo:index:[A-Z]\w+$/);
  });

  it("marks no output secret, because none is one", () => {
    expect(secretPaths(first.stackOutputs)).toEqual([]);
  });
});

describe("a wrong configuration", () => {
  it("ends at once with all problems and nothing registered", async () => {
    // nodejs/node#64011: with a stack trace in it, the error would keep Node 20.19.6 and later busy for a minute.
    const wrong = hosted("dev", "preview", { project: "", gpuType: "nvidia-tesla-k80", replicas: 5 });
    const failed = await tryStack({ ...wrong, timeoutS: 25 });
    expect(failed.exitCode).toBe(32);
    const [message = "", ...others] = failed.recording.complaints;
    expect(others).toEqual([]);
    for (const key of ["project", "gpuType", "replicas"]) expect(message).toContain(`  ${key}: `);
    expect(message).not.toContain("at Object.");
    expect(failed.recording.all.map(({ type }) => type)).toEqual(["pulumi:pulumi:Stack"]);
  });
});
