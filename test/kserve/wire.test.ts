import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { inferenceService } from "../../kserve/load-protos";
import type {
  Draft,
  InferParameterMessage,
  ModelInferRequest,
  ModelInferResponse,
} from "../../kserve/messages";
import {
  classificationCount,
  contentsFields,
  decodeInferRequest,
  decodeInferRequestHead,
  decodeInferResponse,
  encodeInferRequest,
  encodeInferResponse,
  readContents,
  WireError,
  type InferParameter,
  type InferParameters,
} from "../../kserve/wire";

const { ModelInfer } = inferenceService();
const text = fc.string({ unit: "grapheme", maxLength: 12 });
const integer = fc.maxSafeInteger();
const bytes = fc.uint8Array({ maxLength: 40 }).map((array) => Buffer.from(array));
const float = fc.float({ noNaN: true }).map((value) => (Object.is(value, -0) ? 0 : value));
const double = fc.double({ noNaN: true });

const parameterMessage: fc.Arbitrary<InferParameterMessage> = fc.oneof(
  fc.boolean().map((bool_param) => ({ bool_param })),
  integer.map((int64_param) => ({ int64_param })),
  text.map((string_param) => ({ string_param })),
  double.map((double_param) => ({ double_param })),
  fc.maxSafeNat().map((uint64_param) => ({ uint64_param })),
);
const parameterMessages = fc.dictionary(
  text.filter((key) => key !== "__proto__"),
  parameterMessage,
  { maxKeys: 3 },
);

function asWire(messages: Record<string, InferParameterMessage>): InferParameters {
  return new Map(
    Object.entries(messages).map(([name, message]): [string, InferParameter] => {
      const entry = Object.entries(message)[0] as [string, never];
      return [name, { kind: entry[0].replace("_param", ""), value: entry[1] } as InferParameter];
    }),
  );
}

const contents = fc.record({
  bool_contents: fc.array(fc.boolean(), { maxLength: 4 }),
  int_contents: fc.array(fc.integer(), { maxLength: 4 }),
  int64_contents: fc.array(integer, { maxLength: 4 }),
  uint_contents: fc.array(fc.integer({ min: 0, max: 2 ** 32 - 1 }), { maxLength: 4 }),
  uint64_contents: fc.array(fc.maxSafeNat(), { maxLength: 4 }),
  fp32_contents: fc.array(float, { maxLength: 4 }),
  fp64_contents: fc.array(double, { maxLength: 4 }),
  bytes_contents: fc.array(bytes, { maxLength: 4 }),
});
const tensor = fc.record({
  name: text,
  datatype: fc.constantFrom("FP32", "BYTES", "FLOAT99", ""),
  shape: fc.array(integer, { maxLength: 4 }),
  parameters: parameterMessages,
  contents: fc.option(contents, { nil: null }),
});
const request: fc.Arbitrary<ModelInferRequest> = fc.record({
  model_name: text,
  model_version: text,
  id: text,
  parameters: parameterMessages,
  inputs: fc.array(tensor, { maxLength: 3 }),
  outputs: fc.array(fc.record({ name: text, parameters: parameterMessages }), { maxLength: 3 }),
  raw_input_contents: fc.array(bytes, { maxLength: 3 }),
});
const response: fc.Arbitrary<ModelInferResponse> = fc.record({
  model_name: text,
  model_version: text,
  id: text,
  parameters: parameterMessages,
  outputs: fc.array(tensor, { maxLength: 3 }),
  raw_output_contents: fc.array(bytes, { maxLength: 3 }),
});

function expectTensor(
  message: Buffer,
  decoded: ReturnType<typeof decodeInferRequest>["inputs"][number],
  sent: ModelInferRequest["inputs"][number],
): void {
  expect(decoded).toMatchObject({ name: sent.name, datatype: sent.datatype, shape: sent.shape });
  expect(decoded.parameters).toEqual(asWire(sent.parameters));
  expect(decoded.contents === null).toBe(sent.contents === null);
  if (decoded.contents === null || sent.contents === null) return;
  expect(readContents(message, decoded.contents)).toEqual(sent.contents);
  for (const field of contentsFields)
    expect(decoded.contents.counts[field] ?? 0).toBe(sent.contents[field].length);
}

