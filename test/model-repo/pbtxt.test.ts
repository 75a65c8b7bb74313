import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { catalogue } from "../../model-repo/catalogue";
import { toConfigPbtxt, writeConfigPbtxt } from "../../model-repo/config-pbtxt";
import { declaredModelConfig } from "../../model-repo/model-config";
import { parseConfigPbtxt, PbtxtError } from "../../model-repo/parse-pbtxt";
import { arbitraryConfig } from "./arbitrary-config";

describe("round trip", () => {
  it("every configuration of the schema survives writing and parsing", () => {
    fc.assert(
      fc.property(arbitraryConfig, (config) => {
        expect(parseConfigPbtxt(writeConfigPbtxt(config))).toEqual(config);
      }),
      { numRuns: 60 },
    );
  });

  it("every variant of the documents does", () => {
    for (const variant of catalogue)
      expect(parseConfigPbtxt(toConfigPbtxt(variant))).toEqual(declaredModelConfig(variant));
  });

  it("writes the text that the documents write by hand", () => {
    const original = catalogue[0]!;
    expect(toConfigPbtxt(original))
      .toBe(`# Generated from the variant catalogue; change the variant, not this file.
name: "original"
platform: "tensorflow_savedmodel"
max_batch_size: 64
input [
  {
    name: "input"
    data_type: TYPE_FP32
    format: FORMAT_NHWC
    dims: [ 224, 224, 3 ]
  }
]
output [
  {
    name: "probabilities"
    data_type: TYPE_FP32
    dims: [ 1000 ]
    label_filename: "imagenet1k_labels.txt"
  }
]
dynamic_batching {
  preferred_batch_size: [ 64 ]
  max_queue_delay_microseconds: 20000
}
instance_group [
  {
    kind: KIND_GPU
    count: 1
  }
]
default_model_filename: "model"
`);
  });
});

describe("what Triton reads is read", () => {
  it.each([
    ["nothing", "", {}],
    ["comments", "# a\nname: 'x' # b\n#c", { name: "x" }],
    [
      "a byte order mark and Windows line ends",
      '\uFEFFname: "x"\r\nmax_batch_size: 1\r\n',
      { name: "x", max_batch_size: 1 },
    ],
    [
      "separators",
      'name: "x"; max_batch_size: 8, platform: "p",',
      { name: "x", max_batch_size: 8, platform: "p" },
    ],
    [
      "a bracket list",
      "dynamic_batching { preferred_batch_size: [4,8] }",
      { dynamic_batching: { preferred_batch_size: [4, 8] } },
    ],
    [
      "a repeated field",
      "dynamic_batching { preferred_batch_size: 4 preferred_batch_size: 8 }",
      { dynamic_batching: { preferred_batch_size: [4, 8] } },
    ],
    [
      "both list forms in turn",
      "dynamic_batching { preferred_batch_size: [4] preferred_batch_size: 8 preferred_batch_size: [] }",
      { dynamic_batching: { preferred_batch_size: [4, 8] } },
    ],
    [
      "messages with and without colon",
      "version_policy: { latest { num_versions: 1 } }",
      { version_policy: { latest: { num_versions: 1 } } },
    ],
    ["angle brackets", "version_policy < all: <> >", { version_policy: { all: {} } }],
    [
      "lists of messages",
      'input [ { name: "a" }, { name: "b" } ] input { name: "c" } input: [ < name: "d" > ]',
      { input: [{ name: "a" }, { name: "b" }, { name: "c" }, { name: "d" }] },
    ],
    ["an empty list", "input [ ]", { input: [] }],
    [
      "enums by name and by number",
      "input { data_type: TYPE_FP32 format: 1 }",
      { input: [{ data_type: "TYPE_FP32", format: "FORMAT_NHWC" }] },
    ],
    [
      "numbers: negative, hexadecimal, octal",
      "input { dims: [ -1, 0x1F, 010, - 2 ] }",
      { input: [{ dims: [-1, 31, 8, -2] }] },
    ],
    [
      "booleans",
      "optimization { eager_batching: true cuda { graphs: t busy_wait_events: 0 output_copy_stream: False } }",
      {
        optimization: {
          eager_batching: true,
          cuda: { graphs: true, busy_wait_events: false, output_copy_stream: false },
        },
      },
    ],
    [
      "floats",
      "sequence_batching { direct { minimum_slot_utilization: 1.5e-1f } }",
      { sequence_batching: { direct: { minimum_slot_utilization: 0.15 } } },
    ],
    [
      "more floats",
      "model_metrics { metric_control { histogram_options { buckets: [ .5, 1., 2, -inf, 3E2 ] } } }",
      {
        model_metrics: { metric_control: [{ histogram_options: { buckets: [0.5, 1, 2, -Infinity, 300] } }] },
      },
    ],
    ["concatenated strings", `name: "a" 'b'\n# c\n"d"`, { name: "abd" }],
    ["escapes", String.raw`name: "\"\\\n\t\x41\101\u00e9\U0001F600\303\251"`, { name: '"\\\n\tAAé😀é' }],
    ["escapes that spell a byte order mark", String.raw`name: "\xEF\xBB\xBFa"`, { name: "\uFEFFa" }],
    [
      "maps",
      'parameters { key: "a" value: { string_value: "1" } } parameters: [ { value { } key: "b" }, { key: "a" } ]',
      { parameters: { a: {}, b: {} } },
    ],
    [
      "maps with odd keys",
      'metric_tags { key: "__proto__" value: "x" } metric_tags { }',
      {
        metric_tags: Object.fromEntries([
          ["__proto__", "x"],
          ["", ""],
        ]),
      },
    ],
    [
      "maps with numbers as keys",
      "dynamic_batching { priority_queue_policy { key: 2 value { max_queue_size: 9 } } }",
      { dynamic_batching: { priority_queue_policy: { "2": { max_queue_size: 9 } } } },
    ],
  ])("%s", (_case, text, expected) => {
    expect(parseConfigPbtxt(text)).toEqual(expected);
  });
});

