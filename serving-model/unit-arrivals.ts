/**
 * Arrivals of a Poisson stream of rate 1, kept for the seeds used last: searching for a knee simulates the same arrivals at many rates,
 * and drawing them is a third of the work.
 */
import { Random } from "./random";

/** Seeds kept, and arrivals kept of each: 8 MB a seed. */
const keptSeeds = 16;
const keptArrivals = 1 << 20;
const kept = new Map<number, UnitArrivals>();

/** The stream of a seed; always the same one. */
export function unitArrivals(seed: number): UnitArrivals {
  const known = kept.get(seed);
  // A long stream in use must not be lengthened by somebody else who is at its start: it only ever grows.
  const stream = known ?? new UnitArrivals(seed);
  kept.delete(seed);
  kept.set(seed, stream);
  if (kept.size > keptSeeds) kept.delete(kept.keys().next().value!);
  return stream;
}

export class UnitArrivals {
  /** Times, in order; the first `count` are drawn. */
  at = new Float64Array(1024);
  count = 0;
  private readonly random: Random;
  private last = 0;

  constructor(private readonly seed: number) {
    this.random = new Random(seed);
  }

  /** Draws on, beyond `index`. */
  extend(index: number): void {
    const target = Math.max(index + 1, Math.min(2 * this.count, this.count + 65_536));
    if (target > this.at.length) {
      const longer = new Float64Array(Math.max(target, 2 * this.at.length));
      longer.set(this.at);
      this.at = longer;
    }
    const { at, random } = this;
    let { last } = this;
    for (let i = this.count; i < target; i++) at[i] = last += random.nextExponential();
    this.last = last;
    this.count = target;
    if (this.count > keptArrivals) kept.delete(this.seed);
  }
}