describe("requests", () => {
  it("decodes what proto-loader encodes", () => {
    fc.assert(
      fc.property(request, (sent) => {
        const message = ModelInfer.requestSerialize(sent);
        const decoded = decodeInferRequest(message);
        expect(decoded).toMatchObject({
          modelName: sent.model_name,
          modelVersion: sent.model_version,
          id: sent.id,
        });
        expect(decoded.parameters).toEqual(asWire(sent.parameters));
        expect(decoded.outputs).toEqual(
          sent.outputs.map(({ name, parameters }) => ({ name, parameters: asWire(parameters) })),
        );
        expect(decoded.raw.map(({ offset, length }) => message.subarray(offset, offset + length))).toEqual(
          sent.raw_input_contents,
        );
        expect(decoded.inputs).toHaveLength(sent.inputs.length);
        sent.inputs.forEach((input, index) => expectTensor(message, decoded.inputs[index]!, input));
      }),
      { numRuns: 150 },
    );
  });

  it("encodes the very bytes that proto-loader encodes", () => {
    const args = fc.record({
      modelName: text,
      modelVersion: text,
      id: text,
      inputName: text,
      datatype: fc.constantFrom("FP32", "UINT8"),
      shape: fc.array(integer, { maxLength: 5 }),
      raw: bytes,
      outputName: text,
      classCount: fc.nat({ max: 1000 }),
      parameters: parameterMessages,
    });
    fc.assert(
      fc.property(args, ({ parameters, ...rest }) => {
        const same: Draft<ModelInferRequest> = {
          model_name: rest.modelName || undefined,
          model_version: rest.modelVersion || undefined,
          id: rest.id || undefined,
          parameters,
          inputs: [{ name: rest.inputName || undefined, datatype: rest.datatype, shape: rest.shape }],
          outputs: [
            {
              name: rest.outputName || undefined,
              parameters: rest.classCount === 0 ? {} : { classification: { int64_param: rest.classCount } },
            },
          ],
          raw_input_contents: [rest.raw],
        };
        const encoded = encodeInferRequest({ ...rest, parameters: asWire(parameters) });
        expect(encoded.equals(ModelInfer.requestSerialize(same))).toBe(true);
        const decoded = decodeInferRequest(encoded);
        expect(decoded.outputs.map(classificationCount)).toEqual([
          rest.classCount === 0 ? null : rest.classCount,
        ]);
      }),
    );
  });

  it("refuses a class count without an output", () => {
    const args = {
      modelName: "m",
      inputName: "i",
      datatype: "FP32",
      shape: [1],
      raw: Buffer.alloc(4),
      classCount: 1,
    };
    expect(() => encodeInferRequest(args)).toThrow(/classCount needs outputName/);
  });

  it("needs only the head of a message whose tensor comes last", () => {
    const raw = Buffer.alloc(602_112, 7);
    const message = encodeInferRequest({
      modelName: "tftrt_int8",
      inputName: "input",
      datatype: "FP32",
      shape: [1, 224, 224, 3],
      raw,
      outputName: "probabilities",
      classCount: 1,
    });
    const whole = decodeInferRequest(message);
    expect(whole.raw).toEqual([{ offset: message.length - raw.length, length: raw.length }]);
    const head = whole.raw[0]!.offset;
    for (let length = 0; length < head + 3; length++)
      expect(decodeInferRequestHead(message.subarray(0, length), message.length)).toEqual(
        length < head ? undefined : whole,
      );
  });

  it("the head agrees with the whole for every message and every prefix", () => {
    fc.assert(
      fc.property(request, fc.double({ min: 0, max: 1, noNaN: true }), (sent, share) => {
        const message = ModelInfer.requestSerialize(sent);
        const prefix = message.subarray(0, Math.floor(share * message.length));
        const head = decodeInferRequestHead(prefix, message.length);
        if (head !== undefined) expect(head).toEqual(decodeInferRequest(message));
      }),
    );
  });
});

