/** Writes a model configuration as config.pbtxt (protobuf text format). */
import { configMessages } from "./config-schema";
import { fieldKind, type ModelConfig } from "./config-types";
import { declaredModelConfig, type ModelConfigOptions } from "./model-config";
import type { Variant } from "./variant";

type Message = Readonly<Record<string, unknown>>;
const messages: Readonly<Record<string, Readonly<Record<string, string>>>> = configMessages;
const indentation = "  ";

const escapes: Readonly<Record<string, string>> = {
  "\\": "\\\\",
  '"': '\\"',
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
};

function quoted(text: string): string {
  const escaped = Array.from(text, (character) => {
    const code = character.charCodeAt(0);
    if (code >= 32 && code !== 127) return escapes[character] ?? character;
    return escapes[character] ?? `\\${code.toString(8).padStart(3, "0")}`;
  });
  return `"${escaped.join("")}"`;
}

function scalar(type: string, value: unknown): string {
  if (type === "string") return quoted(value as string);
  if (typeof value === "number" && !Number.isFinite(value))
    return Number.isNaN(value) ? "nan" : value > 0 ? "inf" : "-inf";
  return Object.is(value, -0) ? "-0" : String(value);
}

function isMessage(type: string): boolean {
  return Object.hasOwn(messages, type);
}

function block(type: string, value: Message, indent: string): string[] {
  return [
    "{",
    ...fields(messages[type] as Readonly<Record<string, string>>, value, indent + indentation),
    `${indent}}`,
  ];
}

/** Lines of one value; the first line carries no indentation. */
function valueLines(type: string, value: unknown, indent: string): string[] {
  return isMessage(type) ? block(type, value as Message, indent) : [scalar(type, value)];
}

function repeatedLines(name: string, type: string, list: readonly unknown[], indent: string): string[] {
  if (list.length === 0) return [];
  if (!isMessage(type))
    return [`${indent}${name}: [ ${list.map((value) => scalar(type, value)).join(", ")} ]`];
  const inner = indent + indentation;
  const elements = list.map((value) => inner + valueLines(type, value, inner).join("\n"));
  return [`${indent}${name} [`, elements.join(",\n"), `${indent}]`];
}

function mapLines(name: string, keyType: string, type: string, map: Message, indent: string): string[] {
  const inner = indent + indentation;
  return Object.entries(map).flatMap(([key, value]) => {
    const [first = "", ...rest] = valueLines(type, value, inner);
    const colon = isMessage(type) ? "" : ":";
    return [
      `${indent}${name} {`,
      `${inner}key: ${scalar(keyType, key)}`,
      `${inner}value${colon} ${first}`,
      ...rest,
      `${indent}}`,
    ];
  });
}

function fields(types: Readonly<Record<string, string>>, message: Message, indent: string): string[] {
  return Object.entries(types).flatMap(([name, spelling]) => {
    const value = message[name];
    if (value === undefined) return [];
    const kind = fieldKind(spelling);
    if (kind.form === "repeated") return repeatedLines(name, kind.type, value as readonly unknown[], indent);
    if (kind.form === "map") return mapLines(name, kind.keyType, kind.type, value as Message, indent);
    const [first = "", ...rest] = valueLines(kind.type, value, indent);
    return [`${indent}${name}${isMessage(kind.type) ? "" : ":"} ${first}`, ...rest];
  });
}

/** A configuration as text, fields in the order of config-schema.ts. Empty lists and maps are left out: they say nothing. */
export function writeConfigPbtxt(config: ModelConfig): string {
  return `${fields(configMessages.ModelConfig, config, "").join("\n")}\n`;
}

/** First words of every generated file: writeRepository knows its own files by it. */
export const generatedMarker = "# Generated from the variant catalogue";

/** config.pbtxt of a variant: what has to be said; Triton fills in the rest. */
export function toConfigPbtxt(variant: Variant, options?: ModelConfigOptions): string {
  const header = `${generatedMarker}; change the variant, not this file.\n`;
  return header + writeConfigPbtxt(declaredModelConfig(variant, options));
}
