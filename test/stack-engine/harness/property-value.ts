/**
 * Property values as they cross the wire between a Pulumi program and the engine, decoded so that tests can see what
 * mocks hide: unknowns, secrets, assets and resource references.
 *
 * The signatures are Pulumi's own (sdk/nodejs/runtime/rpc.ts in pulumi/pulumi).
 */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";

const UNKNOWN_SENTINEL = "04da6b54-80e4-46f7-96ec-b56ff0331ba9";
const SIGNATURE_KEY = "4dabf18193072939515e22adb298388d";
const SECRET_SIGNATURE = "1b47061264138c4ac30d75fd1eb44270";
const ASSET_SIGNATURE = "c44067f5952c0a294b673a41bacd8c17";
const ARCHIVE_SIGNATURE = "0def7320c3a5731c473e5ecbe6d01bc7";
const RESOURCE_SIGNATURE = "5cf8f73096256a8f31e491e813e4eb8e";
const OUTPUT_SIGNATURE = "d0e6a833031e9bbcd3f4e8bde6ca49a4";

/** A value that is not known before the resource exists. */
export class Unknown {
  readonly kind = "unknown";
}

/** A value that the program marked secret. */
export class Secret {
  readonly kind = "secret";
  constructor(readonly value: PropertyValue) {}
}

/** A file, text or archive handed to a provider. Two assets are equal when their contents are. */
export class Asset {
  readonly kind = "asset";
  /** `hash` is of the contents for texts and single files, of the address for the rest. */
  constructor(
    readonly source: "text" | "path" | "uri" | "archive",
    readonly content: string,
    readonly hash: string,
  ) {}
}

/** A reference to another resource, passed as a value. */
export class ResourceReference {
  readonly kind = "resource";
  constructor(readonly urn: string) {}
}

export interface PropertyMap {
  [key: string]: PropertyValue;
}

export type PropertyValue =
  | null
  | boolean
  | number
  | string
  | Unknown
  | Secret
  | Asset
  | ResourceReference
  | PropertyValue[]
  | PropertyMap;

/** JSON without any of Pulumi's special values. */
export type Plain = null | boolean | number | string | Plain[] | { [key: string]: Plain };

export const UNKNOWN = new Unknown();

const sha256 = (content: string | Buffer): string => createHash("sha256").update(content).digest("hex");

/** True for an object that is a map of properties and none of the special values. */
export function isMap(value: PropertyValue | undefined): value is PropertyMap {
  return (
    typeof value === "object" &&
    value !== null &&
    !Array.isArray(value) &&
    !(value instanceof Unknown) &&
    !(value instanceof Secret) &&
    !(value instanceof Asset) &&
    !(value instanceof ResourceReference)
  );
}

/**
 * Decodes what `Struct.toJavaScript()` returns.
 *
 * @param programDir folder that relative asset paths refer to
 * @throws when a special value has a signature this harness does not know
 */
export function decode(wire: unknown, programDir: string): PropertyValue {
  if (wire === null || wire === undefined) return null;
  if (wire === UNKNOWN_SENTINEL) return UNKNOWN;
  if (typeof wire === "string" || typeof wire === "number" || typeof wire === "boolean") return wire;
  if (Array.isArray(wire)) return wire.map((item) => decode(item, programDir));
  if (typeof wire !== "object") throw new Error(`A ${typeof wire} cannot be a property value.`);
  const map = wire as Record<string, unknown>;
  const signature = map[SIGNATURE_KEY];
  if (signature === undefined) return decodeMap(map, programDir);
  switch (signature) {
    case SECRET_SIGNATURE:
      return new Secret(decode(map.value, programDir));
    case OUTPUT_SIGNATURE: {
      const value = "value" in map ? decode(map.value, programDir) : UNKNOWN;
      return map.secret === true ? new Secret(value) : value;
    }
    case RESOURCE_SIGNATURE:
      return new ResourceReference(String(map.urn));
    case ASSET_SIGNATURE:
      return decodeAsset(map, programDir);
    case ARCHIVE_SIGNATURE: {
      const address = JSON.stringify(map.path ?? map.uri ?? map.assets);
      return new Asset("archive", address, sha256(address));
    }
    default:
      throw new Error(`Property value with the unknown signature ${JSON.stringify(signature)}.`);
  }
}

/** Decodes the properties of a request; entries that are undefined on the wire are left out. */
export function decodeMap(wire: Record<string, unknown>, programDir: string): PropertyMap {
  return Object.fromEntries(Object.entries(wire).map(([key, value]) => [key, decode(value, programDir)]));
}

function decodeAsset(map: Record<string, unknown>, programDir: string): Asset {
  if (typeof map.text === "string") return new Asset("text", map.text, sha256(map.text));
  if (typeof map.path === "string") {
    const content = readFileSync(resolve(programDir, map.path));
    return new Asset("path", map.path, sha256(content));
  }
  if (typeof map.uri === "string") return new Asset("uri", map.uri, sha256(map.uri));
  throw new Error(`Asset without text, path or uri: ${JSON.stringify(map)}`);
}

