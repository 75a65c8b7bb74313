/** Configuration of a stack as the CLI computes it: defaults of Pulumi.yaml's declarations under Pulumi.<stack>.yaml. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";

export interface StackConfigValues {
  /** Full keys (`project:key`); values that are no texts as JSON. */
  readonly values: Readonly<Record<string, string>>;
  readonly secretKeys: readonly string[];
}

export type ConfigValue = string | number | boolean | ConfigValue[] | { [key: string]: ConfigValue };

interface ProjectFile {
  readonly name: string;
  readonly main?: string;
  readonly config?: Readonly<
    Record<
      string,
      | { readonly default?: ConfigValue; readonly value?: ConfigValue; readonly secret?: boolean }
      | ConfigValue
    >
  >;
}

/** Name and entry point of the project in a folder. */
export function readProject(programDir: string): ProjectFile {
  return parse(readFileSync(join(programDir, "Pulumi.yaml"), "utf8")) as ProjectFile;
}

/**
 * @param stack reads `Pulumi.<stack>.yaml` too; absent means no stack file
 * @param overrides values of single keys; undefined removes a key, which leaves its default
 * @param secrets values of keys that the stack file keeps encrypted, or that it lacks
 * @throws when the stack file has an encrypted value for which `secrets` has none
 */
export function stackConfig(
  programDir: string,
  stack: string | undefined,
  overrides: Readonly<Record<string, ConfigValue | undefined>> = {},
  secrets: Readonly<Record<string, string>> = {},
): StackConfigValues {
  const project = readProject(programDir);
  const full = (key: string): string => (key.includes(":") ? key : `${project.name}:${key}`);
  const values = new Map<string, string>();
  const secretKeys = new Set<string>();
  for (const [key, declared] of Object.entries(project.config ?? {})) {
    const schema = typeof declared === "object" && !Array.isArray(declared) ? declared : { value: declared };
    const value = schema.value ?? schema.default;
    if (value !== undefined) values.set(full(key), asText(value));
    if (schema.secret === true) secretKeys.add(full(key));
  }
  const removed = new Set(Object.keys(overrides).map(full));
  const own = stack === undefined ? {} : readStack(programDir, stack);
  for (const [key, value] of Object.entries(own)) {
    if (removed.has(full(key))) continue;
    if (isEncrypted(value)) {
      if (!(key in secrets))
        throw new Error(`Pulumi.${stack}.yaml encrypts ${key}: give the test a value for it.`);
      secretKeys.add(full(key));
    } else {
      values.set(full(key), asText(value));
    }
  }
  for (const [key, value] of Object.entries(secrets)) {
    values.set(full(key), value);
    secretKeys.add(full(key));
  }
  for (const [key, value] of Object.entries(overrides)) {
    if (value !== undefined) values.set(full(key), asText(value));
  }
  return { values: Object.fromEntries(values), secretKeys: [...secretKeys] };
}

function readStack(programDir: string, stack: string): Record<string, ConfigValue> {
  const file = parse(readFileSync(join(programDir, `Pulumi.${stack}.yaml`), "utf8")) as {
    config?: Record<string, ConfigValue>;
  };
  return file.config ?? {};
}

const asText = (value: ConfigValue): string => (typeof value === "string" ? value : JSON.stringify(value));

const isEncrypted = (value: ConfigValue): boolean =>
  typeof value === "object" && !Array.isArray(value) && "secure" in value;
