/** Pulumi.yaml, the stack files and the parser say the same. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { parseConfig } from "../../stack/config";
import { configKeys, type ConfigKey } from "../../stack/config-keys";
import { keyPrefix, readStackFile } from "../../stack/stack-file";

const folder = join(__dirname, "../..");
const project = parse(readFileSync(join(folder, "Pulumi.yaml"), "utf8")) as {
  name: string;
  config: Record<
    string,
    { type?: string; items?: { type: string }; default?: unknown; description?: string }
  >;
};

it("has the name that prefixes every key", () => {
  expect(`${project.name}:`).toBe(keyPrefix);
});

it("declares exactly the keys that are read, in the same order", () => {
  expect(Object.keys(project.config)).toEqual(Object.keys(configKeys));
});

it.each(Object.keys(configKeys) as ConfigKey[])(
  "declares %s with its type, default and description",
  (key) => {
    const spec = configKeys[key];
    const { items, ...declared } = project.config[key] ?? {};
    const type = spec.type === null ? {} : { type: spec.type };
    expect(declared).toEqual({ ...type, default: spec.default, description: spec.description });
    expect(items).toEqual(spec.type === "array" ? { type: "string" } : undefined);
    expect(spec.description).toMatch(/^.{15,}\.$/);
  },
);

it("leaves only keys without a type that take a name or an object", () => {
  const untyped = Object.keys(project.config).filter((key) => project.config[key]?.type === undefined);
  expect(untyped).toEqual(["variant", "repositoryVariants", "model"]);
});

describe.each(["dev", "prod"])("Pulumi.%s.yaml", (stack) => {
  const raw = readStackFile(folder, stack);

  it("needs nothing but a project, asleep and awake", () => {
    for (const asleep of ["true", "false"]) {
      expect(parseConfig({ ...raw, asleep, project: "my-project" }).environment).toBe(stack);
    }
  });

  it("starts asleep, because nothing is converted yet", () => {
    expect(raw.asleep).toBe("true");
  });

  it("sets types as Pulumi checks them: lists as lists, all else as text", () => {
    const { config } = parse(readFileSync(join(folder, `Pulumi.${stack}.yaml`), "utf8")) as {
      config: Record<string, unknown>;
    };
    for (const [key, value] of Object.entries(config)) {
      const isList =
        key.startsWith(keyPrefix) && configKeys[key.slice(keyPrefix.length) as ConfigKey].type === "array";
      if (key.startsWith(keyPrefix))
        expect(Array.isArray(value) ? "array" : typeof value, key).toBe(isList ? "array" : "string");
    }
  });
});

it("makes prod safe and dev cheap", () => {
  const prod = parseConfig({ ...readStackFile(folder, "prod"), project: "my-project", asleep: "false" });
  const dev = parseConfig({ ...readStackFile(folder, "dev"), project: "my-project", asleep: "false" });
  expect(prod).toMatchObject({ protect: true, gpuMaxNodes: 2, tritonReplicas: 2, gpuSpot: false });
  expect(dev).toMatchObject({ protect: false, gpuSpot: true, gpuMinNodes: 0, zonesUsed: ["us-central1-a"] });
});