type Wire = null | boolean | number | string | Wire[] | { [key: string]: Wire };

/** The inverse of {@link decode}, as `Struct.fromJavaScript()` takes it. */
export function encode(value: PropertyValue): Wire {
  if (value instanceof Unknown) return UNKNOWN_SENTINEL;
  if (value instanceof Secret) return { [SIGNATURE_KEY]: SECRET_SIGNATURE, value: encode(value.value) };
  if (value instanceof ResourceReference) return { [SIGNATURE_KEY]: RESOURCE_SIGNATURE, urn: value.urn };
  if (value instanceof Asset) return encodeAsset(value);
  if (Array.isArray(value)) return value.map(encode);
  return isMap(value) ? encodeMap(value) : value;
}

/** {@link encode} for the properties of a resource. */
export function encodeMap(map: PropertyMap): { [key: string]: Wire } {
  return Object.fromEntries(Object.entries(map).map(([key, item]) => [key, encode(item)]));
}

function encodeAsset(asset: Asset): Wire {
  if (asset.source === "archive") {
    return { [SIGNATURE_KEY]: ARCHIVE_SIGNATURE, hash: asset.hash, path: asset.content };
  }
  return { [SIGNATURE_KEY]: ASSET_SIGNATURE, hash: asset.hash, [asset.source]: asset.content };
}

/**
 * The value without its secret wrappers.
 *
 * @param unknown what stands for an unknown value and, in texts, for an asset's hash; by default unknowns throw
 * @throws when the value holds an unknown and no stand-in is given
 */
export function plain(value: PropertyValue | undefined, unknown?: Plain): Plain {
  if (value === undefined) return null;
  if (value instanceof Unknown) {
    if (unknown === undefined)
      throw new Error("The value is unknown; pass a stand-in or look at a run that is no preview.");
    return unknown;
  }
  if (value instanceof Secret) return plain(value.value, unknown);
  if (value instanceof Asset) return value.source === "text" ? value.content : `asset ${value.hash}`;
  if (value instanceof ResourceReference) return value.urn;
  if (Array.isArray(value)) return value.map((item) => plain(item, unknown));
  if (isMap(value)) {
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, plain(item, unknown)]));
  }
  return value;
}

/** `a.b[0].c`; keys that are no plain words are quoted: `labels["app.kubernetes.io/name"]`. */
export function joinPath(path: string, key: string | number): string {
  if (typeof key === "number") return `${path}[${key}]`;
  if (!/^[A-Za-z_$][\w$-]*$/.test(key)) return `${path}[${JSON.stringify(key)}]`;
  return path === "" ? key : `${path}.${key}`;
}

/** Calls `visit` for the value and everything in it, outermost first; secrets are opened. */
export function walk(
  value: PropertyValue,
  visit: (path: string, value: PropertyValue, secret: boolean) => void,
  path = "",
  secret = false,
): void {
  visit(path, value, secret || value instanceof Secret);
  if (value instanceof Secret) {
    walk(value.value, visit, path, true);
  } else if (Array.isArray(value)) {
    value.forEach((item, index) => walk(item, visit, joinPath(path, index), secret));
  } else if (isMap(value)) {
    for (const [key, item] of Object.entries(value)) walk(item, visit, joinPath(path, key), secret);
  }
}

/** Paths of all values that are not known. */
export function unknownPaths(value: PropertyValue): string[] {
  const paths: string[] = [];
  walk(value, (path, item) => {
    if (item instanceof Unknown) paths.push(path);
  });
  return paths;
}

/** Paths of all values that are marked secret. */
export function secretPaths(value: PropertyValue): string[] {
  const paths: string[] = [];
  walk(value, (path, item) => {
    if (item instanceof Secret) paths.push(path);
  });
  return paths;
}

/** All texts that appear outside secrets: what a reader of the state or of the console may see. */
export function clearTexts(value: PropertyValue): string[] {
  const texts: string[] = [];
  walk(value, (_path, item, secret) => {
    if (secret) return;
    if (typeof item === "string") texts.push(item);
    if (item instanceof Asset) texts.push(item.content);
  });
  return texts;
}

/** The value at a path such as `nodeConfig.taints[0].key`, secrets opened on the way; undefined where there is none. */
export function at(value: PropertyValue | undefined, path: string): PropertyValue | undefined {
  let here = value;
  for (const step of splitPath(path)) {
    while (here instanceof Secret) here = here.value;
    if (Array.isArray(here)) here = here[Number(step)];
    else if (isMap(here)) here = here[step];
    else return undefined;
  }
  return here;
}

/** The steps of a path made by {@link joinPath}. */
export function splitPath(path: string): string[] {
  const steps: string[] = [];
  for (const match of path.matchAll(/\["((?:[^"\\]|\\.)*)"\]|\[([\d*]+)\]|([^.[\]]+)/g)) {
    const quoted = match[1];
    steps.push(quoted !== undefined ? (JSON.parse(`"${quoted}"`) as string) : (match[2] ?? match[3] ?? ""));
  }
  return steps;
}
