import type { LoopTime } from "../../../loadgen/wake-timer";

/** Virtual time for the send loop: events happen in order of time, nothing waits. Starts at an odd moment, as real clocks do. */
export class VirtualTime implements LoopTime {
  private now = 1234.5;
  private events: { atMs: number; order: number; act: () => void }[] = [];
  private order = 0;

  nowMs(): number {
    return this.now;
  }

  createTimer(wake: () => void): { armAt(atMs: number): void; disarm(): void; close(): void } {
    let cancel: (() => void) | undefined;
    const disarm = (): void => cancel?.();
    return {
      armAt: (atMs) => {
        disarm();
        cancel = this.at(atMs, wake);
      },
      disarm,
      close: disarm,
    };
  }

  after(ms: number, act: () => void): () => void {
    return this.at(this.now + ms, act);
  }

  soon(act: () => void): void {
    this.at(this.now, act);
  }

  at(atMs: number, act: () => void): () => void {
    const event = { atMs: Math.max(atMs, this.now), order: this.order++, act };
    this.events.push(event);
    return () => {
      this.events = this.events.filter((other) => other !== event);
    };
  }

  /** Blocks the process for this long: everything that falls due meanwhile happens afterwards. */
  block(ms: number): void {
    this.now += ms;
  }

  /** Plays events, and the promises that they settle, until nothing is left. */
  async play(): Promise<void> {
    for (;;) {
      for (let turn = 0; turn < 8; turn++) await Promise.resolve();
      if (this.events.length === 0) return;
      this.events.sort((one, other) => one.atMs - other.atMs || one.order - other.order);
      const event = this.events.shift()!;
      this.now = Math.max(this.now, event.atMs);
      event.act();
    }
  }
}
