import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { compareAnswers, NotComparableError } from "../../../tuning/accuracy/compare";

const row = (...scores: number[]): Float32Array => Float32Array.from(scores);

describe("agreement of answers", () => {
  it("counts equal best classes, best classes among five, and differences", () => {
    const reference = [
      row(0.7, 0.2, 0.1, 0, 0, 0, 0),
      row(0, 0.1, 0.9, 0, 0, 0, 0),
      row(0.6, 0.4, 0, 0, 0, 0, 0),
    ];
    const answers = [
      // The same class.
      row(0.5, 0.4, 0.1, 0, 0, 0, 0),
      // Class 2 has come down to the third place.
      row(0.3, 0.3, 0.25, 0.15, 0, 0, 0),
      // Class 0 is behind five others.
      row(0, 0.5, 0.1, 0.1, 0.1, 0.1, 0.1),
    ];
    const figures = compareAnswers(reference, answers);
    expect(figures).toMatchObject({
      images: 3,
      top1Agreement: 1 / 3,
      top5Agreement: 2 / 3,
      afterSoftmax: false,
    });
    expect(figures.maxDifference).toBeCloseTo(0.65, 6);
    expect(figures.meanDifference).toBeCloseTo((0.2 + 0.65 + 0.6) / 3, 6);
  });

  it("does not take a model that knows nothing for one that agrees", () => {
    const constant = new Float32Array(10).fill(0.1);
    const reference = [row(...constant).with(7, 0.2)];
    expect(compareAnswers(reference, [constant])).toMatchObject({ top1Agreement: 0, top5Agreement: 0 });
  });

  it("compares scores that are no probabilities after a softmax", () => {
    const figures = compareAnswers([row(0, Math.log(3))], [row(5, 5 + Math.log(3))]);
    expect(figures).toMatchObject({ top1Agreement: 1, afterSoftmax: true });
    expect(figures.maxDifference).toBeCloseTo(0, 6);
    expect(compareAnswers([row(0, Math.log(3))], [row(0, 0)]).maxDifference).toBeCloseTo(0.25, 6);
  });

  it.each<[string, Float32Array[], Float32Array[], RegExp]>([
    ["no image", [], [], /^there is no image/],
    ["an answer too few", [row(1), row(1)], [row(1)], /^1 answers for 2 images$/],
    ["other classes", [row(1, 0)], [row(1, 0, 0)], /^it answers with 3 classes, the reference with 2$/],
    ["NaN", [row(1, 0), row(1, 0)], [row(1, 0), row(NaN, 0)], /^1 of its answers to 2 images hold numbers/],
    ["infinity", [row(Infinity, 0)], [row(1, 0)], /^1 of the reference's answers to 1 images/],
  ])("cannot be told for %s", (_what, reference, answers, message) => {
    expect(() => compareAnswers(reference, answers)).toThrow(NotComparableError);
    expect(() => compareAnswers(reference, answers)).toThrow(message);
  });

  it("is full for the same answers, never more, and shares stay shares", () => {
    const scores = fc.array(fc.float({ min: 0, max: 1, noNaN: true }), { minLength: 6, maxLength: 6 });
    const list = fc.array(fc.tuple(scores, scores), { minLength: 1, maxLength: 8 });
    fc.assert(
      fc.property(list, (pairs) => {
        const reference = pairs.map(([one]) => row(...one));
        const others = pairs.map(([, other]) => row(...other));
        expect(compareAnswers(reference, reference)).toMatchObject({
          top1Agreement: 1,
          top5Agreement: 1,
          maxDifference: 0,
          meanDifference: 0,
        });
        const { top1Agreement, top5Agreement, maxDifference, meanDifference } = compareAnswers(
          reference,
          others,
        );
        expect(top1Agreement).toBeLessThanOrEqual(top5Agreement);
        expect(top5Agreement).toBeLessThanOrEqual(1);
        expect(meanDifference).toBeLessThanOrEqual(maxDifference + 1e-9);
        expect(maxDifference).toBeLessThanOrEqual(1);
      }),
    );
  });
});
