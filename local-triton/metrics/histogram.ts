/** Upper bounds of the buckets, microseconds: close steps up to the order of an SLO bound of 100 ms. */
export const BUCKETS_US = [
  100, 250, 500, 1000, 1500, 2000, 3000, 4000, 5000, 7500, 10_000, 15_000, 20_000, 30_000, 50_000, 100_000,
  200_000, 500_000, 1_000_000,
] as const;

/** A cumulative histogram as Prometheus has it: the difference of two scrapes is a window's distribution. */
export class Histogram {
  private readonly counts = new Array<number>(BUCKETS_US.length + 1).fill(0);
  private total = 0;
  private sumUs = 0;

  record(us: number): void {
    let bucket = 0;
    while (bucket < BUCKETS_US.length && us > BUCKETS_US[bucket]!) bucket++;
    this.counts[bucket]!++;
    this.total++;
    this.sumUs += us;
  }

  /** Sample lines: one bucket a line with the number of values up to its bound, then sum and count. */
  lines(name: string): string[] {
    let cumulative = 0;
    const buckets = BUCKETS_US.map((bound, index) => {
      cumulative += this.counts[index]!;
      return `${name}_bucket{le="${bound}"} ${cumulative}`;
    });
    return [
      ...buckets,
      `${name}_bucket{le="+Inf"} ${this.total}`,
      `${name}_sum ${Math.round(this.sumUs)}`,
      `${name}_count ${this.total}`,
    ];
  }
}
