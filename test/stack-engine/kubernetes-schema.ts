/**
 * Strict check of Kubernetes manifests: no field that the API does not know, none of the wrong type, none missing that it
 * demands. The API version is that of the pinned @kubernetes/client-node, whose typings are generated from Kubernetes'
 * OpenAPI document.
 */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import type { Plain } from "./harness";

const packageDir = dirname(dirname(createRequire(__filename).resolve("@kubernetes/client-node")));
const modelDir = join(packageDir, "dist/gen/models");

interface Field {
  readonly name: string;
  readonly required: boolean;
  /** As in the typings: `string`, `Array<V1Container>`, `{ [key: string]: string; }`, `V1PodSpec`. */
  readonly type: string;
}

const models = new Map<string, ReadonlyMap<string, Field>>();

/** Fields of a model, or undefined when the API has none of that name. */
function fieldsOf(model: string): ReadonlyMap<string, Field> | undefined {
  const known = models.get(model);
  if (known !== undefined) return known;
  let source: string;
  try {
    source = readFileSync(join(modelDir, `${model}.d.ts`), "utf8");
  } catch {
    return undefined;
  }
  const fields = new Map<string, Field>();
  for (const match of source.matchAll(/^ {4}'([\w$-]+)'(\??): ((?:\{[^}]*\}|[^;{])+);/gm)) {
    // The generator puts `_` before words that are reserved in some language: `_from`, `_default`.
    const name = (match[1] ?? "").replace(/^_/, "");
    fields.set(name, { name, required: match[2] === "", type: (match[3] ?? "").replaceAll(/\s+/g, " ") });
  }
  models.set(model, fields);
  return fields;
}

/** Version of the Kubernetes API that the typings describe, e.g. `v1.34.0`. */
export function apiVersionChecked(): string {
  const header = readFileSync(join(modelDir, "V1Pod.d.ts"), "utf8");
  return /OpenAPI spec version: (\S+)/.exec(header)?.[1] ?? "unknown";
}

/**
 * Everything in a manifest that the API server's strict validation would refuse.
 *
 * @returns sentences that start with the path, e.g. `spec.replicas: is "2", must be a number`
 */
export function schemaProblems(manifest: Plain): string[] {
  if (typeof manifest !== "object" || manifest === null || Array.isArray(manifest)) return ["is no object"];
  const { apiVersion, kind } = manifest;
  if (typeof apiVersion !== "string" || typeof kind !== "string") return ["apiVersion and kind are missing"];
  const version = apiVersion.split("/").at(-1) ?? "";
  const model = `V${version.slice(1)}${kind}`;
  if (fieldsOf(model) === undefined)
    return [`kind: ${apiVersion} ${kind} is not in Kubernetes ${apiVersionChecked()}`];
  return check(manifest, model, "");
}

function check(value: Plain, type: string, path: string): string[] {
  const array = /^Array<(.*)>$/.exec(type);
  if (array) {
    if (!Array.isArray(value)) return [wrong(path, value, "a list")];
    return value.flatMap((item, index) => check(item, array[1] ?? "", `${path}[${index}]`));
  }
  const map = /^\{ \[key: string\]: (.*?);? \}$/.exec(type);
  if (map) {
    if (!isObject(value)) return [wrong(path, value, "a map")];
    return Object.entries(value).flatMap(([key, item]) =>
      check(item, map[1] ?? "", `${path}[${JSON.stringify(key)}]`),
    );
  }
  switch (type) {
    case "any":
      return [];
    case "string":
    case "number":
    case "boolean":
      return typeof value === type ? [] : [wrong(path, value, `a ${type}`)];
    case "IntOrString":
      return typeof value === "string" || Number.isInteger(value)
        ? []
        : [wrong(path, value, "a whole number or a text")];
    case "Date":
    case "V1MicroTime":
      return typeof value === "string" && !Number.isNaN(Date.parse(value))
        ? []
        : [wrong(path, value, "a time")];
    default:
      return checkModel(value, type, path);
  }
}

function checkModel(value: Plain, model: string, path: string): string[] {
  const fields = fieldsOf(model);
  if (fields === undefined)
    throw new Error(`The typings of @kubernetes/client-node have no ${model} (at ${path}).`);
  if (!isObject(value)) return [wrong(path, value, `an object (${model})`)];
  const at = (name: string): string => (path === "" ? name : `${path}.${name}`);
  const missing = [...fields.values()].filter(
    ({ name, required }) => required && (value[name] ?? null) === null,
  );
  return [
    ...missing.map(({ name }) => `${at(name)}: is missing`),
    ...Object.entries(value).flatMap(([name, item]) => {
      const field = fields.get(name);
      if (field === undefined) return [`${at(name)}: is no field of ${model}`];
      return item === null ? [] : check(item, field.type, at(name));
    }),
  ];
}

const isObject = (value: Plain): value is { [key: string]: Plain } =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const wrong = (path: string, value: Plain, wanted: string): string =>
  `${path}: is ${JSON.stringify(value)}, must be ${wanted}`;
