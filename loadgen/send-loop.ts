/**
 * Sends the requests of a plan at their planned times and counts how they ended.
 *
 * Catch-up policy: a loop that wakes late sends everything that is due, at once and in order; nothing is skipped, moved or sent twice,
 * and every request is timed from its plan, so lateness makes a result worse, never better. Replies are read again after MAX_BURST
 * requests, or as many as took MAX_TURN_MS: handing 602 kB to the kernel takes 0.1 to 0.3 ms, and dozens in one turn of the event loop would
 * keep everything else waiting. What would go over the in-flight cap is shed: not sent, and counted as late.
 *
 * Time dilation: planned model times are multiplied by it, measured times divided; everything that is recorded is undilated.
 */
import type { Plan } from "./schedule";
import { INTERVAL_S } from "./slo-counter";
import { Tally } from "./tally";
import type { LoopTime, WakeTimer } from "./wake-timer";

/** Requests sent in one turn of the event loop at most. */
export const MAX_BURST = 64;
/** A turn of the event loop in which sending has taken this long sends no more, milliseconds. */
export const MAX_TURN_MS = 1;

/** How one sent request ended. */
export interface SentRequest {
  /** From the real send to the last byte of the answer, microseconds of wall time. */
  readonly serviceTimeUs: number;
  readonly address: string;
  /** Class and message; undefined when it was answered correctly. */
  readonly error: { readonly kind: string; readonly message: string } | undefined;
}

export interface SendLoopOptions {
  readonly plan: Plan;
  readonly time: LoopTime;
  /** Sends the next request; `deadlineMs` is wall time. Must not reject. */
  readonly send: (deadlineMs: number) => Promise<SentRequest>;
  /** Seconds of model time. */
  readonly warmupS: number;
  /** Seconds of model time. */
  readonly measureS: number;
  /** Milliseconds of model time. */
  readonly sloBoundMs: number;
  /** Milliseconds of model time. */
  readonly deadlineMs: number;
  /** Cap of this loop. */
  readonly maxInFlight: number;
  readonly timeDilation: number;
}

export class SendLoop {
  /** Requests of the measured window; the owner may take from it and clear it at any time. */
  readonly measured = new Tally();
  /** Requests of the warm-up, for display. */
  readonly warmup = new Tally();
  private readonly timer: WakeTimer;
  private windowEndS: number;
  /** Requests go on after the window for one SLO bound: only so long can they help or hinder one that may still be in time. */
  private endS: number;
  private startMs = NaN;
  private armedForS = Infinity;
  private open = 0;
  private openMeasured = 0;
  private cancelWindowTimer: (() => void) | undefined;
  private isBursting = false;
  private finish: (() => void) | undefined;

  constructor(private readonly options: SendLoopOptions) {
    this.windowEndS = options.warmupS + options.measureS;
    this.endS = this.windowEndS + options.sloBoundMs / 1000;
    this.timer = options.time.createTimer(() => this.sendDue());
  }

  get inFlight(): number {
    return this.open;
  }

  /** Wall time of a model time, on the clock. */
  wallMs(modelS: number): number {
    return this.startMs + modelS * 1000 * this.options.timeDilation;
  }

  /** Sends the plan with its time 0 at `startMs` of the clock; resolves when every measured request has ended, or after `stop`. */
  run(startMs: number): Promise<void> {
    this.startMs = startMs;
    return new Promise((resolve) => {
      this.finish = resolve;
      this.awaitWindowEnd();
      this.arm();
    });
  }

  /** Ends the measured window at a model time, or now when that is past; what is in flight is still waited for. */
  endAt(atS: number): void {
    if (this.finish === undefined) return;
    this.windowEndS = Math.min(this.windowEndS, Math.max(atS, this.modelS(this.options.time.nowMs())));
    this.endS = Math.min(this.endS, this.windowEndS + this.options.sloBoundMs / 1000);
    this.cancelWindowTimer?.();
    this.awaitWindowEnd();
  }

