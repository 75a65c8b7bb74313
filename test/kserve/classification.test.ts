import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  ClassificationError,
  decodeBytesTensor,
  decodeClassifications,
  encodeBytesTensor,
  encodeClassifications,
} from "../../kserve/wire";

describe("classification extension", () => {
  it("reads what a Triton server answered", () => {
    const raw = encodeBytesTensor([Buffer.from("0.001000:672:CLASS 672"), Buffer.from("0.5:3")]);
    expect(decodeClassifications(raw)).toEqual([
      { score: 0.001, classIndex: 672, label: "CLASS 672" },
      { score: 0.5, classIndex: 3, label: null },
    ]);
  });

  it("round trips: scores to six decimals, labels with any character", () => {
    const classes = fc.array(
      fc.record({
        score: fc.integer({ min: -2_000_000, max: 2_000_000 }).map((millionths) => millionths / 1e6),
        classIndex: fc.nat({ max: 100_000 }),
        label: fc.option(fc.string({ unit: "grapheme" }), { nil: null }),
      }),
    );
    fc.assert(
      fc.property(classes, (sent) => {
        const received = decodeClassifications(encodeClassifications(sent));
        expect(received.map(({ score, ...rest }) => ({ score: score === 0 ? 0 : score, ...rest }))).toEqual(
          sent.map(({ score, ...rest }) => ({ score: score === 0 ? 0 : score, ...rest })),
        );
      }),
    );
  });

  it("names a score that is no finite number", () => {
    const raw = encodeBytesTensor([
      Buffer.from("nan:1:a"),
      Buffer.from("-inf:2"),
      Buffer.from("inf:3"),
      Buffer.from("1e-05:4"),
    ]);
    expect(decodeClassifications(raw).map(({ score }) => score)).toEqual([NaN, -Infinity, Infinity, 1e-5]);
  });

  it("never crashes on hostile bytes", () => {
    expect(() => decodeBytesTensor(Buffer.from([5, 0, 0, 0, 1]))).toThrow(/5 bytes goes past the end/);
    expect(() => decodeBytesTensor(Buffer.from([5, 0]))).toThrow(/cut off/);
    expect(() => decodeClassifications(encodeBytesTensor([Buffer.from("hello")]))).toThrow(/"hello"/);
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), (array) => {
        try {
          decodeClassifications(Buffer.from(array));
        } catch (error) {
          expect(error).toBeInstanceOf(ClassificationError);
        }
      }),
    );
  });
});
