import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, expectTypeOf, it } from "vitest";
import { inferenceService } from "../../kserve/load-protos";
import type { Draft, ModelConfig as WireModelConfig } from "../../kserve/messages";
import { configEnums, configMessages, configOneofs } from "../../model-repo/config-schema";
import type { CompleteModelConfig, ModelConfig } from "../../model-repo/config-types";
import { withTritonDefaults } from "../../model-repo/config-defaults";
import { toModelConfig } from "../../model-repo/model-config";
import { catalogue } from "../../model-repo/catalogue";

/** Messages, enums and oneofs of a .proto file, by full name. */
function readProto(text: string) {
  const messages: Record<string, Record<string, string>> = {};
  const enums: Record<string, string[]> = {};
  const oneofs: Record<string, string[][]> = {};
  const open: { kind: string; name: string }[] = [];
  for (const line of text.split("\n").map((raw) => raw.replace(/\/\/.*/, "").trim())) {
    const [, kind, name = ""] = /^(message|enum|oneof) (\w+) \{/.exec(line) ?? [];
    const scope = open.filter((block) => block.kind === "message").map((block) => block.name);
    const owner = scope.join(".");
    if (kind !== undefined) {
      const full = [...scope, name].join(".");
      if (kind === "message") messages[full] = {};
      if (kind === "enum") enums[full] = [];
      if (kind === "oneof") (oneofs[owner] ??= []).push([]);
      if (!line.endsWith("}")) open.push({ kind, name });
    } else if (line === "}") open.pop();
    else if (open.at(-1)?.kind === "enum") {
      const [, value = "", number] = /^(\w+) = (\d+);$/.exec(line) ?? [];
      const values = enums[[...scope, open.at(-1)?.name].join(".")]!;
      expect(Number(number)).toBe(values.length);
      values.push(value);
    } else {
      const field = /^(.+) (\w+) = \d+;$/.exec(line);
      if (field === null) continue;
      messages[owner]![field[2]!] = field[1]!;
      if (open.at(-1)?.kind === "oneof") oneofs[owner]!.at(-1)!.push(field[2]!);
    }
  }
  return { messages, enums, oneofs };
}

/** `Kind` inside BatchInput becomes `BatchInput.Kind`. */
function resolve(owner: string, spelling: string, known: ReadonlySet<string>): string {
  return spelling.replace(/[\w.]+(?=>?$)/, (type) => {
    const parts = owner.split(".");
    for (let depth = parts.length; depth > 0; depth--) {
      const full = `${parts.slice(0, depth).join(".")}.${type}`;
      if (known.has(full)) return full;
    }
    return type;
  });
}

describe("the table of configuration fields", () => {
  it("is the one of model_config.proto", () => {
    const { messages, enums, oneofs } = readProto(
      readFileSync(join(__dirname, "../../kserve/proto/model_config.proto"), "utf8"),
    );
    const known = new Set([...Object.keys(messages), ...Object.keys(enums)]);
    for (const [owner, fields] of Object.entries(messages))
      for (const [name, spelling] of Object.entries(fields)) fields[name] = resolve(owner, spelling, known);
    expect(Object.keys(messages).length).toBe(Object.keys(configMessages).length);
    expect(configMessages).toEqual(messages);
    expect(configEnums).toEqual(enums);
    expect(configOneofs).toEqual(oneofs);
  });

  it("is carried over gRPC without loss", () => {
    const { responseSerialize, responseDeserialize } = inferenceService().ModelConfig;
    for (const variant of catalogue) {
      const config = toModelConfig(variant);
      const received = responseDeserialize(responseSerialize({ config })).config;
      expect(received).toMatchObject(config);
      expect(withTritonDefaults(config)).toEqual(config);
    }
  });

  it("gives types that the gRPC service takes as they are", () => {
    expectTypeOf<ModelConfig>().toExtend<Draft<WireModelConfig>>();
    expectTypeOf<CompleteModelConfig>().toExtend<Draft<WireModelConfig>>();
    expectTypeOf<CompleteModelConfig>().toExtend<ModelConfig>();
  });
});
