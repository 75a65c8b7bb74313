import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ConnectionError, ErrorCode } from "../../http2/frames";
import { HeaderDecoder, type HeaderFields } from "../../http2/header-decoder";
import { literal } from "../../http2/literals";

const decoder = (tableBytes: number): HeaderDecoder<HeaderFields> =>
  new HeaderDecoder(tableBytes, (fields) => fields);
const hex = (text: string): Buffer => Buffer.from(text.replaceAll(/\s/g, ""), "hex");

/** Code of the ConnectionError; undefined when there is none. */
function codeOf(decode: () => unknown): number | undefined {
  try {
    decode();
  } catch (error) {
    if (error instanceof ConnectionError) return error.code;
    throw error;
  }
  return undefined;
}

describe("HeaderDecoder", () => {
  it("decodes RFC 7541's examples C.4 (Huffman coding, dynamic table)", () => {
    const one = decoder(4096);
    const expected = { ":method": "GET", ":scheme": "http", ":path": "/", ":authority": "www.example.com" };
    expect(Object.fromEntries(one.decode(hex("8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff")))).toEqual(
      expected,
    );
    expect(Object.fromEntries(one.decode(hex("8286 84be 5886 a8eb 1064 9cbf")))).toEqual({
      ...expected,
      "cache-control": "no-cache",
    });
    const third = one.decode(hex("8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf"));
    expect(Object.fromEntries(third)).toEqual({
      ":method": "GET",
      ":scheme": "https",
      ":path": "/index.html",
      ":authority": "www.example.com",
      "custom-key": "custom-value",
    });
  });

  it("a block that only means something after another one is not remembered across a change of the table", () => {
    const one = decoder(4096);
    const add = (value: string): Buffer =>
      Buffer.concat([Buffer.from([0x40]), literal("x", value).subarray(1)]);
    one.decode(add("first"));
    expect(one.decode(hex("be")).get("x")).toBe("first");
    one.decode(add("second"));
    expect(one.decode(hex("be")).get("x")).toBe("second");
  });

  it("gives equal blocks the same interpretation, computed once", () => {
    let calls = 0;
    const one = new HeaderDecoder(0, (fields) => ({ fields, nth: ++calls }));
    const block = literal("grpc-status", "0");
    expect(one.decode(Buffer.from(block))).toBe(one.decode(Buffer.from(block)));
    expect(calls).toBe(1);
  });

  it("without a table, refuses references into it and a size update above 0", () => {
    expect(codeOf(() => decoder(0).decode(hex("be")))).toBe(ErrorCode.COMPRESSION_ERROR);
    expect(codeOf(() => decoder(0).decode(hex("3f e1 1f")))).toBe(ErrorCode.COMPRESSION_ERROR);
    expect(
      decoder(0)
        .decode(Buffer.concat([hex("20"), literal("a", "b")]))
        .get("a"),
    ).toBe("b");
  });

  it("refuses a header list over 64 KiB", () => {
    const block = Buffer.concat(Array.from({ length: 2000 }, (_, i) => literal(`name-${i}`, "x")));
    expect(codeOf(() => decoder(4096).decode(block))).toBe(ErrorCode.ENHANCE_YOUR_CALM);
  });

  it("any bytes give fields or a ConnectionError, at once", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        for (const tableBytes of [0, 4096]) {
          const code = codeOf(() => decoder(tableBytes).decode(Buffer.from(bytes)));
          expect([undefined, ErrorCode.COMPRESSION_ERROR, ErrorCode.ENHANCE_YOUR_CALM]).toContain(code);
        }
      }),
      { numRuns: 2000 },
    );
  });

  it("literals of any length survive", () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 0, max: 20_000 }), { minLength: 1, maxLength: 3 }),
        (lengths) => {
          const block = Buffer.concat(lengths.map((length, i) => literal(`n${i}`, "v".repeat(length))));
          const fields = decoder(0).decode(block);
          expect([...fields.values()].map((value) => value.length)).toEqual(lengths);
        },
      ),
      { numRuns: 50 },
    );
  });
});