describe("what Triton refuses is refused, with line and column", () => {
  it.each([
    [
      "unknown field",
      'name: "x"\nmax_batchsize: 8',
      '2:1: ModelConfig has no field "max_batchsize"; did you mean "max_batch_size"?',
    ],
    [
      "unknown nested field",
      "version_policy { all { x: 1 } }",
      '1:24: ModelVersionPolicy.All has no field "x"; it has none',
    ],
    [
      "unknown enum value",
      "input { data_type: TYPE_FP23 }",
      '1:20: data_type: DataType has no value "TYPE_FP23"; did you mean "TYPE_FP32"?',
    ],
    [
      "quoted enum",
      'input { data_type: "TYPE_FP32" }',
      '1:20: data_type: DataType has no value "TYPE_FP32"; names of values are written without quotes',
    ],
    [
      "unknown enum number",
      "input { format: 3 }",
      '1:17: format: ModelInput.Format has no value "3"; it is one of FORMAT_NONE, FORMAT_NHWC, FORMAT_NCHW',
    ],
    ["missing colon", "name 'x'", '1:6: ":" is expected after name, not "x"'],
    ["unquoted string", "name: x", '1:7: name takes a quoted string, not "x"'],
    ["text for a number", 'max_batch_size: "8"', '1:17: max_batch_size takes an integer, not "8"'],
    ["fraction for an integer", "max_batch_size: 8.0", '1:17: max_batch_size takes an integer, not "8.0"'],
    ["number for a boolean", "response_cache { enable: 2 }", '1:26: enable takes true or false, not "2"'],
    [
      "int32 overflow",
      "max_batch_size: 2147483648",
      "1:17: max_batch_size: 2147483648 is outside int32 (-2147483648 to 2147483647)",
    ],
    [
      "negative for unsigned",
      "version_policy { latest { num_versions: -1 } }",
      "1:41: num_versions: -1 is outside uint32 (0 to 4294967295)",
    ],
    [
      "beyond exact integers",
      "dynamic_batching { max_queue_delay_microseconds: 9007199254740993 }",
      "1:50: max_queue_delay_microseconds: 9007199254740992 is outside uint64 (0 to 9007199254740991)",
    ],
    ["a field twice", 'name: "x"\n  name: "y"', "2:3: name is set a second time"],
    [
      "two of a oneof",
      "version_policy { all {} latest {} }",
      "1:25: latest is set beside all: only one of latest, all, specific may be",
    ],
    ["a list for one value", "max_batch_size: [1]", "1:17: max_batch_size takes one value, not a list"],
    ["a comma at a list's end", "input { dims: [ 1, ] }", '1:20: dims takes an integer, not "]"'],
    ["an open list", "input { dims: [ 1 }", '1:19: "," or "]" is expected in the list dims, not "}"'],
    ["an open message", "input {\n dims: 1", '2:9: ModelInput is not closed: "}" is missing'],
    ["the wrong bracket", "input { >", '1:9: a field of ModelInput is expected, not ">"'],
    ["a bracket too many", 'name: "x" }', '1:11: a field of ModelConfig is expected, not "}"'],
    [
      "a scalar for a message",
      "dynamic_batching: 1",
      '1:19: "{" is expected after dynamic_batching, not "1"',
    ],
    ["an open string", 'name: "x\n"', "1:7: the string has no closing quote on its line"],
    ["an unknown escape", String.raw`name: "ab\q"`, '1:10: unknown escape "\\\\q"'],
    ["bytes that are no text", String.raw`name: "\377"`, "1:8: the string's escapes are not valid UTF-8"],
    ["a big octal escape", String.raw`name: "\777"`, "1:8: an octal escape is above \\377"],
    ["half a surrogate", String.raw`name: "\ud800"`, "1:8: the escape is no Unicode character"],
    ["a bad octal number", "max_batch_size: 08", "1:17: a number that starts with 0 is octal"],
    ["a number with letters", "max_batch_size: 8x", "1:17: malformed number"],
    ["a strange character", "name = 1", '1:6: unexpected character "="'],
    ["an extension", "[a.b]: 1", '1:1: a field of ModelConfig is expected, not "["'],
    ["a prototype's name", "toString: 1", '1:1: ModelConfig has no field "toString"'],
    ["two separators", 'name: "x";;', '1:11: a field of ModelConfig is expected, not ";"'],
  ])("%s", (_case, text, message) => {
    expect(() => parseConfigPbtxt(text, "m/config.pbtxt")).toThrow(PbtxtError);
    expect(() => parseConfigPbtxt(text, "m/config.pbtxt")).toThrow(`m/config.pbtxt:${message}`);
  });
});

