/**
 * Mergeable histogram of integer microseconds: exact below 2,048 us, then 1,024 equal buckets an octave. A bucket's lower bound
 * stands for it, so a percentile is at most 0.1 % (1/1,024) too small. Merging adds counts, which is exact: the merged histogram
 * equals the one of all values together. Percentiles of parts are never averaged.
 */
const subBucketBits = 10;
const subBuckets = 2 ** subBucketBits;
const maxBits = 36;

/** Largest value that can be recorded: 2^36 - 1 us, 19 hours. */
export const maxValueUs = 2 ** maxBits - 1;

const bucketCount = (maxBits - subBucketBits + 1) * subBuckets;

/** A histogram without its empty buckets: what goes over the wire. */
export interface SparseHistogram {
  /** Bucket indices, each as the difference to the one before (the first to 0). */
  readonly gaps: readonly number[];
  /** Counts of those buckets, > 0. */
  readonly counts: readonly number[];
  /** Exact sum of the recorded values, microseconds. */
  readonly sumUs: number;
  /** Largest recorded value, exact; 0 when empty. */
  readonly maxUs: number;
}

export class Histogram {
  private readonly buckets = new Float64Array(bucketCount);
  private total = 0;
  private sum = 0;
  private largest = 0;
  private lowestIndex = bucketCount;
  private highestIndex = -1;

  static fromSparse(sparse: SparseHistogram): Histogram {
    const histogram = new Histogram();
    histogram.mergeSparse(sparse);
    return histogram;
  }

  /** Values recorded. */
  get count(): number {
    return this.total;
  }

  /** Exact sum, microseconds. */
  get sumUs(): number {
    return this.sum;
  }

  /** Largest value, exact; NaN when empty. */
  get maxUs(): number {
    return this.total === 0 ? NaN : this.largest;
  }

  /** Exact mean, microseconds; NaN when empty. */
  get meanUs(): number {
    return this.total === 0 ? NaN : this.sum / this.total;
  }

  /** Records one value, rounded to whole microseconds. @throws RangeError outside 0..maxValueUs */
  record(valueUs: number): void {
    const value = Math.round(valueUs);
    if (!(value >= 0 && value <= maxValueUs))
      throw new RangeError(`a recorded time must be 0..${maxValueUs} us, got ${valueUs}`);
    this.add(bucketIndex(value), 1);
    this.sum += value;
    if (value > this.largest) this.largest = value;
  }

  merge(other: Histogram): void {
    for (let index = other.lowestIndex; index <= other.highestIndex; index++) {
      const count = other.buckets[index]!;
      if (count > 0) this.add(index, count);
    }
    this.sum += other.sum;
    this.largest = Math.max(this.largest, other.largest);
  }

  /** @throws RangeError if it is no histogram that `toSparse` could have made */
  mergeSparse(sparse: SparseHistogram): void {
    const problem = sparseProblem(sparse);
    if (problem !== undefined) throw new RangeError(problem);
    const { gaps, counts, sumUs, maxUs } = sparse;
    let index = 0;
    gaps.forEach((gap, position) => {
      index += gap;
      this.add(index, counts[position]!);
    });
    this.sum += sumUs;
    this.largest = Math.max(this.largest, maxUs);
  }

  /**
   * Takes out what was merged before. Counts and sum are then those of the rest, exactly; the largest value stays until nothing is left.
   * @throws RangeError if it holds less than that
   */
  subtractSparse({ gaps, counts, sumUs }: SparseHistogram): void {
    let index = 0;
    gaps.forEach((gap, position) => {
      index += gap;
      const count = counts[position]!;
      if (!(this.buckets[index]! >= count))
        throw new RangeError(`histogram bucket ${index} holds less than ${count}`);
      this.buckets[index]! -= count;
      this.total -= count;
    });
    this.sum -= sumUs;
    if (this.total === 0) this.clear();
  }

