/** One measurement over all workers, from preparing to the merged result. */
import type { LoadProgress, LoadResult, LoadSpec } from "./load-spec";
import { toLoadResult } from "./merge-result";
import type { Delta, Done, PrepareFailed, WindowHealth, WorkerMessage } from "./protocol";
import { SlidingWindow } from "./sliding-window";
import { Tally } from "./tally";
import type { SessionListener, WorkerSession } from "./worker-session";

/** Time from the start message to the load, milliseconds: it reaches every worker within this. */
const START_IN_MS = 150;
/** Longest time to decode images, connect and warm up, milliseconds. */
const PREPARE_TIMEOUT_MS = 60_000;
/** How long workers may report later than their last deadline, milliseconds. */
const REPORT_SLACK_MS = 10_000;
const PROGRESS_EVERY_MS = 1000;
/** Span of the rate and p95 that progress shows, wall milliseconds. */
const PROGRESS_WINDOW_MS = 3000;

type Phase = LoadProgress["phase"];

export interface ControllerRunOptions {
  readonly spec: LoadSpec;
  readonly sessions: readonly WorkerSession[];
  readonly onProgress: ((progress: LoadProgress) => void) | undefined;
}

export class ControllerRun implements SessionListener {
  private readonly measured = new Tally();
  private readonly planned = new Map<WorkerSession, number>();
  private readonly sequences = new Map<WorkerSession, number>();
  private readonly prepared = new Set<WorkerSession>();
  private readonly healths = new Map<WorkerSession, WindowHealth>();
  private readonly faults: string[] = [];
  private live = new SlidingWindow(PROGRESS_WINDOW_MS, performance.now());
  /** Of the load's time 0: on the monotonic clock, and Unix milliseconds. */
  private startMs = NaN;
  private startUnixMs = NaN;
  private timeout: NodeJS.Timeout | undefined;
  private progressTimer: NodeJS.Timeout | undefined;
  private unlisten: () => void = () => undefined;
  private settle: { resolve: (result: LoadResult) => void; reject: (error: unknown) => void } | undefined;

  constructor(private readonly options: ControllerRunOptions) {}

  /** Rejects if the spec is bad, or with the signal's reason. */
  run(signal: AbortSignal | undefined): Promise<LoadResult> {
    const { spec, sessions } = this.options;
    return new Promise<LoadResult>((resolve, reject) => {
      this.settle = { resolve, reject };
      const onAbort = (): void => this.end(() => reject(reasonOf(signal)));
      signal?.addEventListener("abort", onAbort, { once: true });
      this.unlisten = () => signal?.removeEventListener("abort", onAbort);
      for (const session of sessions) session.listener = this;
      this.timeout = setTimeout(() => this.fail(this.unpreparedReason()), PREPARE_TIMEOUT_MS);
      this.progressTimer = setInterval(() => this.showProgress(), PROGRESS_EVERY_MS);
      this.showProgress();
      sessions.forEach((session, workerIndex) => {
        const maxInFlight = shareOf(spec.maxInFlight, workerIndex, sessions.length);
        const workerCount = sessions.length;
        session.say({
          body: "prepare",
          prepare: { runId: spec.id, spec, workerIndex, workerCount, maxInFlight },
        });
      });
    });
  }

  message(session: WorkerSession, message: WorkerMessage): void {
    if (this.settle === undefined) return;
    switch (message.body) {
      case "prepared":
        if (message.prepared.runId === this.options.spec.id) this.onPrepared(session);
        return;
      case "prepareFailed":
        if (message.prepareFailed.runId === this.options.spec.id)
          this.onPrepareFailed(session, message.prepareFailed);
        return;
      case "delta":
        if (message.delta.runId === this.options.spec.id) this.onDelta(session, message.delta);
        return;
      case "done":
        if (message.done.runId === this.options.spec.id) this.onDone(session, message.done);
        return;
      default:
        return;
    }
  }

  lost(session: WorkerSession, reason: string): void {
    if (!this.healths.has(session)) this.fail(`load worker ${session.name} was lost: ${reason}`);
  }

  private onPrepared(session: WorkerSession): void {
    this.prepared.add(session);
    const { spec, sessions } = this.options;
    if (this.prepared.size < sessions.length) return;
    for (const each of sessions) each.say({ body: "start", start: { runId: spec.id, inMs: START_IN_MS } });
    this.startMs = performance.now() + START_IN_MS;
    this.startUnixMs = Date.now() + START_IN_MS;
    this.live = new SlidingWindow(PROGRESS_WINDOW_MS, this.startMs);
    const longestMs = (spec.warmupS + spec.measureS) * 1000 + spec.sloBoundMs + spec.deadlineMs;
    clearTimeout(this.timeout);
    this.timeout = setTimeout(
      () => this.fail(this.unfinishedReason()),
      START_IN_MS + longestMs * spec.timeDilation + REPORT_SLACK_MS,
    );
  }

