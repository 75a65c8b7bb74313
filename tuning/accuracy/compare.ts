/** How far a variant's answers lie from those of the reference, on the same images. Pure. */

export interface AccuracyFigures {
  readonly images: number;
  /** Share of the images whose most probable class is the reference's. */
  readonly top1Agreement: number;
  /** Share of the images whose class by the reference is among the variant's five most probable ones. */
  readonly top5Agreement: number;
  /** Largest difference of a class's probability, over all images. */
  readonly maxDifference: number;
  /** Each image's largest difference of a class's probability, averaged over the images. */
  readonly meanDifference: number;
  /** Scores were no probabilities and were compared after a softmax. */
  readonly afterSoftmax: boolean;
}

/** The answers cannot be compared; the message says why, to stand after the variant's name. */
export class NotComparableError extends Error {
  override readonly name = "NotComparableError";
}

/** Beyond rounding, no probability is above 1. */
const mostProbability = 1.001;

/**
 * @param reference scores by image, a class each
 * @throws NotComparableError for other numbers of images or classes, and for what is not finite
 */
export function compareAnswers(
  reference: readonly Float32Array[],
  answers: readonly Float32Array[],
): AccuracyFigures {
  checkComparable(reference, answers);
  const afterSoftmax = ![...reference, ...answers].every(isProbabilities);
  let top1 = 0;
  let top5 = 0;
  const differences = reference.map((expected, image) => {
    const given = answers[image]!;
    const best = bestClass(expected);
    const place = placeOf(best, given);
    if (place === 0) top1++;
    if (place < 5) top5++;
    return largestDifference(
      afterSoftmax ? softmax(expected) : expected,
      afterSoftmax ? softmax(given) : given,
    );
  });
  const images = reference.length;
  return {
    images,
    top1Agreement: top1 / images,
    top5Agreement: top5 / images,
    maxDifference: Math.max(...differences),
    meanDifference: differences.reduce((sum, difference) => sum + difference, 0) / images,
    afterSoftmax,
  };
}

function checkComparable(reference: readonly Float32Array[], answers: readonly Float32Array[]): void {
  if (reference.length === 0) throw new NotComparableError("there is no image to compare on");
  if (answers.length !== reference.length)
    throw new NotComparableError(`${answers.length} answers for ${reference.length} images`);
  const lengths = new Set(answers.map(({ length }) => length));
  const [wanted] = reference.map(({ length }) => length);
  if (lengths.size !== 1 || !lengths.has(wanted!))
    throw new NotComparableError(
      `it answers with ${[...lengths].join(" or ")} classes, the reference with ${wanted}`,
    );
  for (const [whose, list] of [
    ["the reference's answers", reference],
    ["its answers", answers],
  ] as const) {
    const broken = list.filter((scores) => !scores.every(Number.isFinite)).length;
    if (broken > 0)
      throw new NotComparableError(
        `${broken} of ${whose} to ${list.length} images hold numbers that are not finite`,
      );
  }
}

function isProbabilities(scores: Float32Array): boolean {
  return scores.every((score) => score >= -1e-6 && score <= mostProbability);
}

function bestClass(scores: Float32Array): number {
  return scores.reduce((best, score, index) => (score > scores[best]! ? index : best), 0);
}

/** Place of a class by falling score, from 0; of equal scores the lower index goes first, or a model that knows nothing would agree. */
function placeOf(classIndex: number, scores: Float32Array): number {
  const own = scores[classIndex]!;
  return scores.filter((score, index) => score > own || (score === own && index < classIndex)).length;
}

function largestDifference(a: Float32Array, b: Float32Array): number {
  return a.reduce((largest, score, index) => Math.max(largest, Math.abs(score - b[index]!)), 0);
}

function softmax(scores: Float32Array): Float32Array {
  const highest = Math.max(...scores);
  const powers = scores.map((score) => Math.exp(score - highest));
  const sum = powers.reduce((total, power) => total + power, 0);
  return powers.map((power) => power / sum);
}
