/**
 * A timer with sub-millisecond precision. Node's own timers have a grain of a millisecond and may fire up to one early; spinning through the
 * rest costs a third of a core at 500 requests/s, which a server on the same machine misses. Here a helper thread sleeps on a futex until
 * the due time and wakes the event loop. Measured on two busy cores at 500 wake-ups/s: lateness p50 0.15 ms and 6 % of a core, against
 * 0.00 ms and 38 % for setTimeout + setImmediate, and 0.65 ms and 4 % for setTimeout alone.
 *
 * A process that sleeps gets its core back late when something else has taken it meanwhile: that is most of the lateness at the 99th
 * percentile. Who has a core to spare can have the loop woken ahead of time and let it wait awake (busy waiting), reading answers meanwhile.
 */
import { Worker } from "node:worker_threads";

/** Monotonic time and what waits for it; tests replace it by virtual time. */
export interface LoopTime {
  /** Milliseconds since some fixed moment, with fractions. */
  nowMs(): number;
  /** A precise timer that calls `wake`. */
  createTimer(wake: () => void): WakeTimer;
  /** Calls `act` after about this long; returns how to cancel it. */
  after(ms: number, act: () => void): () => void;
  /** Calls `act` when pending input has been read. */
  soon(act: () => void): void;
}

export interface WakeTimer {
  /** Wakes once at this time of the clock, or right away when it is past; never before. Replaces an earlier arming. */
  armAt(atMs: number): void;
  disarm(): void;
  close(): void;
}

/** A wake-up that is this little early is waited out, milliseconds: rounding between the threads' clocks. */
const EARLY_TOLERANCE_MS = 0.1;
/** A turn of the loop while it waits awake that took less read nothing, milliseconds: such turns take 2 to 10 microseconds. */
const IDLE_TURN_MS = 0.05;
/** Longest busy waiting, milliseconds: more than this is no wait any more but a core that never rests. */
export const MAX_BUSY_WAIT_MS = 10;

let busyWaitedTotalMs = 0;

/** What all timers of this process have waited awake so far, milliseconds: CPU time that no request cost. */
export function busyWaitedMs(): number {
  return busyWaitedTotalMs;
}

/**
 * Runs in the helper thread. After every sleep it looks again, whatever woke it: the notification of an arming may come when it
 * already sleeps for that arming. `state[0]` counts armings; `due[0]` is the armed time on the process's clock, `due[1]` what to subtract from
 * hrtime to get there. The thread sleeps until the due time or until another arming.
 */
const helperSource = `
const { workerData, parentPort } = require("node:worker_threads");
const state = new Int32Array(workerData, 0, 1);
const due = new Float64Array(workerData, 8, 2);
const nowMs = () => { const [s, ns] = process.hrtime(); return s * 1e3 + ns / 1e6 - due[1]; };
let handled = 0;
for (;;) {
  const arming = Atomics.load(state, 0);
  const leftMs = arming === handled ? Infinity : due[0] - nowMs();
  if (leftMs > 0) {
    Atomics.wait(state, 0, arming, leftMs);
  } else {
    handled = arming;
    parentPort.postMessage(arming);
  }
}`;

/** A timer on the process's clock. Keeps the process alive only while it is armed. */
export class ThreadWakeTimer implements WakeTimer {
  private readonly helper: Worker;
  private readonly state: Int32Array;
  private readonly due: Float64Array;
  private armedAtMs = Infinity;
  /** A turn of the loop is asked for. */
  private isTurnDue = false;
  /** When the last turn of busy waiting was; NaN: it does not wait awake. */
  private awakeSinceMs = NaN;

  /** @param busyWaitMs the loop is woken this long ahead and waits awake, milliseconds */
  constructor(
    private readonly wake: () => void,
    private readonly busyWaitMs = 0,
  ) {
    const memory = new SharedArrayBuffer(24);
    this.state = new Int32Array(memory, 0, 1);
    this.due = new Float64Array(memory, 8, 2);
    this.due[1] = hrtimeOffsetMs();
    // No loaders and flags of this process: the helper has to be up before the first request.
    this.helper = new Worker(helperSource, { eval: true, workerData: memory, execArgv: [] });
    this.helper.on("message", (arming: number) => {
      if (arming === this.state[0]) this.onDue();
    });
    this.helper.unref();
  }

  armAt(atMs: number): void {
    this.armedAtMs = atMs;
    this.helper.ref();
    const wakeMs = atMs - this.busyWaitMs;
    if (wakeMs <= performance.now()) return this.lookInNextTurn();
    this.due[0] = wakeMs;
    Atomics.add(this.state, 0, 1);
    Atomics.notify(this.state, 0);
  }

  disarm(): void {
    this.armedAtMs = Infinity;
    this.helper.unref();
  }

  close(): void {
    this.disarm();
    void this.helper.terminate();
  }

  private lookInNextTurn(): void {
    if (this.isTurnDue) return;
    this.isTurnDue = true;
    setImmediate(() => {
      this.isTurnDue = false;
      this.onDue();
    });
  }

  private onDue(): void {
    const { armedAtMs } = this;
    const nowMs = performance.now();
    const turnMs = nowMs - this.awakeSinceMs;
    if (turnMs < IDLE_TURN_MS) busyWaitedTotalMs += turnMs;
    this.awakeSinceMs = NaN;
    const earlyMs = armedAtMs - nowMs;
    if (earlyMs === Infinity) return;
    if (earlyMs > EARLY_TOLERANCE_MS) {
      if (earlyMs <= this.busyWaitMs) this.awakeSinceMs = nowMs;
      return this.armAt(armedAtMs);
    }
    this.disarm();
    while (performance.now() < armedAtMs);
    if (this.busyWaitMs > 0) busyWaitedTotalMs += Math.max(0, performance.now() - nowMs);
    this.wake();
  }
}

/** What hrtime is ahead of performance.now, milliseconds: the sample with the least time between the two readings. */
function hrtimeOffsetMs(): number {
  let best = { spanMs: Infinity, offsetMs: 0 };
  for (let sample = 0; sample < 10; sample++) {
    const beforeMs = performance.now();
    const [seconds, nanoseconds] = process.hrtime();
    const afterMs = performance.now();
    const spanMs = afterMs - beforeMs;
    const offsetMs = seconds * 1e3 + nanoseconds / 1e6 - (beforeMs + afterMs) / 2;
    if (spanMs < best.spanMs) best = { spanMs, offsetMs };
  }
  return best.offsetMs;
}

/** The process's own time, with timers that wait awake for so many milliseconds (0 to MAX_BUSY_WAIT_MS). */
export function createProcessTime(busyWaitMs: number): LoopTime {
  return {
    nowMs: () => performance.now(),
    createTimer: (wake) => new ThreadWakeTimer(wake, busyWaitMs),
    after: (ms, act) => {
      const timer = setTimeout(act, ms);
      return () => clearTimeout(timer);
    },
    soon: (act) => setImmediate(act),
  };
}
