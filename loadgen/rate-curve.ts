/**
 * A rate over time and its inverse: when the n-th arrival is due. Pieces are linear, so the number of arrivals up to a time is
 * quadratic in each and can be inverted exactly; nothing is summed up, so nothing drifts.
 */
import type { LoadProfile } from "./load-profile";

interface Piece {
  readonly startS: number;
  /** Infinity for the last one. */
  readonly forS: number;
  readonly fromPerS: number;
  /** Change of the rate per second, requests/s². */
  readonly slope: number;
  /** Arrivals before the piece. */
  readonly before: number;
}

/** Shapes with a rate at every time. */
export type RatedProfile = Exclude<LoadProfile, { kind: "users" } | { kind: "recorded" }>;

export class RateCurve {
  private readonly pieces: readonly Piece[];
  private at = 0;

  constructor(shape: RatedProfile) {
    const pieces: Piece[] = [];
    const add = (forS: number, fromPerS: number, toPerS: number): void => {
      const last = pieces.at(-1);
      const startS = last === undefined ? 0 : last.startS + last.forS;
      const before = last === undefined ? 0 : last.before + arrivalsIn(last, last.forS);
      pieces.push({
        startS,
        forS,
        fromPerS,
        slope: forS === Infinity ? 0 : (toPerS - fromPerS) / forS,
        before,
      });
    };
    if (shape.kind === "ramp") add(shape.overS, shape.fromPerS, shape.toPerS);
    if (shape.kind === "steps")
      for (const { ratePerS, forS } of shape.steps.slice(0, -1)) add(forS, ratePerS, ratePerS);
    const last =
      shape.kind === "ramp"
        ? shape.toPerS
        : shape.kind === "steps"
          ? shape.steps.at(-1)!.ratePerS
          : shape.ratePerS;
    add(Infinity, last, last);
    this.pieces = pieces;
  }

  /** Arrivals from the start up to a time, with fractions. */
  arrivalsBy(atS: number): number {
    let piece = this.pieces[0]!;
    for (const next of this.pieces) if (next.startS <= atS) piece = next;
    return piece.before + arrivalsIn(piece, atS - piece.startS);
  }

  /** When this many arrivals have come; must be asked with growing numbers. */
  timeOf(arrivals: number): number {
    while (this.at + 1 < this.pieces.length && arrivals >= this.pieces[this.at + 1]!.before) this.at++;
    const { startS, fromPerS, slope, before } = this.pieces[this.at]!;
    const more = arrivals - before;
    if (more === 0) return startS;
    // Root of fromPerS t + slope t² / 2 = more, in the form that loses no digits.
    return startS + (2 * more) / (fromPerS + Math.sqrt(fromPerS ** 2 + 2 * slope * more));
  }
}

function arrivalsIn({ fromPerS, slope }: Piece, elapsedS: number): number {
  return fromPerS * elapsedS + (slope * elapsedS ** 2) / 2;
}
