/** Triton's `config` override of a load: a model configuration as JSON. */
import { configEnums, configMessages, configOneofs } from "../../model-repo/config-schema";
import { fieldKind, type ModelConfig } from "../../model-repo/config-types";

type FieldTypes = Readonly<Record<string, string>>;
type Message = Readonly<Record<string, unknown>>;

const messages: Readonly<Record<string, FieldTypes>> = configMessages;
const enums: Readonly<Record<string, readonly string[]>> = configEnums;

/** Inclusive ranges of the integer types; 64-bit ones as far as numbers are exact. */
const RANGES: Readonly<Record<string, readonly [number, number]>> = {
  int32: [-(2 ** 31), 2 ** 31 - 1],
  uint32: [0, 2 ** 32 - 1],
  int64: [-Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER],
  uint64: [0, Number.MAX_SAFE_INTEGER],
};

/** The text is not JSON of a model configuration; the message names the field. */
export class ConfigJsonError extends Error {}

/**
 * Reads an override as strictly as protobuf's JSON parser: unknown fields, wrong types and two members of a oneof are errors;
 * null means unset; 64-bit integers may be strings; enums may be names or numbers.
 * @throws ConfigJsonError
 */
export function parseConfigJson(text: string): ModelConfig {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    throw new ConfigJsonError(`not JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
  return readMessage("ModelConfig", json, "config");
}

function readMessage(type: string, json: unknown, path: string): Message {
  if (typeof json !== "object" || json === null || Array.isArray(json)) {
    throw new ConfigJsonError(`${path} must be an object`);
  }
  const types = messages[type]!;
  const fields: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(json)) {
    const spelling = Object.hasOwn(types, name) ? types[name] : undefined;
    if (spelling === undefined) throw new ConfigJsonError(`${path} has an unknown field '${name}'`);
    if (value !== null) fields[name] = readField(spelling, value, `${path}.${name}`);
  }
  for (const group of configOneofs[type] ?? []) {
    const set = group.filter((name) => name in fields);
    if (set.length > 1)
      throw new ConfigJsonError(`${path} sets ${set.join(" and ")}; only one of them may be`);
  }
  return fields;
}

function readField(spelling: string, json: unknown, path: string): unknown {
  const kind = fieldKind(spelling);
  if (kind.form === "singular") return readValue(kind.type, json, path);
  if (kind.form === "repeated") {
    if (!Array.isArray(json)) throw new ConfigJsonError(`${path} must be a list`);
    return json.map((element, index) => readValue(kind.type, element, `${path}[${index}]`));
  }
  if (typeof json !== "object" || json === null || Array.isArray(json)) {
    throw new ConfigJsonError(`${path} must be an object`);
  }
  const entries = Object.entries(json).map(([key, value]) => [
    key,
    readValue(kind.type, value, `${path}.${key}`),
  ]);
  return Object.fromEntries(entries) as unknown;
}

function readValue(type: string, json: unknown, path: string): unknown {
  if (Object.hasOwn(messages, type)) return readMessage(type, json, path);
  const names = enums[type];
  if (names !== undefined) {
    const name = typeof json === "number" ? names[json] : names.find((candidate) => candidate === json);
    if (name === undefined)
      throw new ConfigJsonError(`${path} is ${JSON.stringify(json)}; ${type} has ${names.join(", ")}`);
    return name;
  }
  if (type === "string" || type === "bool") {
    if (typeof json !== (type === "string" ? "string" : "boolean")) {
      throw new ConfigJsonError(`${path} must be a ${type}, not ${JSON.stringify(json)}`);
    }
    return json;
  }
  const value = typeof json === "string" && json.trim() !== "" ? Number(json) : json;
  const range = RANGES[type];
  const valid =
    typeof value === "number" &&
    (range === undefined
      ? !Number.isNaN(value)
      : Number.isInteger(value) && value >= range[0] && value <= range[1]);
  if (!valid)
    throw new ConfigJsonError(`${path} must be a number of type ${type}, not ${JSON.stringify(json)}`);
  return value;
}
