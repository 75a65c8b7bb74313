/** Checks inputs against the typings: what is unknown, missing or of the wrong type, with its path. */
import type { Property, Shape } from "./typings";

/** What the engine puts in place of a value that is not known yet. */
export const UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9";
/** Key under which Pulumi marks special values such as assets and secrets. */
export const SIGNATURE = "4dabf18193072939515e22adb298388d";

/** A refused input. */
export interface Refusal {
  /** e.g. `nodeConfig.guestAccelerators[0].count` */
  path: string;
  reason: string;
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function described(value: unknown): string {
  if (Array.isArray(value)) return "a list";
  if (isObject(value)) return "an object";
  return `${typeof value} ${JSON.stringify(value)}`;
}

/** Problems of an object with these properties. `owner` names the type in messages. */
export function checkObject(
  value: Record<string, unknown>,
  properties: ReadonlyMap<string, Property>,
  owner: string,
  path = "",
): Refusal[] {
  const at = (key: string): string => (path ? `${path}.${key}` : key);
  const refusals: Refusal[] = [];
  for (const [key, entry] of Object.entries(value)) {
    if (key.startsWith("__")) continue;
    const property = properties.get(key);
    if (!property) refusals.push({ path: at(key), reason: `${owner} has no property "${key}"` });
    else if (entry !== null && entry !== undefined)
      refusals.push(...checkValue(entry, property.shape, at(key)));
  }
  for (const [key, property] of properties) {
    if (property.required && (value[key] === undefined || value[key] === null)) {
      refusals.push({ path: at(key), reason: `${owner} needs the property "${key}"` });
    }
  }
  return refusals;
}

function checkValue(value: unknown, shape: Shape, path: string): Refusal[] {
  if (value === UNKNOWN) return [];
  const wrong = (expected: string): Refusal[] => [
    { path, reason: `expected ${expected}, got ${described(value)}` },
  ];
  switch (shape.kind) {
    case "any":
      return [];
    case "asset":
      return isObject(value) && SIGNATURE in value ? [] : wrong("an asset");
    case "array":
      if (!Array.isArray(value)) return wrong("a list");
      return value.flatMap((entry, index) => checkValue(entry, shape.of, `${path}[${index}]`));
    case "map":
      if (!isObject(value)) return wrong("a map");
      return Object.entries(value).flatMap(([key, entry]) =>
        checkValue(entry, shape.of, `${path}["${key}"]`),
      );
    case "object":
      return isObject(value)
        ? checkObject(value, shape.properties, shape.name, path)
        : wrong(`an object (${shape.name})`);
    case "oneOf": {
      const attempts = shape.of.map((option) => checkValue(value, option, path));
      return attempts.find((refusals) => refusals.length === 0) ?? attempts[0] ?? [];
    }
    default:
      return typeof value === shape.kind ? [] : wrong(shape.kind);
  }
}
