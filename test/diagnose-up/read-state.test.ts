import { describe, expect, it } from "vitest";
import { readState } from "../../diagnose-up/read-state";

const state = (resources: unknown[]) => ({ version: 3, deployment: { resources } });

describe("readState", () => {
  it("finds cluster access, namespaces and names", () => {
    const exported = state([
      { type: "gcp:container/cluster:Cluster", inputs: { project: "p", location: "us-central1-a" } },
      { type: "gcp:storage/bucket:Bucket", inputs: { name: "models-1", project: "p" } },
      { type: "pulumi:providers:kubernetes", inputs: { kubeconfig: "{}" } },
      { type: "kubernetes:core/v1:Namespace", inputs: { metadata: { name: "triton" } } },
      { type: "kubernetes:core/v1:Namespace", inputs: { metadata: { name: "load" } } },
    ]);
    expect(readState(exported)).toEqual({
      kubeconfig: "{}",
      namespaces: ["triton", "load"],
      names: { project: "p", location: "us-central1-a", bucket: "models-1" },
    });
  });

  it("reads a kubeconfig that is a secret", () => {
    const secret = {
      "4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270",
      plaintext: '"{\\"a\\":1}"',
    };
    const exported = state([{ type: "pulumi:providers:kubernetes", inputs: { kubeconfig: secret } }]);
    expect(readState(exported).kubeconfig).toBe('{"a":1}');
  });

  it("an empty stack has no cluster", () => {
    expect(readState({ version: 3, deployment: {} })).toMatchObject({
      kubeconfig: undefined,
      namespaces: [],
    });
  });

  it("anything else is refused", () => {
    expect(() => readState({ resources: [] })).toThrow("pulumi stack export");
  });
});