  private onPrepareFailed(session: WorkerSession, { isBadSpec, message }: PrepareFailed): void {
    if (isBadSpec) {
      const { settle } = this;
      this.end(() => settle?.reject(new Error(`load worker ${session.name}: ${message}`)));
    } else {
      this.fail(`load worker ${session.name}: ${message}`);
    }
  }

  private onDelta(session: WorkerSession, { sequence, measured, warmup }: Delta): void {
    const before = this.sequences.get(session) ?? 0;
    // Said again: counted already.
    if (sequence <= before) return;
    if (sequence !== before + 1)
      return this.fail(`reports ${before + 1}..${sequence - 1} of load worker ${session.name} were lost`);
    this.sequences.set(session, sequence);
    try {
      this.measured.mergeMessage(measured);
    } catch (error) {
      return this.fail(`load worker ${session.name} sent a report that is none: ${(error as Error).message}`);
    }
    const planned = measured.intervals.reduce((sum, { ok, late, failed }) => sum + ok + late + failed, 0);
    this.planned.set(session, (this.planned.get(session) ?? 0) + planned);
    const nowMs = performance.now();
    this.live.add(warmup.response, nowMs);
    this.live.add(measured.response, nowMs);
  }

  private onDone(session: WorkerSession, { lastSequence, planned, health }: Done): void {
    const received = this.planned.get(session) ?? 0;
    if (lastSequence !== this.sequences.get(session) || planned !== received)
      return this.fail(
        `load worker ${session.name} counted ${planned} requests, but its reports add up to ${received}`,
      );
    this.healths.set(session, health);
    if (this.healths.size === this.options.sessions.length) this.finish();
  }

  /** Ends the measurement without valid numbers. */
  private fail(reason: string): void {
    this.faults.push(reason);
    this.finish();
  }

  private finish(): void {
    const { spec, sessions } = this.options;
    const { settle } = this;
    const fromUnixMs = this.startUnixMs + spec.warmupS * 1000 * spec.timeDilation;
    this.showProgress();
    const hasStarted = !Number.isNaN(this.startMs);
    const result = toLoadResult({
      spec,
      measured: this.measured,
      healths: [...this.healths.values()],
      faults: this.faults,
      workers: sessions.length,
      measuredFromUnixMs: hasStarted ? fromUnixMs : Date.now(),
      measuredToUnixMs: hasStarted ? fromUnixMs + spec.measureS * 1000 * spec.timeDilation : Date.now(),
    });
    this.end(() => settle?.resolve(result));
  }

  private end(settle: () => void): void {
    if (this.settle === undefined) return;
    this.settle = undefined;
    this.unlisten();
    clearTimeout(this.timeout);
    clearInterval(this.progressTimer);
    const { spec, sessions } = this.options;
    for (const session of sessions) {
      if (!this.healths.has(session)) session.say({ body: "abort", abort: { runId: spec.id } });
      session.listener = undefined;
    }
    settle();
  }

  private showProgress(): void {
    const { spec, onProgress } = this.options;
    if (onProgress === undefined) return;
    const nowMs = performance.now();
    const elapsedS = Math.max(0, (nowMs - this.startMs) / 1000 / spec.timeDilation) || 0;
    const { answeredPerS, response } = this.live.read(nowMs);
    onProgress({
      id: spec.id,
      phase: this.phaseAt(elapsedS),
      elapsedS,
      ratePerS: answeredPerS * spec.timeDilation,
      p95Ms: response.percentileUs(0.95) / 1000,
      total: this.measured.slo.total(),
    });
  }

  private phaseAt(elapsedS: number): Phase {
    const { spec } = this.options;
    if (Number.isNaN(this.startMs)) return "connecting";
    if (elapsedS < spec.warmupS) return "warm-up";
    return elapsedS < spec.warmupS + spec.measureS ? "measuring" : "draining";
  }

  private unpreparedReason(): string {
    const missing = this.namesBut(this.prepared);
    return `load worker ${missing} did not get ready within ${PREPARE_TIMEOUT_MS / 1000} s`;
  }

  private unfinishedReason(): string {
    return `load worker ${this.namesBut(new Set(this.healths.keys()))} did not finish in time`;
  }

  private namesBut(done: ReadonlySet<WorkerSession>): string {
    return this.options.sessions
      .filter((session) => !done.has(session))
      .map(({ name }) => name)
      .join(", ");
  }
}

function reasonOf(signal: AbortSignal | undefined): Error {
  const reason: unknown = signal?.reason;
  return reason instanceof Error ? reason : new Error(`the measurement was aborted: ${String(reason)}`);
}

/** Part `index` of `count` of a whole number; the parts add up. */
export function shareOf(whole: number, index: number, count: number): number {
  return Math.floor(whole / count) + (index < whole % count ? 1 : 0);
}
