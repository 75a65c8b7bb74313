/** Buffers are rounded up to a multiple of this, bytes. */
const STEP_BYTES = 65_536;

/**
 * Buffers for the messages that are being received. They are used again: the pages of a fresh 600 kB buffer cost more than
 * the copy into it.
 */
export class MessagePool {
  private readonly free = new Map<number, Buffer[]>();
  private freeBytes = 0;
  private takenBytes = 0;

  constructor(
    /** Unused memory that is kept, bytes. */
    private readonly maxFreeBytes: number,
    /** Memory of messages that are being received, bytes; more is refused. */
    private readonly maxTakenBytes: number,
  ) {}

  /** A buffer of exactly `bytes` with any content; null when the memory for incoming messages is used up. */
  take(bytes: number): Buffer | null {
    const capacity = Math.max(1, Math.ceil(bytes / STEP_BYTES)) * STEP_BYTES;
    if (this.takenBytes + capacity > this.maxTakenBytes) return null;
    this.takenBytes += capacity;
    const known = this.free.get(capacity)?.pop();
    if (known !== undefined) this.freeBytes -= capacity;
    const whole = known ?? Buffer.allocUnsafeSlow(capacity);
    return whole.subarray(0, bytes);
  }

  /** Gives a buffer from `take` back; its content is no longer the caller's. */
  give(message: Buffer): void {
    const capacity = message.buffer.byteLength;
    this.takenBytes -= capacity;
    if (this.freeBytes + capacity > this.maxFreeBytes) return;
    this.freeBytes += capacity;
    const list = this.free.get(capacity);
    const whole = Buffer.from(message.buffer as ArrayBuffer);
    if (list === undefined) this.free.set(capacity, [whole]);
    else list.push(whole);
  }
}
