/**
 * Virtual-time simulation of one GPU node under load: the node model's rules for single-image requests without queue policy,
 * in flat arrays and with one step a batch. It gives the same executions as NodeModel (a test holds it to that), a hundred
 * times faster than one event a request would.
 */
import { BatchRule, type BatchRuleSettings } from "./batch-rule";
import type { PhaseVariation } from "./node-model";
import { ArrivalSource, type SimulatedShape } from "./arrival-source";
import { checkLaw, type ServiceLaw } from "./service-law";
import { WindowStats, type SimulationResult } from "./window-stats";

export interface SimulatedServer extends BatchRuleSettings {
  readonly instanceCount: number;
  readonly law: ServiceLaw;
  /** Default: nominal times. */
  readonly variation?: PhaseVariation;
}

export interface SimulatedLoad {
  readonly shape: SimulatedShape;
  readonly seed: number;
  /** Load before the measured window, seconds. */
  readonly warmupS: number;
  /** Measured window, seconds. Sending stops at its end; what is inside is still answered. */
  readonly measureS: number;
  readonly sloBoundMs: number;
  /** Length of the intervals of the result, seconds. Default: the whole window. */
  readonly intervalS?: number;
  /** Requests in flight beyond which a request is shed (counted as late, never sent). Default: no cap. */
  readonly maxInFlight?: number;
}

/** @throws RangeError naming the setting that is wrong. */
export function simulate(server: SimulatedServer, load: SimulatedLoad): SimulationResult {
  check(server, load);
  const run = new Run(server, load);
  while (run.step());
  return run.stats.result();
}

function check(server: SimulatedServer, load: SimulatedLoad): void {
  checkLaw(server.law);
  if (!Number.isInteger(server.instanceCount) || server.instanceCount < 1) {
    throw new RangeError(`instanceCount is ${server.instanceCount}; it must be an integer >= 1.`);
  }
  if (!(load.warmupS >= 0)) throw new RangeError(`warmupS is ${load.warmupS}; it must be >= 0.`);
  if (!(load.measureS > 0)) throw new RangeError(`measureS is ${load.measureS}; it must be > 0.`);
  if (!(load.sloBoundMs > 0)) throw new RangeError(`sloBoundMs is ${load.sloBoundMs}; it must be > 0.`);
}

/**
 * State of one simulation. Requests lie in a ring, in order of arrival; [taken, ready) are queued in the batcher, [ready, tail)
 * are still on the link. An instance that executes holds a range before `taken`.
 */
class Run {
  readonly stats: WindowStats;
  private readonly source: ArrivalSource;
  private readonly rule: BatchRule;
  private readonly hostUsPerImage: number;
  private readonly gpuUsPerBatch: number;
  private readonly gpuUsPerImage: number;
  private readonly linkUs: number;
  private readonly variation: PhaseVariation | undefined;

  private planned = new Float64Array(1024);
  private enqueued = new Float64Array(1024);
  private mask = 1023;
  private taken = 0;
  private ready = 0;
  private tail = 0;
  private linkFreeUs = 0;
  private gpuFreeUs = 0;
  private nowUs = 0;

  // Per instance: start of its range, images, times. hostEnd is Infinity unless in the host phase; freeAt is Infinity in it.
  private readonly start: Float64Array;
  private readonly images: Int32Array;
  private readonly startUs: Float64Array;
  private readonly hostEndUs: Float64Array;
  private readonly freeAtUs: Float64Array;

  constructor(server: SimulatedServer, load: SimulatedLoad) {
    this.rule = new BatchRule(server);
    this.hostUsPerImage = server.law.hostMsPerImage * 1000;
    this.gpuUsPerBatch = server.law.gpuMsPerBatch * 1000;
    this.gpuUsPerImage = server.law.gpuMsPerImage * 1000;
    this.linkUs = 1e6 / server.law.ingressRequestsPerS;
    this.variation = server.variation;
    const k = server.instanceCount;
    this.start = new Float64Array(k);
    this.images = new Int32Array(k);
    this.startUs = new Float64Array(k);
    this.hostEndUs = new Float64Array(k).fill(Infinity);
    this.freeAtUs = new Float64Array(k);
    this.source = new ArrivalSource(load.shape, load.seed, (load.warmupS + load.measureS) * 1e6);
    this.stats = new WindowStats(load, server.maxBatchSize);
  }