  toSparse(): SparseHistogram {
    const gaps: number[] = [];
    const counts: number[] = [];
    let before = 0;
    for (let index = this.lowestIndex; index <= this.highestIndex; index++) {
      const count = this.buckets[index]!;
      if (count === 0) continue;
      gaps.push(index - before);
      counts.push(count);
      before = index;
    }
    return { gaps, counts, sumUs: this.sum, maxUs: this.largest };
  }

  /**
   * Percentile by nearest rank: the smallest value whose cumulative count is >= p n, as its bucket's lower bound.
   * NaN when empty: there is no percentile of nothing.
   * @param p in (0, 1]
   */
  percentileUs(p: number): number {
    if (!(p > 0 && p <= 1)) throw new RangeError(`a percentile's p must be in (0, 1], got ${p}`);
    if (this.total === 0) return NaN;
    const rank = nearestRank(p, this.total);
    let cumulative = 0;
    for (let index = this.lowestIndex; index <= this.highestIndex; index++) {
      cumulative += this.buckets[index]!;
      if (cumulative >= rank) return bucketLowerUs(index);
    }
    throw new Error("histogram counts do not add up");
  }

  /** [lower bound us, count] of every non-empty bucket, ascending. */
  pairs(): [number, number][] {
    const pairs: [number, number][] = [];
    for (let index = this.lowestIndex; index <= this.highestIndex; index++) {
      const count = this.buckets[index]!;
      if (count > 0) pairs.push([bucketLowerUs(index), count]);
    }
    return pairs;
  }

  clear(): void {
    if (this.highestIndex >= 0) this.buckets.fill(0, this.lowestIndex, this.highestIndex + 1);
    this.total = this.sum = this.largest = 0;
    this.lowestIndex = bucketCount;
    this.highestIndex = -1;
  }

  private add(index: number, count: number): void {
    this.buckets[index]! += count;
    this.total += count;
    if (index < this.lowestIndex) this.lowestIndex = index;
    if (index > this.highestIndex) this.highestIndex = index;
  }
}

/** Why this is no histogram that `toSparse` could have made; undefined: it is one. */
export function sparseProblem({ gaps, counts, sumUs, maxUs }: SparseHistogram): string | undefined {
  if (gaps.length !== counts.length)
    return `histogram with ${gaps.length} buckets but ${counts.length} counts`;
  if (!(sumUs >= 0 && sumUs < Infinity) || !(maxUs >= 0 && maxUs <= maxValueUs))
    return `histogram with sum ${sumUs} and maximum ${maxUs}`;
  let before = -1;
  for (let position = 0; position < gaps.length; position++) {
    const bucket = gaps[position]! + (position === 0 ? 0 : before);
    const count = counts[position]!;
    if (!Number.isInteger(bucket) || bucket <= before || bucket >= bucketCount)
      return `histogram bucket ${bucket} is out of order or range`;
    if (!Number.isSafeInteger(count) || count < 1) return `histogram bucket ${bucket} with count ${count}`;
    before = bucket;
  }
  return undefined;
}

/** Smallest whole rank >= p n; p n that misses a whole number only by rounding (0.95 * 100) counts as that number. */
export function nearestRank(p: number, n: number): number {
  const exact = p * n;
  const whole = Math.round(exact);
  return Math.abs(exact - whole) < 1e-9 * n ? Math.max(1, whole) : Math.ceil(exact);
}

/** [lower bound us, count] of every bucket, ascending, as `pairs` of the whole histogram gives them. */
export function pairsOfSparse({ gaps, counts }: SparseHistogram): [number, number][] {
  let index = 0;
  return gaps.map((gap, position) => [bucketLowerUs((index += gap)), counts[position]!]);
}

function bucketIndex(value: number): number {
  if (value < 2 * subBuckets) return value;
  const bits = value < 2 ** 31 ? 31 - Math.clz32(value) : 62 - Math.clz32(Math.floor(value / 2 ** 31));
  const shift = bits - subBucketBits;
  return shift * subBuckets + Math.floor(value / 2 ** shift);
}

function bucketLowerUs(index: number): number {
  if (index < 2 * subBuckets) return index;
  const shift = Math.floor(index / subBuckets) - 1;
  return (index - shift * subBuckets) * 2 ** shift;
}
