import { LATENCY_BINS, latencyBin } from "./latency-bins";

/** Counters of the measured window, per interval; requests count by their planned send. */
export interface IntervalCounts {
  readonly planned: Uint32Array;
  /** Answered within the SLO bound. */
  readonly ok: Uint32Array;
  /** Answered later, or shed. */
  readonly late: Uint32Array;
  /** Part of `late`: never sent because of the in-flight cap. */
  readonly shed: Uint32Array;
  /** Sum of the response times of answered requests, milliseconds. */
  readonly responseSumMs: Float64Array;
  /** In flight at the interval's end. */
  readonly inFlight: Int32Array;
}

export interface SimulationResult {
  readonly intervalS: number;
  readonly intervals: IntervalCounts;
  readonly planned: number;
  readonly late: number;
  /** late / planned; NaN when nothing was planned. */
  readonly missShare: number;
  /** Counts of response times by latencyBin(). */
  readonly responseCounts: Uint32Array;
  readonly maxResponseMs: number;
  readonly meanResponseMs: number;
  /** Answers a second during the window. */
  readonly throughputPerS: number;
  /** Executions that ended in the window; the following figures are about them. */
  readonly executions: number;
  readonly meanBatch: number;
  /** Executions by batch size. */
  readonly batchSizes: Uint32Array;
  /** Means per request, milliseconds. */
  readonly queueMs: number;
  readonly hostMs: number;
  readonly gpuWaitMs: number;
  readonly gpuMs: number;
  /** Busy share of the GPU phase over the window, 0..1. */
  readonly gpuBusy: number;
}

export interface WindowSettings {
  readonly warmupS: number;
  readonly measureS: number;
  readonly sloBoundMs: number;
  readonly intervalS?: number;
  readonly maxInFlight?: number;
}

/** Collects what a simulated run does into the figures of its measured window. */
export class WindowStats {
  private readonly fromUs: number;
  private readonly toUs: number;
  private readonly boundUs: number;
  private readonly intervalS: number;
  private readonly perIntervalUs: number;
  private readonly count: number;
  private readonly cap: number;
  private readonly planned: Uint32Array;
  private readonly late: Uint32Array;
  private readonly shed: Uint32Array;
  private readonly sumUs: Float64Array;
  /** Sent minus answered: before the window in [0], in interval i in [i + 1], later in the last one. */
  private readonly flow: Int32Array;
  private readonly responseCounts = new Uint32Array(LATENCY_BINS);
  private maxUs = 0;
  private executions = 0;
  private images = 0;
  private readonly batchSizes: Uint32Array;
  private queueUs = 0;
  private hostUs = 0;
  private gpuWaitUs = 0;
  private gpuUs = 0;
  private busyUs = 0;
  private endUs = 0;
  private startUs = 0;
  // Only with a cap: requests admitted, and the ends of executions in order, to know how many are in flight.
  private admitted = 0;
  private ended = 0;
  private readonly ends: { us: number; size: number }[] = [];

  constructor(settings: WindowSettings, maxBatchSize: number) {
    this.fromUs = settings.warmupS * 1e6;
    this.toUs = this.fromUs + settings.measureS * 1e6;
    this.boundUs = settings.sloBoundMs * 1000;
    this.intervalS = settings.intervalS ?? settings.measureS;
    if (!(this.intervalS > 0)) throw new RangeError(`intervalS is ${this.intervalS}; it must be > 0.`);
    this.perIntervalUs = 1 / (this.intervalS * 1e6);
    this.count = Math.max(1, Math.ceil(settings.measureS / this.intervalS - 1e-9));
    this.cap = settings.maxInFlight ?? Infinity;
    this.planned = new Uint32Array(this.count);
    this.late = new Uint32Array(this.count);
    this.shed = new Uint32Array(this.count);
    this.sumUs = new Float64Array(this.count);
    this.flow = new Int32Array(this.count + 2);
    this.batchSizes = new Uint32Array(maxBatchSize + 1);
  }

  /** Whether a request planned at `plannedUs` is sent; if not it is counted as shed. Executions up to then are known. */
  admit(plannedUs: number): boolean {
    if (this.cap === Infinity) return true;
    while (this.ends.length > 0 && this.ends[0]!.us <= plannedUs) this.ended += this.ends.shift()!.size;
    if (this.admitted - this.ended < this.cap) {
      this.admitted++;
      return true;
    }
    const interval = this.intervalOf(plannedUs);
    if (interval >= 0 && interval < this.count) {
      this.planned[interval]!++;
      this.late[interval]!++;
      this.shed[interval]!++;
    }
    return false;
  }

