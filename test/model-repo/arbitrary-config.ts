import fc from "fast-check";
import { configEnums, configMessages, configOneofs } from "../../model-repo/config-schema";
import { fieldKind, type ModelConfig } from "../../model-repo/config-types";

const enums: Readonly<Record<string, readonly string[]>> = configEnums;
const messages: Readonly<Record<string, Readonly<Record<string, string>>>> = configMessages;
const text = fc.oneof(
  fc.string({ maxLength: 8 }),
  fc.string({ unit: "grapheme", maxLength: 8 }),
  fc.constantFrom("a\nb\t\"'\\", "#no"),
);

function value(type: string): fc.Arbitrary<unknown> {
  if (Object.hasOwn(messages, type)) return message(type);
  const names = enums[type];
  if (names !== undefined) return fc.constantFrom(...names);
  if (type === "string") return text;
  if (type === "bool") return fc.boolean();
  if (type === "float" || type === "double") return fc.double({ noNaN: true });
  if (type === "int32") return fc.integer();
  if (type === "uint32") return fc.integer({ min: 0, max: 2 ** 32 - 1 });
  return type === "int64" ? fc.maxSafeInteger() : fc.maxSafeNat();
}

function field(spelling: string): fc.Arbitrary<unknown> {
  const kind = fieldKind(spelling);
  if (kind.form === "map") {
    const key = kind.keyType === "string" ? text : fc.maxSafeNat().map(String);
    const entries = fc.array(fc.tuple(key, value(kind.type)), { minLength: 1, maxLength: 3 });
    return entries.map((pairs) => Object.fromEntries(pairs));
  }
  if (kind.form === "repeated") return fc.array(value(kind.type), { minLength: 1, maxLength: 3 });
  return value(kind.type);
}

/** Any message of the schema: every field may be there, of a oneof at most one. */
function message(type: string): fc.Arbitrary<Record<string, unknown>> {
  const fields = messages[type] as Readonly<Record<string, string>>;
  const arbitraries = Object.fromEntries(
    Object.entries(fields).map(([name, spelling]) => [name, field(spelling)]),
  );
  const whole = fc.record(arbitraries, { requiredKeys: [] });
  return whole.map((generated) => {
    for (const group of configOneofs[type] ?? [])
      for (const extra of group.filter((name) => Object.hasOwn(generated, name)).slice(1))
        delete generated[extra];
    return generated;
  });
}

export const arbitraryConfig = message("ModelConfig") as fc.Arbitrary<ModelConfig>;