  /** Does the next thing that happens: an execution starts, or a host phase ends. False when nothing is left. */
  step(): boolean {
    const { hostEndUs, freeAtUs } = this;
    let hosting = -1;
    let hostUs = Infinity;
    let idle = -1;
    let freeUs = Infinity;
    for (let i = 0; i < freeAtUs.length; i++) {
      // Of host phases that end together, the batch taken first goes first.
      if (
        hostEndUs[i]! < hostUs ||
        (hostEndUs[i]! === hostUs && hosting >= 0 && this.start[i]! < this.start[hosting]!)
      ) {
        hostUs = hostEndUs[(hosting = i)]!;
      }
      // GPU phases follow each other, so an instance still in its host phase gets free after all that are in freeAt.
      if (freeAtUs[i]! < freeUs) freeUs = freeAtUs[(idle = i)]!;
    }
    if (hostUs <= freeUs) {
      if (hosting < 0) return false;
      this.enterGpu(hosting, hostUs);
      return true;
    }
    if (freeUs > this.nowUs) this.nowUs = freeUs;
    const size = this.waitForBatch(hostUs);
    if (size > 0) {
      this.dispatch(idle, size);
      return true;
    }
    if (hosting < 0) return false;
    this.enterGpu(hosting, hostUs);
    return true;
  }

  /**
   * Moves on from nowUs to the moment at which an idle instance takes a batch, and returns its size; 0 when a host phase that
   * ends at `untilUs` comes first (Infinity: when no request is left).
   */
  private waitForBatch(untilUs: number): number {
    const { rule } = this;
    let atUs = this.nowUs;
    while (this.nextEnqueuedUs(atUs) <= atUs) this.ready++;
    let queued = this.ready - this.taken;
    let overUs = queued > 0 ? this.enqueued[this.taken & this.mask]! + rule.queueDelayUs : Infinity;
    let size = queued > 0 ? rule.takeOfSingles(queued, atUs >= overUs) : 0;
    while (size === 0) {
      const limitUs = overUs < untilUs ? overUs : untilUs;
      const nextUs = this.nextEnqueuedUs(limitUs);
      // A host phase that ends now goes first: it may, in a closed loop, bring requests.
      if (nextUs >= untilUs && untilUs <= overUs) return 0;
      if (nextUs > overUs) {
        atUs = overUs;
      } else {
        atUs = nextUs;
        this.ready++;
        if (++queued === 1) overUs = atUs + rule.queueDelayUs;
      }
      size = rule.takeOfSingles(queued, atUs >= overUs);
    }
    this.nowUs = atUs;
    return size;
  }

  /** When the first request that is still on the link gets queued; Infinity when none is planned up to `limitUs`. */
  private nextEnqueuedUs(limitUs: number): number {
    if (this.ready < this.tail) return this.enqueued[this.ready & this.mask]!;
    const { source } = this;
    while (source.nextUs <= limitUs && source.nextUs < Infinity) {
      const plannedUs = source.nextUs;
      source.advance();
      if (!this.stats.admit(plannedUs)) continue;
      if (this.tail - this.oldest() > this.mask) this.grow();
      const at = this.tail++ & this.mask;
      this.planned[at] = plannedUs;
      this.linkFreeUs = (plannedUs > this.linkFreeUs ? plannedUs : this.linkFreeUs) + this.linkUs;
      this.enqueued[at] = this.linkFreeUs;
      return this.linkFreeUs;
    }
    return Infinity;
  }

  private dispatch(instance: number, size: number): void {
    this.start[instance] = this.taken;
    this.images[instance] = size;
    this.taken += size;
    this.startUs[instance] = this.nowUs;
    this.freeAtUs[instance] = Infinity;
    const nominalUs = this.hostUsPerImage * size;
    this.hostEndUs[instance] =
      this.nowUs + (this.variation === undefined ? nominalUs : this.variation(nominalUs, "host", this.nowUs));
  }

  private enterGpu(instance: number, hostEndUs: number): void {
    if (hostEndUs > this.nowUs) this.nowUs = hostEndUs;
    const size = this.images[instance]!;
    const gpuStartUs = hostEndUs > this.gpuFreeUs ? hostEndUs : this.gpuFreeUs;
    const nominalUs = this.gpuUsPerBatch + this.gpuUsPerImage * size;
    const endUs =
      gpuStartUs + (this.variation === undefined ? nominalUs : this.variation(nominalUs, "gpu", gpuStartUs));
    this.gpuFreeUs = endUs;
    this.freeAtUs[instance] = endUs;
    this.hostEndUs[instance] = Infinity;
    this.stats.execution(size, this.startUs[instance]!, hostEndUs, gpuStartUs, endUs);
    this.stats.answer(this.planned, this.enqueued, this.start[instance]!, size, this.mask);
    if (this.source.closed) this.source.answered(endUs, size);
  }

  /** First ring position that is still needed. */
  private oldest(): number {
    let oldest = this.taken;
    for (let i = 0; i < this.start.length; i++) {
      if (this.hostEndUs[i]! < Infinity && this.start[i]! < oldest) oldest = this.start[i]!;
    }
    return oldest;
  }

  private grow(): void {
    const mask = this.mask * 2 + 1;
    const planned = new Float64Array(mask + 1);
    const enqueued = new Float64Array(mask + 1);
    for (let position = this.oldest(); position < this.tail; position++) {
      planned[position & mask] = this.planned[position & this.mask]!;
      enqueued[position & mask] = this.enqueued[position & this.mask]!;
    }
    this.planned = planned;
    this.enqueued = enqueued;
    this.mask = mask;
  }
}
