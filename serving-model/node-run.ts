/** What every simulation of a node has in common: arrivals, the link, requests in a ring, instances with their two phases. */
import { ArrivalSource } from "./arrival-source";
import { BatchRule } from "./batch-rule";
import type { PhaseVariation } from "./node-model";
import type { SimulatedLoad, SimulatedServer } from "./simulate";
import { WindowStats } from "./window-stats";

/**
 * State of one simulation. Requests lie in a ring, in order of arrival; [taken, ready) are waiting in the server, [ready, tail)
 * are still on the link. An instance that executes holds a range before `taken`.
 */
export abstract class NodeRun {
  readonly stats: WindowStats;
  protected readonly source: ArrivalSource;
  protected readonly rule: BatchRule;
  private readonly hostUsPerBatch: number;
  private readonly hostUsPerImage: number;
  private readonly gpuUsPerBatch: number;
  private readonly gpuUsPerImage: number;
  private readonly linkUs: number;
  private readonly variation: PhaseVariation | undefined;

  private planned = new Float64Array(1024);
  protected enqueued = new Float64Array(1024);
  protected mask = 1023;
  protected taken = 0;
  protected ready = 0;
  protected tail = 0;
  private linkFreeUs = 0;
  private gpuFreeUs = 0;
  protected nowUs = 0;

  // Per instance: start of its range, images, times. hostEnd is Infinity unless in the host phase; freeAt is Infinity in it.
  protected readonly start: Float64Array;
  protected readonly images: Int32Array;
  private readonly startUs: Float64Array;
  protected readonly hostEndUs: Float64Array;
  protected readonly freeAtUs: Float64Array;

  constructor(server: SimulatedServer, load: SimulatedLoad) {
    this.rule = new BatchRule(server);
    this.hostUsPerBatch = (server.law.hostMsPerBatch ?? 0) * 1000;
    this.hostUsPerImage = server.law.hostMsPerImage * 1000;
    this.gpuUsPerBatch = server.law.gpuMsPerBatch * 1000;
    this.gpuUsPerImage = server.law.gpuMsPerImage * 1000;
    this.linkUs = 1e6 / server.law.ingressRequestsPerS;
    this.variation = server.variation ?? server.variationFor?.(load.seed);
    const k = server.instanceCount;
    this.start = new Float64Array(k);
    this.images = new Int32Array(k);
    this.startUs = new Float64Array(k);
    this.hostEndUs = new Float64Array(k).fill(Infinity);
    this.freeAtUs = new Float64Array(k);
    this.source = new ArrivalSource(load.shape, load.seed, (load.warmupS + load.measureS) * 1e6);
    this.stats = new WindowStats(load, server.maxBatchSize);
  }

  /** Does the next thing that happens. False when nothing is left. */
  abstract step(): boolean;

  /** When the first request that is still on the link gets queued; Infinity when none is planned up to `limitUs`. */
  protected nextEnqueuedUs(limitUs: number): number {
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

  protected dispatch(instance: number, size: number): void {
    this.start[instance] = this.taken;
    this.images[instance] = size;
    this.taken += size;
    this.startUs[instance] = this.nowUs;
    this.freeAtUs[instance] = Infinity;
    const nominalUs = this.hostUsPerBatch + this.hostUsPerImage * size;
    this.hostEndUs[instance] =
      this.nowUs + (this.variation === undefined ? nominalUs : this.variation(nominalUs, "host", this.nowUs));
  }

  protected enterGpu(instance: number, hostEndUs: number): void {
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
