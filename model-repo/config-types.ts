/** TypeScript types of Triton's model configuration, derived from the table in config-schema.ts. */
import type { configEnums, configMessages } from "./config-schema";

type Messages = typeof configMessages;
type Enums = typeof configEnums;

export type ConfigMessageName = keyof Messages;
export type ConfigEnumName = keyof Enums;

type ConfigValue<T> = T extends `repeated ${infer Element}`
  ? readonly ConfigValue<Element>[]
  : T extends `map<${string}, ${infer Value}>`
    ? Readonly<Record<string, ConfigValue<Value>>>
    : T extends "string"
      ? string
      : T extends "bool"
        ? boolean
        : T extends "int32" | "uint32" | "int64" | "uint64" | "float" | "double"
          ? number
          : T extends ConfigEnumName
            ? Enums[T][number]
            : T extends ConfigMessageName
              ? ConfigMessage<T>
              : never;

/** A configuration message: fields that are not set are absent; integers are numbers; enums are their names. */
export type ConfigMessage<Name extends ConfigMessageName> = {
  readonly [Field in keyof Messages[Name]]?: ConfigValue<Messages[Name][Field]>;
};

/** What a config.pbtxt says. */
export type ModelConfig = ConfigMessage<"ModelConfig">;
export type ModelInput = ConfigMessage<"ModelInput">;
export type ModelOutput = ConfigMessage<"ModelOutput">;
export type ModelInstanceGroup = ConfigMessage<"ModelInstanceGroup">;
export type ModelDynamicBatching = ConfigMessage<"ModelDynamicBatching">;
export type ModelWarmup = ConfigMessage<"ModelWarmup">;

/** Scalars of a oneof: absent unless set, even in a complete message. */
type OneofScalar = "zero_data" | "random_data" | "input_data_file" | "data_file";

type CompleteValue<T> = T extends `repeated ${infer Element}`
  ? readonly CompleteValue<Element>[]
  : T extends `map<${string}, ${infer Value}>`
    ? Readonly<Record<string, CompleteValue<Value>>>
    : T extends ConfigMessageName
      ? CompleteMessage<T>
      : ConfigValue<T>;

/** A message as a server prints it: scalars, lists and maps are there even if empty; a sub-message only if set. */
export type CompleteMessage<Name extends ConfigMessageName> = {
  readonly [
    Field in keyof Messages[Name] as Messages[Name][Field] extends ConfigMessageName
      ? never
      : Field extends OneofScalar
        ? never
        : Field
  ]: CompleteValue<Messages[Name][Field]>;
} & {
  readonly [
    Field in keyof Messages[Name] as Messages[Name][Field] extends ConfigMessageName
      ? Field
      : Field extends OneofScalar
        ? Field
        : never
  ]?: CompleteValue<Messages[Name][Field]>;
};

type CompleteConfigMessage = CompleteMessage<"ModelConfig">;
/** A configuration with Triton's defaults filled in: what the server answers to ModelConfig. */
export type CompleteModelConfig = CompleteConfigMessage &
  Required<Pick<CompleteConfigMessage, "version_policy" | "optimization">>;

/** How one field's type is spelt in the table. */
export type FieldKind =
  | { readonly form: "singular" | "repeated"; readonly type: string }
  | { readonly form: "map"; readonly keyType: string; readonly type: string };

/** Takes apart a type of the table: `repeated int32`, `map<string, ModelParameter>`, `bool`. */
export function fieldKind(spelling: string): FieldKind {
  const map = /^map<(\w+), ([\w.]+)>$/.exec(spelling);
  if (map !== null) return { form: "map", keyType: map[1] as string, type: map[2] as string };
  const repeated = /^repeated ([\w.]+)$/.exec(spelling);
  if (repeated !== null) return { form: "repeated", type: repeated[1] as string };
  return { form: "singular", type: spelling };
}
