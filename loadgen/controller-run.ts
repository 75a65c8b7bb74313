/** One measurement over all workers, from preparing to the merged result. */
import { LoadSpecError } from "./check-spec";
import { deltaProblem, healthProblem } from "./check-words";
import type { LoadProfile } from "./load-profile";
import type { EarlyStop, LoadChange, LoadProgress, LoadResult, LoadSpec, RunningLoad } from "./load-spec";
import { measuredSeconds, toLoadResult } from "./merge-result";
import type { Delta, Done, PrepareFailed, WindowHealth, WorkerMessage } from "./protocol";
import { RunProgress } from "./run-progress";
import { describeStop, StopRuleWatch } from "./stop-rule";
import { Tally, type TallyMessage } from "./tally";
import type { SessionListener, WorkerSession } from "./worker-session";

/** Time from a start, stop or change message to the moment it speaks of, wall milliseconds: it reaches every worker within this. */
const START_IN_MS = 150;
/** Longest time to decode images, connect and warm up, milliseconds. */
const PREPARE_TIMEOUT_MS = 60_000;
/** How long workers may report later than their last deadline, milliseconds. */
const REPORT_SLACK_MS = 10_000;
const PROGRESS_EVERY_MS = 1000;
/** Changes of one load: every one stands in the result, and is told to every console with those before it. */
const MAX_CHANGES = 1000;
/** Longest time that a timer can wait, milliseconds. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** The measurement was interrupted before its load began: there is no result. */
export class InterruptedError extends Error {
  override readonly name = "InterruptedError";
}

/** Sees measurements as they happen. */
export interface MeasurementObserver {
  started(spec: LoadSpec): void;
  /** All workers are ready; the load begins at this time of performance.now(). */
  began?(spec: LoadSpec, startMs: number): void;
  /** What a worker has newly counted: measured requests, bytes of all, and the requests of the warm-up. */
  counted(spec: LoadSpec, measured: TallyMessage, sentBytes: number, warmup: TallyMessage): void;
  changed?(spec: LoadSpec, change: LoadChange): void;
  /** @param result undefined when it could not be run, or was stopped */
  ended(result: LoadResult | undefined): void;
}

export interface ControllerRunOptions {
  readonly spec: LoadSpec;
  readonly sessions: readonly WorkerSession[];
  readonly onProgress: ((progress: LoadProgress) => void) | undefined;
  readonly observer?: MeasurementObserver | undefined;
}

export class ControllerRun implements SessionListener, RunningLoad {
  private readonly measured = new Tally();
  private readonly planned = new Map<WorkerSession, number>();
  private readonly sequences = new Map<WorkerSession, number>();
  private readonly prepared = new Set<WorkerSession>();
  private readonly healths = new Map<WorkerSession, WindowHealth>();
  private readonly faults: string[] = [];
  private readonly rule: StopRuleWatch | undefined;
  private earlyStop: EarlyStop | null = null;
  private readonly changes: LoadChange[] = [];
  private readonly progress: RunProgress;
  /** Of the load's time 0: on the monotonic clock, and Unix milliseconds. */
  private startMs = NaN;
  private startUnixMs = NaN;
  private timeout: NodeJS.Timeout | undefined;
  private progressTimer: NodeJS.Timeout | undefined;
  private unlisten: () => void = () => undefined;
  private settle: { resolve: (result: LoadResult) => void; reject: (error: unknown) => void } | undefined;

  constructor(private readonly options: ControllerRunOptions) {
    const { spec, onProgress } = options;
    const { stopWhen } = spec;
    this.progress = new RunProgress(spec, this.measured, onProgress);
    this.rule = stopWhen === undefined ? undefined : new StopRuleWatch(stopWhen);
  }

  stop(reason: string): boolean {
    return this.stopEarly({ reason, finding: null });
  }

