import type { ModelOutput, ScoredClass } from "../executor";

/** Scores of one request's images, as the model gave them. */
export class ScoresOutput implements ModelOutput {
  constructor(
    /** Row-major, one row an image. */
    private readonly scores: Float32Array,
    private readonly classes: number,
  ) {}

  /** Of equal scores the lower class index goes first; what is no number goes last. */
  top(image: number, count: number): readonly ScoredClass[] {
    const row = this.scores.subarray(image * this.classes, (image + 1) * this.classes);
    const rankOf = (score: number): number => (Number.isNaN(score) ? -Infinity : score);
    const order = Array.from(row.keys()).sort((a, b) => rankOf(row[b]!) - rankOf(row[a]!) || a - b);
    return order.slice(0, count).map((classIndex) => ({ classIndex, score: row[classIndex]! }));
  }

  raw(): Buffer {
    return Buffer.from(this.scores.buffer, this.scores.byteOffset, this.scores.byteLength);
  }
}
