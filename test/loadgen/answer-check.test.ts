import { describe, expect, it } from "vitest";
import { encodeClassifications, encodeInferResponse, type Classification } from "../../kserve/wire";
import { findWrongAnswer } from "../../loadgen/answer-check";

const known = { classIndex: 281, label: "tabby: a cat", score: 0.75 };

function reply(classes: readonly Classification[], name = "probabilities"): Buffer {
  const raw = encodeClassifications(classes);
  const other = { name: "other", datatype: "FP32", shape: [1], raw: Buffer.alloc(4) };
  const output = { name, datatype: "BYTES", shape: [1, classes.length], raw };
  return encodeInferResponse({ modelName: "m", modelVersion: "1", outputs: [other, output] });
}

function check(bytes: Buffer): string | undefined {
  return findWrongAnswer(bytes, "probabilities", known, 0.01);
}

describe("findWrongAnswer", () => {
  it("accepts the known answer, score within tolerance, label with a colon", () => {
    for (const score of [0.75, 0.7401, 0.7599]) expect(check(reply([{ ...known, score }]))).toBeUndefined();
  });

  it("says what is wrong", () => {
    expect(check(reply([{ ...known, classIndex: 3, label: "dog" }]))).toBe(
      "class 3 (dog) instead of 281 (tabby: a cat)",
    );
    expect(check(reply([{ ...known, label: "Tabby" }]))).toBe(
      'label "Tabby" instead of "tabby: a cat" for class 281',
    );
    expect(check(reply([{ ...known, label: null }]))).toBe(
      'label "" instead of "tabby: a cat" for class 281',
    );
    expect(check(reply([{ ...known, score: 0.7 }]))).toBe("score 0.7 instead of 0.75 for class 281");
    expect(check(reply([{ ...known, score: NaN }]))).toBe("score NaN instead of 0.75 for class 281");
    expect(check(reply([]))).toBe('output "probabilities" of the reply is empty');
    expect(check(reply([known], "logits"))).toBe('the reply has no output "probabilities"');
  });

  it("does not throw on bytes that are no reply", () => {
    expect(check(Buffer.from([0xff, 0xff, 0xff]))).toMatch(/^the reply cannot be decoded: /);
    expect(check(reply([known]).subarray(0, 40))).toMatch(/^the reply cannot be decoded: |no output/);
    expect(check(Buffer.alloc(0))).toBe('the reply has no output "probabilities"');
  });
});