  /**
   * Ends it in a moment because a process that takes part has to end; the result is not valid as that of a whole measurement. One whose
   * window is over, or ends early already, is only waited for. Before the load it has no result: it rejects with InterruptedError.
   */
  interrupt(reason: string): void {
    if (!this.cancel(reason)) this.stopEarly({ reason, finding: null, interrupted: true });
  }

  /** Ends it before its load: it rejects with InterruptedError. False when the load has begun, or it is over. */
  cancel(reason: string): boolean {
    const { settle } = this;
    if (settle === undefined || this.isSending) return false;
    this.end(() => settle.reject(new InterruptedError(reason)));
    return true;
  }

  /** Ends it at once, after `interrupt`: the result has what was reported until now. */
  conclude(): void {
    if (this.settle !== undefined) this.fail("answers that were still awaited were given up");
  }

  /** @throws LoadSpecError when it was changed too often */
  change(shape: LoadProfile): boolean {
    const { spec, sessions, observer } = this.options;
    const change: LoadChange = { atS: this.soonS(), shape };
    // One that comes into effect when the measured time is over would only stand in the result.
    const isOver = change.atS >= spec.warmupS + spec.measureS;
    if (!this.isSending || this.earlyStop !== null || isOver) return false;
    if (this.changes.length >= MAX_CHANGES)
      throw new LoadSpecError([`the load was changed ${MAX_CHANGES} times: stop it and start another one`]);
    this.changes.push(change);
    for (const session of sessions)
      session.say({ body: "change", change: { runId: spec.id, atS: change.atS, spec: { ...spec, shape } } });
    observer?.changed?.(spec, change);
    return true;
  }

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
      this.progressTimer = setInterval(() => this.everySecond(), PROGRESS_EVERY_MS);
      this.tellProgress();
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
      case "leaving":
        return this.onLeaving(session, message.leaving.reason);
      default:
        return;
    }
  }

  lost(session: WorkerSession, reason: string): void {
    if (!this.healths.has(session)) this.fail(`load worker ${session.name} was lost: ${reason}`);
  }

  private onLeaving(session: WorkerSession, reason: string): void {
    const text = `load worker ${session.name} had to end (${reason})`;
    if (this.isSending) this.interrupt(text);
    else this.fail(text);
  }

  private onPrepared(session: WorkerSession): void {
    this.prepared.add(session);
    const { spec, sessions } = this.options;
    // Said again, it starts nothing again.
    if (this.prepared.size < sessions.length || this.isSending) return;
    for (const each of sessions) each.say({ body: "start", start: { runId: spec.id, inMs: START_IN_MS } });
    this.startMs = performance.now() + START_IN_MS;
    this.startUnixMs = Date.now() + START_IN_MS;
    this.progress.began(this.startMs);
    this.options.observer?.began?.(spec, this.startMs);
    this.expectEndAt(spec.warmupS + spec.measureS);
  }

  private onPrepareFailed(session: WorkerSession, { isBadSpec, message }: PrepareFailed): void {
    if (isBadSpec) {
      const { settle } = this;
      this.end(() => settle?.reject(new LoadSpecError([`load worker ${session.name}: ${message}`])));
    } else {
      this.fail(`load worker ${session.name}: ${message}`);
    }
  }

  private onDelta(session: WorkerSession, delta: Delta): void {
    const { sequence, measured, warmup, sentBytes } = delta;
    const { spec, observer } = this.options;
    const before = this.sequences.get(session) ?? 0;
    // Said again: counted already.
    if (sequence <= before) return;
    if (this.healths.has(session)) return this.fail(`load worker ${session.name} reported after it was done`);
    if (sequence !== before + 1)
      return this.fail(`reports ${before + 1}..${sequence - 1} of load worker ${session.name} were lost`);
    this.sequences.set(session, sequence);
    const problem = deltaProblem(delta, spec, this.elapsedS());
    if (problem !== undefined)
      return this.fail(`load worker ${session.name} sent a report that is none: ${problem}`);
    const planned = measured.intervals.reduce((sum, { ok, late, failed }) => sum + ok + late + failed, 0);
    if (planned > 0 && !this.isSending)
      return this.fail(`load worker ${session.name} counted ${planned} requests before the load began`);
    this.measured.mergeMessage(measured);
    observer?.counted(spec, measured, sentBytes, warmup);
    const lost = measured.intervals.reduce((sum, { failed, shed }) => sum + failed + shed, 0);
    this.rule?.add({ response: measured.response, lost }, this.elapsedS());
    this.planned.set(session, (this.planned.get(session) ?? 0) + planned);
    this.progress.counted(measured, warmup);
  }

  private onDone(session: WorkerSession, { lastSequence, planned, health }: Done): void {
    const { name } = session;
    const reports = this.sequences.get(session) ?? 0;
    const received = this.planned.get(session) ?? 0;
    if (planned !== received)
      return this.fail(
        `load worker ${name} counted ${planned} requests, but its reports add up to ${received}`,
      );
    if (lastSequence !== reports)
      return this.fail(`load worker ${name} sent ${lastSequence} reports, but ${reports} came`);
    const problem = healthProblem(health);
    if (problem !== undefined) return this.fail(`load worker ${name} sent a health that is none: ${problem}`);
    if (!this.isSending) return this.fail(`load worker ${name} was done before the load began`);
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
    this.tellProgress();
    const hasStarted = !Number.isNaN(this.startMs);
    const measuredS = measuredSeconds(spec, this.earlyStop);
    const result = toLoadResult({
      spec,
      measured: this.measured,
      healths: [...this.healths].map(([{ name: worker }, health]) => ({ worker, ...health })),
      faults: this.faults,
      workers: sessions.length,
      stop: this.earlyStop,
      changes: this.changes,
      measuredFromUnixMs: hasStarted ? fromUnixMs : Date.now(),
      measuredToUnixMs: hasStarted ? fromUnixMs + measuredS * 1000 * spec.timeDilation : Date.now(),
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

  private get isSending(): boolean {
    return this.settle !== undefined && !Number.isNaN(this.startMs);
  }

  /** Model seconds since the load's start; 0 before it. */
  private elapsedS(): number {
    return Math.max(0, (performance.now() - this.startMs) / 1000 / this.options.spec.timeDilation) || 0;
  }

  /** A moment that every worker hears of before it comes. */
  private soonS(): number {
    return this.elapsedS() + START_IN_MS / 1000 / this.options.spec.timeDilation;
  }

  private everySecond(): void {
    const finding = this.isSending ? this.rule?.check(this.elapsedS()) : undefined;
    if (finding !== undefined) this.stopEarly({ reason: describeStop(finding), finding });
    this.tellProgress();
  }

  private stopEarly(stop: Omit<EarlyStop, "atS">): boolean {
    const { spec, sessions } = this.options;
    const atS = this.soonS();
    if (!this.isSending || this.earlyStop !== null || atS >= spec.warmupS + spec.measureS) return false;
    this.earlyStop = { atS, ...stop };
    for (const session of sessions) session.say({ body: "stop", stop: { runId: spec.id, atS } });
    this.expectEndAt(atS);
    return true;
  }

  /** The measurement fails if the workers have not reported some time after the window's end, model seconds since the start. */
  private expectEndAt(windowEndS: number): void {
    const { spec } = this.options;
    const longestMs = windowEndS * 1000 + spec.sloBoundMs + spec.deadlineMs;
    const atMs = this.startMs + longestMs * spec.timeDilation + REPORT_SLACK_MS;
    clearTimeout(this.timeout);
    this.timeout = setTimeout(
      () => this.fail(this.unfinishedReason()),
      Math.min(atMs - performance.now(), MAX_TIMER_MS),
    );
  }

  private tellProgress(): void {
    this.progress.tell(this.elapsedS(), this.earlyStop);
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