describe("any text", () => {
  const pieces = fc.constantFrom(
    ...[
      'name: "x" ',
      "input ",
      "{ ",
      "} ",
      "[ ",
      "] ",
      "< ",
      "> ",
      ": ",
      ", ",
      "; ",
      "-",
      "1 ",
      "0x",
      "1e",
      '"',
      "'",
      "\\",
      "#",
      "\n",
    ],
    ...["dims ", "key ", "value ", "parameters ", "TYPE_FP32 ", "\\u12", "__proto__ ", "data_type: ", "."],
  );
  const soup = fc.array(pieces, { maxLength: 40 }).map((parts) => parts.join(""));
  const mutated = fc
    .tuple(arbitraryConfig, fc.nat(), fc.nat(20), fc.string({ maxLength: 4 }))
    .map(([config, at, cut, insert]) => {
      const text = writeConfigPbtxt(config);
      const position = at % (text.length + 1);
      return text.slice(0, position) + insert + text.slice(position + cut);
    });

  it("gives a configuration or a PbtxtError, never another error", () => {
    fc.assert(
      fc.property(fc.oneof(soup, mutated, fc.string({ unit: "binary" })), (text) =>
        expectConfigOrError(text),
      ),
      { numRuns: 300 },
    );
  });

  it("is read in linear time: 200 kB of anything ends before the timeout", () => {
    for (const unit of [
      "[",
      "{",
      '"',
      "'\\",
      "\\",
      "-",
      "1",
      "1.",
      "1e",
      "a",
      "# ",
      "\n",
      "input{",
      'name:"',
      "input[{},",
    ]) {
      const text = unit.repeat(Math.ceil(200_000 / unit.length));
      expectConfigOrError(text);
    }
    expect(parseConfigPbtxt("input{dims:[1,2]}\n".repeat(20_000)).input).toHaveLength(20_000);
  });
});

function expectConfigOrError(text: string): void {
  try {
    const config = parseConfigPbtxt(text);
    expect(parseConfigPbtxt(writeConfigPbtxt(config))).toEqual(withoutEmpty(config));
  } catch (error) {
    expect(error).toBeInstanceOf(PbtxtError);
  }
}

/** What the writer leaves out: lists and maps without elements. */
function withoutEmpty(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutEmpty);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([key, inner]): [string, unknown] => [key, withoutEmpty(inner)]);
  return Object.fromEntries(entries.filter(([, inner]) => !(Array.isArray(inner) && inner.length === 0)));
}