describe("responses", () => {
  it("decodes what proto-loader encodes", () => {
    fc.assert(
      fc.property(response, (sent) => {
        const message = ModelInfer.responseSerialize(sent);
        const decoded = decodeInferResponse(message);
        expect(decoded).toMatchObject({
          modelName: sent.model_name,
          modelVersion: sent.model_version,
          id: sent.id,
        });
        expect(decoded.parameters).toEqual(asWire(sent.parameters));
        expect(decoded.raw).toEqual(sent.raw_output_contents);
        sent.outputs.forEach((output, index) => expectTensor(message, decoded.outputs[index]!, output));
      }),
    );
  });

  it("proto-loader decodes what is encoded here", () => {
    const output = fc.record({
      name: text,
      datatype: text,
      shape: fc.array(integer, { maxLength: 4 }),
      raw: bytes,
    });
    const args = fc.record({
      modelName: text,
      modelVersion: text,
      id: text,
      outputs: fc.array(output, { maxLength: 3 }),
    });
    fc.assert(
      fc.property(args, (sent) => {
        const decoded = ModelInfer.responseDeserialize(encodeInferResponse(sent));
        expect(decoded).toMatchObject({
          model_name: sent.modelName,
          model_version: sent.modelVersion,
          id: sent.id,
        });
        expect(decoded.outputs.map(({ name, datatype, shape }) => ({ name, datatype, shape }))).toEqual(
          sent.outputs.map(({ name, datatype, shape }) => ({ name, datatype, shape })),
        );
        expect(decoded.raw_output_contents).toEqual(sent.outputs.map(({ raw }) => raw));
      }),
    );
  });
});

describe("wire format corners", () => {
  it("accepts unpacked lists, unknown fields, groups and the last of several values", () => {
    const input = Buffer.from([
      ...[0x0a, 1, 0x61], // name "a"
      ...[0x18, 5, 0x1a, 2, 6, 7, 0x18, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1], // shape 5, [6, 7], -1
      ...[0x0a, 1, 0x62], // name "b"
      ...[0x7b, 0x83, 1, 0x84, 1, 0x7c], // group 15 with group 16 in it
    ]);
    const message = Buffer.concat([
      Buffer.from([0x2a, input.length]),
      input,
      Buffer.from([0x7d, 1, 2, 3, 4, 0x79, 1, 2, 3, 4, 5, 6, 7, 8]),
    ]);
    expect(decodeInferRequest(message).inputs).toMatchObject([{ name: "b", shape: [5, 6, 7, -1] }]);
  });

  it.each([
    ["cut off", [0x0a, 5, 0x61], /past the end \(at byte 1\)/],
    ["varint without end", [0x0a, ...Array<number>(11).fill(0xff)], /longer than 10 bytes/],
    ["field number 0", [0x00, 1], /invalid field number/],
    ["wire type 7", [0x0f], /unknown wire type 7/],
    ["a group that never began", [0x0c], /never began/],
    ["a group that ends as another", [0x7b, 0x84, 1], /another field number/],
    ["deep groups", Array<number>(200).fill(0x7b), /nested deeper than 100/],
    ["bad UTF-8", [0x0a, 2, 0xc3, 0x28], /model_name is not valid UTF-8/],
    [
      "a tensor longer than the message",
      [0x3a, 0xff, 0xff, 0xff, 0xff, 0x0f],
      /4294967295 goes past the end/,
    ],
    ["half a float", [0x2a, 5, 0x2a, 3, 0x32, 1, 0], /fp32_contents is no multiple of 4/],
  ])("says what is wrong with %s", (_case, hostile, expected) => {
    expect(() => decodeInferRequest(Buffer.from(hostile))).toThrow(expected);
    expect(() => decodeInferRequest(Buffer.from(hostile))).toThrow(WireError);
    expect(() => decodeInferRequestHead(Buffer.from(hostile), hostile.length)).toThrow(expected);
  });

  it("never crashes on hostile bytes: a result or a WireError", () => {
    const flips = fc.array(fc.tuple(fc.nat(), fc.integer({ min: 0, max: 255 })), { maxLength: 4 });
    const mutated = fc.tuple(request, flips, fc.nat({ max: 10 })).map(([sent, changes, cut]) => {
      const message = Buffer.from(ModelInfer.requestSerialize(sent));
      for (const [position, value] of changes)
        if (message.length > 0) message[position % message.length] = value;
      return message.subarray(0, Math.max(0, message.length - cut));
    });
    const hostile = fc.oneof(
      mutated,
      fc.uint8Array({ maxLength: 200 }).map((array) => Buffer.from(array)),
    );
    fc.assert(
      fc.property(hostile, (message) => {
        for (const decode of [
          () =>
            decodeInferRequest(message).inputs.forEach(
              ({ contents }) => contents && readContents(message, contents),
            ),
          () => decodeInferRequestHead(message.subarray(0, message.length >> 1), message.length),
          () => decodeInferResponse(message),
        ]) {
          try {
            decode();
          } catch (error) {
            expect(error).toBeInstanceOf(WireError);
          }
        }
      }),
      { numRuns: 800 },
    );
  });
});
