/** Min-heap of (due time, user): which closed-loop user sends next. Ties go to the lower user number, so order is reproducible. */
export class DueHeap {
  private readonly times: number[] = [];
  private readonly users: number[] = [];

  /** Earliest due time; Infinity when empty. */
  get earliest(): number {
    return this.times[0] ?? Infinity;
  }

  push(time: number, user: number): void {
    let at = this.times.length;
    this.times.push(time);
    this.users.push(user);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!this.before(at, parent)) return;
      this.swap(at, parent);
      at = parent;
    }
  }

  /** Removes the earliest entry and returns its user. @throws RangeError when empty */
  pop(): number {
    const user = this.users[0];
    if (user === undefined) throw new RangeError("no user is due: the heap is empty");
    const last = this.times.length - 1;
    this.swap(0, last);
    this.times.pop();
    this.users.pop();
    this.sink();
    return user;
  }

  private sink(): void {
    let at = 0;
    for (;;) {
      const left = 2 * at + 1;
      const right = left + 1;
      let least = at;
      if (left < this.times.length && this.before(left, least)) least = left;
      if (right < this.times.length && this.before(right, least)) least = right;
      if (least === at) return;
      this.swap(at, least);
      at = least;
    }
  }

  private before(one: number, other: number): boolean {
    const difference = this.times[one]! - this.times[other]!;
    return difference < 0 || (difference === 0 && this.users[one]! < this.users[other]!);
  }

  private swap(one: number, other: number): void {
    [this.times[one], this.times[other]] = [this.times[other]!, this.times[one]!];
    [this.users[one], this.users[other]] = [this.users[other]!, this.users[one]!];
  }
}
