/**
 * Reads config.pbtxt: the part of protobuf's text format that model configurations use. Comments, both list forms
 * (`dims: [ 1, 2 ]` and a repeated `dims: 1 dims: 2`), nested messages with and without a colon, in `{}` or `<>`, enums by
 * name or number, strings with escapes and concatenation, and the separators `,` and `;`.
 */
import { configEnums, configMessages, configOneofs } from "./config-schema";
import { fieldKind, type FieldKind, type ModelConfig } from "./config-types";
import { didYouMean } from "./nearest-name";
import type { Token } from "./pbtxt-lexer";
import { TokenCursor } from "./pbtxt-scalars";

export { PbtxtError } from "./pbtxt-lexer";

type Value = string | number | boolean | Value[] | { readonly [field: string]: Value };
/** While a message is being read its maps are kept as Maps, so that no key can meet a prototype. */
type Fields = Map<string, Value | Map<string, Value>>;
type FieldTypes = Readonly<Record<string, string>>;

const messages: Readonly<Record<string, FieldTypes>> = configMessages;
const enums: Readonly<Record<string, readonly string[]>> = configEnums;

class Parser {
  constructor(private readonly cursor: TokenCursor) {}

  /** Fields of a message up to `close`, or to the end of the file when `close` is null. */
  message(type: string, types: FieldTypes, close: string | null): { [field: string]: Value } {
    const cursor: TokenCursor = this.cursor;
    const fields: Fields = new Map();
    while (close === null ? cursor.token.kind !== "end" : !cursor.isSymbol(close)) {
      if (cursor.token.kind === "end") cursor.fail(`${type} is not closed: "${close}" is missing`);
      this.field(type, types, fields);
    }
    cursor.take();
    return Object.fromEntries(
      Array.from(fields, ([name, value]) => [name, value instanceof Map ? Object.fromEntries(value) : value]),
    );
  }

  private field(type: string, types: FieldTypes, fields: Fields): void {
    const cursor: TokenCursor = this.cursor;
    const name = cursor.token;
    if (name.kind !== "identifier") cursor.fail(`a field of ${type} is expected, not ${cursor.shown()}`);
    const spelling = Object.hasOwn(types, name.text) ? types[name.text] : undefined;
    if (spelling === undefined) {
      const names = Object.keys(types);
      cursor.fail(
        `${type} has no field "${name.text}"${didYouMean(name.text, names) || `; it has ${names.join(", ") || "none"}`}`,
      );
    }
    cursor.take();
    const kind = fieldKind(spelling);
    const isMessage = kind.form === "map" || Object.hasOwn(messages, kind.type);
    if (!cursor.takeSymbol(":") && !isMessage)
      cursor.fail(`":" is expected after ${name.text}, not ${cursor.shown()}`);
    if (kind.form === "map") this.map(name.text, kind, fields);
    else if (kind.form === "repeated") this.repeated(name.text, kind, fields);
    else this.singular(type, name, kind, fields);
    if (!cursor.takeSymbol(",")) cursor.takeSymbol(";");
  }

  private singular(type: string, name: Token, kind: FieldKind, fields: Fields): void {
    const cursor: TokenCursor = this.cursor;
    if (fields.has(name.text)) cursor.fail(`${name.text} is set a second time`, name);
    for (const group of configOneofs[type] ?? []) {
      const other = group.includes(name.text) ? group.find((member) => fields.has(member)) : undefined;
      if (other !== undefined)
        cursor.fail(`${name.text} is set beside ${other}: only one of ${group.join(", ")} may be`, name);
    }
    if (cursor.isSymbol("[")) cursor.fail(`${name.text} takes one value, not a list`);
    fields.set(name.text, this.value(name.text, kind.type));
  }

  private repeated(name: string, { type }: FieldKind, fields: Fields): void {
    const list = (fields.get(name) ?? []) as Value[];
    fields.set(name, list);
    this.each(name, () => list.push(this.value(name, type)));
  }

  private map(name: string, kind: Extract<FieldKind, { form: "map" }>, fields: Fields): void {
    const entries = (fields.get(name) ?? new Map<string, Value>()) as Map<string, Value>;
    fields.set(name, entries);
    const types = { key: kind.keyType, value: kind.type };
    this.each(name, () => {
      const entry = this.braced(name, `an entry of ${name}`, types);
      const empty: Value = kind.type === "string" ? "" : {};
      const key = (entry["key"] ?? (kind.keyType === "string" ? "" : 0)) as string | number;
      entries.set(String(key), entry["value"] ?? empty);
    });
  }

  /** Reads one element, or a list of them in brackets. */
  private each(name: string, read: () => void): void {
    const cursor: TokenCursor = this.cursor;
    if (!cursor.takeSymbol("[")) return read();
    if (cursor.takeSymbol("]")) return;
    do read();
    while (cursor.takeSymbol(","));
    if (!cursor.takeSymbol("]"))
      cursor.fail(`"," or "]" is expected in the list ${name}, not ${cursor.shown()}`);
  }

  private braced(name: string, type: string, types: FieldTypes): { [field: string]: Value } {
    const cursor: TokenCursor = this.cursor;
    if (cursor.takeSymbol("{")) return this.message(type, types, "}");
    if (cursor.takeSymbol("<")) return this.message(type, types, ">");
    return cursor.fail(`"{" is expected after ${name}, not ${cursor.shown()}`);
  }

  private value(name: string, type: string): Value {
    const cursor: TokenCursor = this.cursor;
    const types = messages[type];
    if (types !== undefined) return this.braced(name, type, types);
    const values = enums[type];
    if (values !== undefined) return cursor.enumerator(name, type, values);
    if (type === "string") return cursor.string(name);
    if (type === "bool") return cursor.boolean(name);
    if (type === "float" || type === "double") return cursor.real(name);
    return cursor.integer(name, type);
  }
}

/**
 * Parses a model configuration.
 * @param file name that error messages begin with
 * @throws PbtxtError with line and column; no other error
 */
export function parseConfigPbtxt(text: string, file = "config.pbtxt"): ModelConfig {
  return new Parser(new TokenCursor(text, file)).message("ModelConfig", configMessages.ModelConfig, null);
}
