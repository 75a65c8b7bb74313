/** What a rule is, and how it reads a resource. Rules are plain functions: they know neither Pulumi nor each other. */

/** Inputs of a resource, as JSON. In a preview reading an unknown value throws, and Pulumi asks again during the update. */
export type Properties = Readonly<Record<string, unknown>>;

/** A resource as a rule sees it. */
export interface Resource {
  /** Pulumi type token, e.g. `gcp:storage/bucket:Bucket`. */
  readonly type: string;
  /** Logical name. */
  readonly name: string;
  readonly properties: Properties;
  /** Pulumi's own protection against deletion. */
  readonly protect: boolean;
}

export interface Rule {
  /** Kebab-case; what exceptions and messages call it. */
  readonly name: string;
  /** What must hold. */
  readonly description: string;
  /** How to make it hold. */
  readonly fix: string;
  /** Types it looks at. */
  readonly appliesTo: (type: string) => boolean;
  /** What is wrong with a resource, one sentence each; nothing for a good one. */
  readonly violations: (resource: Resource) => string[];
}

/** True for exactly these types. */
export const types =
  (...tokens: readonly string[]) =>
  (type: string): boolean =>
    tokens.includes(type);

/** The value at a path such as `nodeConfig.taints`; undefined where there is none. */
export function valueAt(properties: Properties, path: string): unknown {
  return path.split(".").reduce<unknown>((here, key) => (isObject(here) ? here[key] : undefined), properties);
}

/** The list at a path; empty where there is none. */
export function listAt(properties: Properties, path: string): readonly unknown[] {
  const value = valueAt(properties, path);
  return Array.isArray(value) ? (value as unknown[]) : [];
}

/** The objects of the list at a path. */
export const objectsAt = (properties: Properties, path: string): readonly Properties[] =>
  listAt(properties, path).filter(isObject);

/** The text at a path; empty where there is none. */
export function textAt(properties: Properties, path: string): string {
  const value = valueAt(properties, path);
  return typeof value === "string" ? value : "";
}

export function isObject(value: unknown): value is Properties {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
