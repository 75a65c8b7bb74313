import type { Precision, TensorType } from "../../model-repo/variant";
import type { ModelOutput, ScoredClass } from "../executor";

/** Values of an image that decide its answer: enough that two photographs never share all of them. */
const SAMPLES = 64;
const GOLDEN = 0.6180339887498949;
const BYTES_PER_VALUE = { FP32: 4, UINT8: 1 } as const;

/** How far a precision's score may lie from the unconverted model's, absolute. */
const SCORE_DEVIATION: Readonly<Record<Precision, number>> = {
  original: 0,
  fp32: 0.00001,
  fp16: 0.0005,
  int8: 0.005,
};

/** A mistake of a conversion that can be simulated: the model takes red for blue. */
export type ConversionDefect = "swapped-channels";

/**
 * The simulated classifier: a pure function of the image. The class depends on sampled pixel values only, so it is the same in
 * every precision and in FP32 and UINT8 input; a reply that belongs to another image is noticed.
 * @param image values of one image, row-major
 * @returns score in (0.5, 1)
 */
export function classify(
  image: Buffer,
  type: TensorType,
  classes: number,
  precision: Precision,
  defect: ConversionDefect | null = null,
): ScoredClass {
  const hash = hashImage(image, type, defect);
  const classIndex = hash % classes;
  const base = 0.52 + ((hash >>> 8) % 100_003) / 100_003 / 2.2;
  const deviation = ((hash >>> 4) % 2001) / 1000 - 1;
  return { classIndex, score: base + deviation * SCORE_DEVIATION[precision] };
}

function hashImage(image: Buffer, type: TensorType, defect: ConversionDefect | null): number {
  const valueBytes = BYTES_PER_VALUE[type];
  const values = Math.floor(image.length / valueBytes);
  let hash = 0x811c9dc5;
  for (let i = 1; i <= SAMPLES; i++) {
    // Multiples of the golden ratio lie evenly and meet all rows, columns and channels; a constant step would meet few.
    const place = Math.floor(((i * GOLDEN) % 1) * values);
    const read = defect === null ? place : place - (place % 3) + (2 - (place % 3));
    const offset = read * valueBytes;
    const value = type === "FP32" ? image.readFloatLE(offset) : image[offset]!;
    // 1/256 of a pixel step: equal for the same pixel in both types, and distinct for inputs scaled to 0..1.
    hash = Math.imul(hash ^ (value * 256), 0x01000193);
    hash ^= hash >>> 15;
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x45d9f3b);
  return (hash ^ (hash >>> 16)) >>> 0;
}

/** The classifier's answers to the images of one request. */
export class SimulatedOutput implements ModelOutput {
  constructor(
    private readonly answers: readonly ScoredClass[],
    private readonly classes: number,
  ) {}

  /** The rest of the probability falls on the following classes, half of what is left on each: below the best class's share. */
  top(image: number, count: number): readonly ScoredClass[] {
    const best = this.answers[image]!;
    const list: ScoredClass[] = [best];
    let rest = 1 - best.score;
    while (list.length < Math.min(count, this.classes)) {
      rest /= 2;
      list.push({ classIndex: (best.classIndex + list.length) % this.classes, score: rest });
    }
    return list;
  }

  raw(): Buffer {
    const buffer = Buffer.alloc(this.answers.length * this.classes * 4);
    for (let image = 0; image < this.answers.length; image++) {
      for (const { classIndex, score } of this.top(image, this.classes)) {
        buffer.writeFloatLE(score, (image * this.classes + classIndex) * 4);
      }
    }
    return buffer;
  }
}
