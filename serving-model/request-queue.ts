/** First-in-first-out queue of requests with size and times beside each: a ring of flat arrays that grows by doubling. */
export class RequestQueue<T> {
  private capacity = 64;
  private head = 0;
  private count = 0;
  private items = new Array<T | undefined>(64);
  private imageCounts = new Int32Array(64);
  private enqueued = new Float64Array(64);
  private deadlines = new Float64Array(64);

  get length(): number {
    return this.count;
  }

  push(item: T, images: number, enqueuedUs: number, deadlineUs: number): void {
    if (this.count === this.capacity) this.grow();
    const at = (this.head + this.count) & (this.capacity - 1);
    this.items[at] = item;
    this.imageCounts[at] = images;
    this.enqueued[at] = enqueuedUs;
    this.deadlines[at] = deadlineUs;
    this.count++;
  }

  /** Images of the request at `position` from the head. */
  images(position: number): number {
    return this.imageCounts[(this.head + position) & (this.capacity - 1)]!;
  }

  /** When the request at `position` from the head was queued, microseconds. */
  enqueuedUs(position: number): number {
    return this.enqueued[(this.head + position) & (this.capacity - 1)]!;
  }

  /** Takes the head out. The caller has checked `length`. */
  shift(): T {
    const at = this.head;
    const item = this.items[at] as T;
    this.items[at] = undefined;
    this.head = (at + 1) & (this.capacity - 1);
    this.count--;
    return item;
  }

  /** Takes out all requests whose deadline is <= nowUs, in order; returns the closest deadline that is left (Infinity: none). */
  removeExpired(nowUs: number, onExpired: (item: T, images: number, enqueuedUs: number) => void): number {
    const mask = this.capacity - 1;
    let kept = 0;
    let closestUs = Infinity;
    for (let position = 0; position < this.count; position++) {
      const from = (this.head + position) & mask;
      const item = this.items[from] as T;
      if (this.deadlines[from]! <= nowUs) {
        onExpired(item, this.imageCounts[from]!, this.enqueued[from]!);
        continue;
      }
      const to = (this.head + kept) & mask;
      this.items[to] = item;
      this.imageCounts[to] = this.imageCounts[from]!;
      this.enqueued[to] = this.enqueued[from]!;
      this.deadlines[to] = this.deadlines[from]!;
      if (this.deadlines[to] < closestUs) closestUs = this.deadlines[to];
      kept++;
    }
    for (let position = kept; position < this.count; position++)
      this.items[(this.head + position) & mask] = undefined;
    this.count = kept;
    return closestUs;
  }

  /** Takes `item` out wherever it is; returns its images, 0 when it is not there. */
  remove(item: T): number {
    const mask = this.capacity - 1;
    for (let position = 0; position < this.count; position++) {
      const found = (this.head + position) & mask;
      if (this.items[found] !== item) continue;
      const images = this.imageCounts[found]!;
      for (let next = position + 1; next < this.count; next++) {
        const to = (this.head + next - 1) & mask;
        const from = (this.head + next) & mask;
        this.items[to] = this.items[from];
        this.imageCounts[to] = this.imageCounts[from]!;
        this.enqueued[to] = this.enqueued[from]!;
        this.deadlines[to] = this.deadlines[from]!;
      }
      this.count--;
      this.items[(this.head + this.count) & mask] = undefined;
      return images;
    }
    return 0;
  }

  private grow(): void {
    const capacity = this.capacity * 2;
    const items = new Array<T | undefined>(capacity);
    const imageCounts = new Int32Array(capacity);
    const enqueued = new Float64Array(capacity);
    const deadlines = new Float64Array(capacity);
    for (let i = 0; i < this.count; i++) {
      const from = (this.head + i) & (this.capacity - 1);
      items[i] = this.items[from];
      imageCounts[i] = this.imageCounts[from]!;
      enqueued[i] = this.enqueued[from]!;
      deadlines[i] = this.deadlines[from]!;
    }
    this.items = items;
    this.imageCounts = imageCounts;
    this.enqueued = enqueued;
    this.deadlines = deadlines;
    this.capacity = capacity;
    this.head = 0;
  }
}