  /** One execution's times, microseconds; `answer` with its requests follows. */
  execution(size: number, startUs: number, hostEndUs: number, gpuStartUs: number, endUs: number): void {
    this.startUs = startUs;
    this.endUs = endUs;
    const busyFromUs = gpuStartUs > this.fromUs ? gpuStartUs : this.fromUs;
    const busyToUs = endUs < this.toUs ? endUs : this.toUs;
    if (busyToUs > busyFromUs) this.busyUs += busyToUs - busyFromUs;
    if (this.cap !== Infinity) this.ends.push({ us: endUs, size });
    this.flow[this.flowSlot(endUs)]! -= size;
    if (endUs < this.fromUs || endUs >= this.toUs) return;
    this.executions++;
    this.images += size;
    this.batchSizes[size]!++;
    this.hostUs += size * (hostEndUs - startUs);
    this.gpuWaitUs += size * (gpuStartUs - hostEndUs);
    this.gpuUs += size * (endUs - gpuStartUs);
  }

  /** The requests [start, start + size) of the ring belong to the last execution. */
  answer(planned: Float64Array, enqueued: Float64Array, start: number, size: number, mask: number): void {
    const { fromUs, perIntervalUs, boundUs, endUs, count } = this;
    const inWindow = endUs >= fromUs && endUs < this.toUs;
    for (let i = 0; i < size; i++) {
      const at = (start + i) & mask;
      const plannedUs = planned[at]!;
      if (inWindow) this.queueUs += this.startUs - enqueued[at]!;
      const offset = (plannedUs - fromUs) * perIntervalUs;
      if (offset < 0) {
        this.flow[0]!++;
        continue;
      }
      const interval = offset < count ? offset | 0 : count - 1;
      this.flow[interval + 1]!++;
      const latencyUs = endUs - plannedUs;
      this.planned[interval]!++;
      if (latencyUs > boundUs) this.late[interval]!++;
      this.sumUs[interval]! += latencyUs;
      if (latencyUs > this.maxUs) this.maxUs = latencyUs;
      this.responseCounts[latencyBin(latencyUs)]!++;
    }
  }

  result(): SimulationResult {
    const { count, late, shed } = this;
    const ok = new Uint32Array(count);
    const responseSumMs = new Float64Array(count);
    const inFlight = new Int32Array(count);
    const total = { planned: 0, late: 0, shed: 0, sumMs: 0 };
    let flight = this.flow[0]!;
    for (let i = 0; i < count; i++) {
      ok[i] = this.planned[i]! - late[i]!;
      responseSumMs[i] = this.sumUs[i]! / 1000;
      flight += this.flow[i + 1]!;
      inFlight[i] = flight;
      total.planned += this.planned[i]!;
      total.late += late[i]!;
      total.shed += shed[i]!;
      total.sumMs += responseSumMs[i]!;
    }
    const perRequestMs = (sumUs: number): number => sumUs / this.images / 1000;
    return {
      intervalS: this.intervalS,
      intervals: { planned: this.planned, ok, late, shed, responseSumMs, inFlight },
      planned: total.planned,
      late: total.late,
      missShare: total.late / total.planned,
      responseCounts: this.responseCounts,
      maxResponseMs: this.maxUs / 1000,
      meanResponseMs: total.sumMs / (total.planned - total.shed),
      throughputPerS: this.images / ((this.toUs - this.fromUs) / 1e6),
      executions: this.executions,
      meanBatch: this.images / this.executions,
      batchSizes: this.batchSizes,
      queueMs: perRequestMs(this.queueUs),
      hostMs: perRequestMs(this.hostUs),
      gpuWaitMs: perRequestMs(this.gpuWaitUs),
      gpuMs: perRequestMs(this.gpuUs),
      gpuBusy: this.busyUs / (this.toUs - this.fromUs),
    };
  }

  private intervalOf(us: number): number {
    return Math.floor((us - this.fromUs) * this.perIntervalUs);
  }

  private flowSlot(us: number): number {
    if (us < this.fromUs) return 0;
    return us >= this.toUs ? this.count + 1 : this.intervalOf(us) + 1;
  }
}