  /** The plan has changed: its next time may come earlier. */
  replanned(): void {
    if (this.finish !== undefined) this.arm();
  }

  /** Sends nothing more; `run` resolves. Requests in flight are not waited for. */
  stop(): void {
    this.cancelWindowTimer?.();
    this.timer.close();
    this.finish?.();
    this.finish = undefined;
  }

  private sendDue(): void {
    this.armedForS = Infinity;
    const { plan, time } = this.options;
    const turnEndMs = time.nowMs() + MAX_TURN_MS;
    for (let sent = 0; sent < MAX_BURST; sent++) {
      if (this.finish === undefined || plan.nextAtS >= this.endS) return this.finishIfDone();
      const plannedMs = this.wallMs(plan.nextAtS);
      const nowMs = time.nowMs();
      if (plannedMs > nowMs) return this.arm();
      if (nowMs >= turnEndMs) break;
      this.sendOne(plannedMs, nowMs);
    }
    this.isBursting = true;
    time.soon(() => {
      this.isBursting = false;
      this.sendDue();
    });
  }

  private sendOne(plannedMs: number, nowMs: number): void {
    const { options } = this;
    const { plan } = options;
    const atS = plan.nextAtS;
    const user = plan.take();
    const isMeasured = atS >= options.warmupS && atS < this.windowEndS;
    const tally = isMeasured ? this.measured : atS < options.warmupS ? this.warmup : undefined;
    const interval = Math.floor((isMeasured ? atS - options.warmupS : atS) / INTERVAL_S);
    const isOnTime = nowMs < this.wallMs(this.windowEndS);
    if (this.open >= options.maxInFlight) {
      tally?.shed(interval, isOnTime);
      plan.ended(user, this.modelS(nowMs));
      return;
    }
    tally?.sent(this.modelUs(nowMs - plannedMs), isOnTime);
    this.open++;
    if (isMeasured) this.openMeasured++;
    void options.send(options.deadlineMs * options.timeDilation).then(({ serviceTimeUs, address, error }) => {
      this.open--;
      if (isMeasured) this.openMeasured--;
      if (this.finish === undefined) return;
      const endMs = nowMs + serviceTimeUs / 1000;
      const responseUs = this.modelUs(endMs - plannedMs);
      const serviceUs = serviceTimeUs / options.timeDilation;
      const ending = error !== undefined ? "failed" : responseUs <= options.sloBoundMs * 1000 ? "ok" : "late";
      tally?.ended({ interval, ending, responseUs, serviceUs, address, error });
      plan.ended(user, this.modelS(endMs));
      this.arm();
      this.finishIfDone();
    });
  }

  /** Arms the timer for the next planned time, unless it is armed for that or an earlier one. */
  private arm(): void {
    const { nextAtS } = this.options.plan;
    if (this.isBursting || nextAtS >= Math.min(this.endS, this.armedForS)) return;
    this.armedForS = nextAtS;
    this.timer.armAt(this.wallMs(nextAtS));
  }

  private awaitWindowEnd(): void {
    const leftMs = this.wallMs(this.windowEndS) - this.options.time.nowMs();
    if (leftMs <= 0) return this.finishIfDone();
    this.cancelWindowTimer = this.options.time.after(Math.min(leftMs + 1, 2 ** 30), () =>
      this.awaitWindowEnd(),
    );
  }

  private finishIfDone(): void {
    if (this.openMeasured > 0 || this.options.plan.nextAtS < this.windowEndS) return;
    if (this.options.time.nowMs() >= this.wallMs(this.windowEndS)) this.stop();
  }

  private modelS(nowMs: number): number {
    return (nowMs - this.startMs) / 1000 / this.options.timeDilation;
  }

  private modelUs(wallMs: number): number {
    return (wallMs * 1000) / this.options.timeDilation;
  }
}
