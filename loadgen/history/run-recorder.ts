/** Turns the reports of a running measurement into seconds. */
import type { MeasurementObserver } from "../controller-run";
import { Histogram } from "../histogram";
import { rateAt, usersAt, type LoadProfile } from "../load-profile";
import type { LoadChange, LoadResult, LoadSpec } from "../load-spec";
import { SlidingWindow } from "../sliding-window";
import type { TallyMessage } from "../tally";
import type { LoadSecond, RecordedSecond, ServerReading } from "./load-second";

/** Window of the percentiles without a stop rule, model seconds: long enough to be calm, short enough to follow. */
export const DEFAULT_WINDOW_S = 5;

/** Wall seconds between two reports of a worker. */
const REPORT_S = 1;

/** Sees what the recorder makes of a measurement. */
export interface RecorderListener {
  started?(spec: LoadSpec): void;
  second(spec: LoadSpec, recorded: RecordedSecond): void;
  changed?(spec: LoadSpec, change: LoadChange): void;
  /** @param result undefined when it could not be run, or was aborted */
  ended?(spec: LoadSpec, result: LoadResult | undefined): void;
}

export interface RunRecorderOptions {
  readonly listener: RecorderListener;
  /** Workers and their requests in flight, now. */
  readonly workers: () => { readonly count: number; readonly inFlight: number };
  /** What the servers said last; null: nothing, or they are not asked. */
  readonly server?: () => ServerReading | null;
}

/** The load by plan since its last change. */
interface Segment {
  readonly shape: LoadProfile;
  readonly fromS: number;
  /** Users who were there before. */
  readonly usersBefore: number;
}

interface Running {
  readonly spec: LoadSpec;
  readonly startMs: number;
  readonly window: SlidingWindow;
  readonly timer: NodeJS.Timeout;
  segment: Segment;
  lastS: number;
  response: Histogram;
  lateness: Histogram;
  failed: number;
  shed: number;
  readonly perAddress: Map<string, number>;
}

export class RunRecorder implements MeasurementObserver {
  private spec: LoadSpec | undefined;
  private running: Running | undefined;

  constructor(private readonly options: RunRecorderOptions) {}

  started(spec: LoadSpec): void {
    this.spec = spec;
    this.options.listener.started?.(spec);
  }

  began(spec: LoadSpec, startMs: number): void {
    const windowS = spec.stopWhen?.windowS ?? DEFAULT_WINDOW_S;
    this.running = {
      spec,
      startMs,
      window: new SlidingWindow(windowS, 0),
      timer: setInterval(() => this.seal(), 1000),
      segment: { shape: spec.shape, fromS: 0, usersBefore: 0 },
      lastS: 0,
      perAddress: new Map(spec.addresses.map((address) => [address, 0])),
      ...emptySecond(),
    };
  }

  counted(_spec: LoadSpec, measured: TallyMessage, _sentBytes: number, warmup: TallyMessage): void {
    const { running } = this;
    if (running === undefined) return;
    for (const tally of [warmup, measured]) {
      running.response.mergeSparse(tally.response);
      running.lateness.mergeSparse(tally.lateness);
      for (const { address, answered } of tally.perAddress)
        running.perAddress.set(address, (running.perAddress.get(address) ?? 0) + answered);
      for (const { failed, shed } of tally.intervals) {
        running.failed += failed;
        running.shed += shed;
      }
    }
  }

  changed(spec: LoadSpec, change: LoadChange): void {
    const { running } = this;
    if (running !== undefined) {
      const usersBefore = usersOf(running.segment, change.atS) ?? 0;
      running.segment = { shape: change.shape, fromS: change.atS, usersBefore };
    }
    this.options.listener.changed?.(spec, change);
  }

  ended(result: LoadResult | undefined): void {
    this.seal();
    clearInterval(this.running?.timer);
    this.running = undefined;
    if (this.spec !== undefined) this.options.listener.ended?.(this.spec, result);
    this.spec = undefined;
  }

  private seal(): void {
    const { running, options } = this;
    if (running === undefined) return;
    const { spec, startMs, window, response, lateness, failed, shed, segment } = running;
    const nowMs = performance.now();
    const atS = (nowMs - startMs) / 1000 / spec.timeDilation;
    const spanS = atS - running.lastS;
    if (spanS <= 0 || (response.count + failed + shed === 0 && atS < 0.5)) return;
    const sparse = response.toSparse();
    window.add(sparse, atS);
    const recent = window.read(atS).response;
    const ms = (p: number): number | null =>
      recent.count === 0 ? null : rounded(recent.percentileUs(p) / 1000);
    const { count, inFlight } = options.workers();
    const second: LoadSecond = {
      atS: rounded(atS),
      unixMs: Date.now(),
      phase: phaseOf(spec, atS),
      // The last reports cover a whole report's time, however short the last span is.
      ratePerS: rounded((response.count + failed + shed) / Math.max(spanS, REPORT_S / spec.timeDilation)),
      answered: response.count,
      failed,
      shed,
      p50Ms: ms(0.5),
      p95Ms: ms(0.95),
      p99Ms: ms(0.99),
      latenessP99Ms: lateness.count === 0 ? null : rounded(lateness.percentileUs(0.99) / 1000),
      inFlight,
      users: usersOf(segment, atS) ?? null,
      offeredPerS: rateAt(segment.shape, atS - segment.fromS) ?? null,
      workers: count,
      perAddress: Object.fromEntries(running.perAddress),
      server: options.server?.() ?? null,
    };
    Object.assign(running, emptySecond(), { lastS: atS });
    options.listener.second(spec, { second, response: sparse });
  }
}

function emptySecond(): Pick<Running, "response" | "lateness" | "failed" | "shed"> {
  return { response: new Histogram(), lateness: new Histogram(), failed: 0, shed: 0 };
}

function usersOf({ shape, fromS, usersBefore }: Segment, atS: number): number | undefined {
  const spawned = usersAt(shape, Math.max(0, atS - fromS));
  if (spawned === undefined || shape.kind !== "users") return undefined;
  return Math.min(shape.users, usersBefore + spawned);
}

function phaseOf({ warmupS, measureS }: LoadSpec, atS: number): LoadSecond["phase"] {
  if (atS < warmupS) return "warm-up";
  return atS <= warmupS + measureS + 1 ? "measuring" : "draining";
}

function rounded(value: number): number {
  return Math.round(value * 1000) / 1000;
}
