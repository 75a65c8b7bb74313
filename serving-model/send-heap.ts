/** Planned send times of closed-loop users, earliest first: a binary heap in one flat array. */
export class SendHeap {
  private readonly times: Float64Array;
  private count = 0;

  /** `capacity`: number of users; each has at most one planned send. */
  constructor(capacity: number) {
    this.times = new Float64Array(capacity);
  }

  /** Earliest time; Infinity when empty. */
  peek(): number {
    return this.count > 0 ? this.times[0]! : Infinity;
  }

  push(time: number): void {
    const { times } = this;
    let at = this.count++;
    while (at > 0) {
      const parent = (at - 1) >>> 1;
      if (times[parent]! <= time) break;
      times[at] = times[parent]!;
      at = parent;
    }
    times[at] = time;
  }

  /** Removes the earliest. The caller has checked that there is one. */
  pop(): void {
    const { times } = this;
    const last = times[--this.count]!;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= this.count) break;
      if (child + 1 < this.count && times[child + 1]! < times[child]!) child++;
      if (times[child]! >= last) break;
      times[at] = times[child]!;
      at = child;
    }
    times[at] = last;
  }
}
