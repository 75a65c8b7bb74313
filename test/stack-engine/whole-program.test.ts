/** The whole program with each stack file: preview of nothing, up, up again. whole-program.slow.test.ts uses Pulumi's own host. */
import { beforeAll, describe, expect, it } from "vitest";
import { diff, input, providerUrn, secretPaths, unknownPaths } from "./harness";
import type { Recording } from "./harness";
import { configOf, preview, STACKS, up } from "./real-stack";

describe.each(STACKS)("%s", (stack) => {
  let empty: Recording;
  let first: Recording;
  beforeAll(async () => {
    empty = await preview(stack);
    first = await up(stack);
  });

  it("previews an empty stack with every output unknown, without warnings (pulumi-kubernetes#3027, #2374)", () => {
    expect(empty.complaints).toEqual([]);
    expect(input(empty.one("pulumi:providers:kubernetes"), "kubeconfig")).toMatchObject({ kind: "unknown" });
  });

  it("shows in the preview everything that up creates", () => {
    expect(empty.all.map(({ urn }) => urn).sort()).toEqual(first.all.map(({ urn }) => urn).sort());
    expect(first.complaints).toEqual([]);
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

  it("marks the password of Grafana secret, and nothing else, because nothing else is", () => {
    expect(secretPaths(first.stackOutputs)).toEqual(["grafanaAdminPassword"]);
  });
});
