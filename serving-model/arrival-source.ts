import { Random } from "./random";
import { SendHeap } from "./send-heap";
import { unitArrivals, type UnitArrivals } from "./unit-arrivals";

/** Shape of the offered load; times in seconds. Same meaning as the load generator's shapes. */
export type SimulatedShape =
  | { readonly kind: "poisson"; readonly ratePerS: number }
  | { readonly kind: "constant"; readonly ratePerS: number }
  | {
      readonly kind: "users";
      readonly users: number;
      readonly spawnPerS: number;
      readonly thinkMinS: number;
      readonly thinkMaxS: number;
    }
  /** Arrivals that are known, in order, microseconds. */
  | { readonly kind: "listed"; readonly timesUs: Float64Array };

/**
 * Planned send times in order, one at a time, until `endUs`. Open loop: the same seed gives the same sequence of unit gaps at
 * every rate (common random numbers), so two rates differ by the rate alone.
 */
export class ArrivalSource {
  /** The next planned send, microseconds; Infinity when there is none (in a closed loop: until an answer brings one). */
  nextUs = Infinity;
  /** Whether answers bring sends. */
  readonly closed: boolean;
  private readonly random: Random;
  private readonly poisson: boolean;
  private readonly gapUs: number;
  private index = 0;
  private readonly unit: UnitArrivals | null;
  private readonly listedUs: Float64Array | null;
  private readonly heap: SendHeap | null;
  private readonly thinkMinUs: number;
  private readonly thinkSpanUs: number;

  /** @throws RangeError naming the part of the shape that is wrong. */
  constructor(
    shape: SimulatedShape,
    seed: number,
    private readonly endUs: number,
  ) {
    this.random = new Random(seed);
    this.poisson = shape.kind === "poisson";
    this.unit = this.poisson ? unitArrivals(seed) : null;
    this.closed = shape.kind === "users";
    this.listedUs = shape.kind === "listed" ? shape.timesUs : null;
    if (shape.kind === "users") {
      const { users, spawnPerS, thinkMinS, thinkMaxS } = shape;
      if (!Number.isInteger(users) || users < 1)
        throw new RangeError(`users is ${users}; it must be an integer >= 1.`);
      if (!(spawnPerS > 0)) throw new RangeError(`spawnPerS is ${spawnPerS}; it must be > 0.`);
      if (!(thinkMinS >= 0) || !(thinkMaxS >= thinkMinS)) {
        throw new RangeError(
          `think time is ${thinkMinS} to ${thinkMaxS} s; it must be 0 <= thinkMinS <= thinkMaxS.`,
        );
      }
      this.gapUs = 0;
      this.thinkMinUs = thinkMinS * 1e6;
      this.thinkSpanUs = (thinkMaxS - thinkMinS) * 1e6;
      this.heap = new SendHeap(users);
      for (let user = 0; user < users; user++) {
        // The rest of a think time that is already running, so that users spawned together do not march in step.
        const runningS = Math.sqrt(
          thinkMinS ** 2 + this.random.nextUnit() * (thinkMaxS ** 2 - thinkMinS ** 2),
        );
        this.heap.push((user / spawnPerS + this.random.nextUnit() * runningS) * 1e6);
      }
      this.nextUs = this.heap.peek();
      return;
    }
    const ratePerS = shape.kind === "listed" ? 1 : shape.ratePerS;
    if (!(ratePerS > 0) || ratePerS === Infinity) {
      throw new RangeError(`ratePerS is ${ratePerS}; it must be a finite number > 0.`);
    }
    this.gapUs = 1e6 / ratePerS;
    this.thinkMinUs = 0;
    this.thinkSpanUs = 0;
    this.heap = null;
    this.advance();
  }

  /** Takes the next planned send out. */
  advance(): void {
    if (this.heap !== null) {
      this.heap.pop();
      this.nextUs = this.heap.peek();
    } else if (this.poisson) {
      const { unit } = this;
      if (this.index >= unit!.count) unit!.extend(this.index);
      this.nextUs = this.gapUs * unit!.at[this.index++]!;
    } else if (this.listedUs !== null) {
      this.nextUs = this.index < this.listedUs.length ? this.listedUs[this.index++]! : Infinity;
    } else {
      // From the index, so that rounding never adds up.
      this.nextUs = this.index++ * this.gapUs;
    }
    if (this.nextUs >= this.endUs) this.nextUs = Infinity;
  }

  /** Closed loop: `count` users were answered at `atUs` and now think. */
  answered(atUs: number, count: number): void {
    const heap = this.heap!;
    for (let i = 0; i < count; i++) {
      heap.push(atUs + this.thinkMinUs + this.thinkSpanUs * this.random.nextUnit());
    }
    const nextUs = heap.peek();
    this.nextUs = nextUs >= this.endUs ? Infinity : nextUs;
  }
}

/**
 * A draw of the arrivals of a Poisson load of which only the counts per interval are known: each at a random moment of its
 * interval, after `leadS` seconds of Poisson arrivals at `leadRatePerS`.
 */
export function countedArrivals(
  counts: readonly number[],
  intervalS: number,
  leadS: number,
  leadRatePerS: number,
  random: Random,
): Float64Array {
  const lead: number[] = [];
  for (let atUs = (random.nextExponential() / leadRatePerS) * 1e6; atUs < leadS * 1e6;) {
    lead.push(atUs);
    atUs += (random.nextExponential() / leadRatePerS) * 1e6;
  }
  const timesUs = new Float64Array(lead.length + counts.reduce((sum, count) => sum + count, 0));
  timesUs.set(lead);
  let at = lead.length;
  counts.forEach((count, interval) => {
    const fromUs = (leadS + interval * intervalS) * 1e6;
    // Order statistics of `count` uniform moments, from count + 1 exponential gaps.
    const first = at;
    let sum = 0;
    for (let i = 0; i < count; i++) timesUs[at++] = sum += random.nextExponential();
    const scaleUs = (intervalS * 1e6) / (sum + random.nextExponential());
    for (let i = first; i < at; i++) timesUs[i] = fromUs + timesUs[i]! * scaleUs;
  });
  return timesUs;
}
