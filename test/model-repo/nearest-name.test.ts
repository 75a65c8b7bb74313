import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { editDistance, nearestName } from "../../model-repo/nearest-name";

describe("editDistance", () => {
  it.each([
    ["", "", 0],
    ["abc", "abc", 0],
    ["abc", "", 3],
    ["kitten", "sitting", 3],
    ["fp61", "fp16", 1],
  ])("%j to %j is %i", (from, to, distance) => expect(editDistance(from, to)).toBe(distance));

  it("is symmetric, zero only for equals, and at most the longer text", () => {
    const text = fc.string({ maxLength: 8 });
    fc.assert(
      fc.property(text, text, (a, b) => {
        const distance = editDistance(a, b);
        expect(distance).toBe(editDistance(b, a));
        expect(distance === 0).toBe(a === b);
        expect(distance).toBeLessThanOrEqual(Math.max(a.length, b.length));
        expect(distance).toBeGreaterThanOrEqual(Math.abs(a.length - b.length));
      }),
    );
  });
});

describe("nearestName", () => {
  it("finds what was meant, and nothing when nothing is near", () => {
    const known = ["maxBatchSize", "instanceCount", "name"];
    expect(nearestName("maxbatchsise", known)).toBe("maxBatchSize");
    expect(nearestName("count", known)).toBeNull();
    expect(nearestName("x".repeat(1_000_000), known)).toBeNull();
  });
});
