import { type Batch, DynamicBatcher, type BatcherSettings } from "./batcher";
import { checkLaw, type ServiceLaw } from "./service-law";

export type Phase = "host" | "gpu";

/**
 * Replaces a phase's nominal time, for jitter, heavy tails, drift or throttling. `startUs` is when the phase starts.
 * Must return a finite time >= 0, microseconds.
 */
export type PhaseVariation = (nominalUs: number, phase: Phase, startUs: number) => number;

export interface NodeSettings extends BatcherSettings {
  /** Instances on the one GPU, >= 1. */
  readonly instanceCount: number;
  /** Times of the phases. Its ingress ceiling counts at `payloadBytes` a request. */
  readonly law: ServiceLaw;
  /** Request size at which the law's ingress ceiling holds, bytes; 602,112 for one FP32 image of 224 x 224 x 3. */
  readonly payloadBytes: number;
  /** Default: nominal times. */
  readonly variation?: PhaseVariation;
  /** Link and GPU, when several models share them; the owner then advances the models in the order of their next events. Default: its own. */
  readonly devices?: NodeDevices;
}

/** What the models on one node share: until when the link and the GPU are taken, and the GPU work ever scheduled, microseconds. */
export class NodeDevices {
  linkFreeUs = 0;
  gpuFreeUs = 0;
  gpuScheduledUs = 0;

  /** Busy time of the GPU up to `nowUs`, microseconds. All models must have been advanced to `nowUs`. */
  gpuBusyUs(nowUs: number): number {
    // From now to gpuFreeUs the GPU works without a gap on what is already scheduled: that part is not done yet.
    return this.gpuScheduledUs - Math.max(0, this.gpuFreeUs - nowUs);
  }
}

/** One finished execution. Times are absolute, microseconds, in the caller's time. */
export interface Execution<T> {
  /** Oldest first. */
  readonly items: readonly T[];
  /** When each item left the link and was queued. */
  readonly enqueuedUs: readonly number[];
  readonly images: number;
  readonly instance: number;
  /** An instance took the batch; its host phase starts. */
  readonly startUs: number;
  /** The host phase ends; the batch waits for the GPU. */
  readonly hostEndUs: number;
  readonly gpuStartUs: number;
  /** The answers leave. */
  readonly endUs: number;
}

export interface NodeListener<T> {
  onExecuted(execution: Execution<T>): void;
  /** Refused by the queue policy. */
  onRejected(item: T, reason: "queue-full" | "timeout", atUs: number): void;
}

/** What the node did so far; the differences of two moments are a window's figures. */
export interface NodeTotals {
  readonly executions: number;
  readonly images: number;
  /** Busy time of the GPU phase up to the moment asked for, microseconds. */
  readonly gpuBusyUs: number;
}

interface InstanceState<T> {
  /** What it executes; null when idle. */
  batch: Batch<T> | null;
  /** Batches are numbered in the order in which they are taken. */
  sequence: number;
  phase: Phase;
  /** End of the current phase; Infinity when idle. */
  phaseEndUs: number;
  startUs: number;
  hostEndUs: number;
  gpuStartUs: number;
}

/**
 * One GPU node as the service law describes it: requests enter over a link (first in, first out), wait in the dynamic batcher,
 * are executed by instances (host phases in parallel) and share the GPU (one phase at a time, first come first served).
 * Pure and event-driven: it has no clock; the owner passes the time and asks `nextEventUs()` when to call again.
 */
export class NodeModel<T> {
  private readonly batcher: DynamicBatcher<T>;
  private readonly instances: InstanceState<T>[];
  private readonly hostUsPerBatch: number;
  private readonly hostUsPerImage: number;
  private readonly gpuUsPerBatch: number;
  private readonly gpuUsPerImage: number;
  private readonly usPerByte: number;
  private readonly variation: PhaseVariation | undefined;
  /** Requests on the link, in order, with the time at which each is through. */
  private link: { item: T; images: number; timeoutUs: number; throughUs: number }[] = [];
  private linkHead = 0;
  private readonly devices: NodeDevices;
  private taken = 0;
  private executionCount = 0;
  private imageCount = 0;
  private idleCount: number;

  /** @throws RangeError naming the setting that is wrong. */
  constructor(
    settings: NodeSettings,
    private readonly listener: NodeListener<T>,
  ) {
    const { instanceCount, law, payloadBytes } = settings;
    if (!Number.isInteger(instanceCount) || instanceCount < 1) {
      throw new RangeError(`instanceCount is ${instanceCount}; it must be an integer >= 1.`);
    }
    if (!(payloadBytes > 0)) throw new RangeError(`payloadBytes is ${payloadBytes}; it must be > 0.`);
    checkLaw(law);
    this.batcher = new DynamicBatcher<T>(settings);
    this.hostUsPerBatch = (law.hostMsPerBatch ?? 0) * 1000;
    this.hostUsPerImage = law.hostMsPerImage * 1000;
    this.gpuUsPerBatch = law.gpuMsPerBatch * 1000;
    this.gpuUsPerImage = law.gpuMsPerImage * 1000;
    this.usPerByte = 1e6 / (law.ingressRequestsPerS * payloadBytes);
    this.variation = settings.variation;
    this.devices = settings.devices ?? new NodeDevices();
    this.idleCount = instanceCount;
    this.instances = Array.from({ length: instanceCount }, () => ({
      batch: null,
      sequence: 0,
      phase: "host",
      phaseEndUs: Infinity,
      startUs: 0,
      hostEndUs: 0,
      gpuStartUs: 0,
    }));
  }

  /**
   * A request's first byte arrives. Call `advance(nowUs)` first; times must not go back.
   * @throws RangeError when `images` does not fit a batch.
   */
  arrive(item: T, images: number, bytes: number, nowUs: number, timeoutUs = 0): void {
    const { maxBatchSize } = this.batcher.rule;
    if (!Number.isInteger(images) || images < 1 || images > maxBatchSize) {
      throw new RangeError(
        `A request of ${images} images cannot be batched; the size must be from 1 to ${maxBatchSize}.`,
      );
    }
    if (this.usPerByte === 0) {
      this.enqueue(item, images, timeoutUs, nowUs);
      return;
    }
    const throughUs = Math.max(nowUs, this.devices.linkFreeUs) + bytes * this.usPerByte;
    this.devices.linkFreeUs = throughUs;
    this.link.push({ item, images, timeoutUs, throughUs });
  }

  /** Takes out a request that is still on the link (whose time it keeps) or in the queue; false when it is past that. */
  cancel(item: T): boolean {
    const at = this.link.findIndex((entry, index) => index >= this.linkHead && entry.item === item);
    if (at < 0) return this.batcher.cancel(item);
    this.link.splice(at, 1);
    return true;
  }

  /** Does everything that happens up to and including `nowUs`, in order of time. */
  advance(nowUs: number): void {
    for (let atUs = this.nextEventUs(); atUs <= nowUs; atUs = this.nextEventUs()) this.step(atUs);
  }

  /** When something happens next without a further arrival; Infinity: nothing. */
  nextEventUs(): number {
    let nextUs = this.idleCount > 0 ? this.batcher.nextWakeUs() : Infinity;
    if (this.linkHead < this.link.length) nextUs = Math.min(nextUs, this.link[this.linkHead]!.throughUs);
    for (const instance of this.instances) {
      if (instance.phaseEndUs < nextUs) nextUs = instance.phaseEndUs;
    }
    return nextUs;
  }

  /** Requests on the link or in the queue. */
  get waiting(): number {
    return this.link.length - this.linkHead + this.batcher.queuedRequests;
  }

  /** Requests waiting or in execution. */
  get inside(): number {
    let requests = this.waiting;
    for (const { batch } of this.instances) if (batch !== null) requests += batch.items.length;
    return requests;
  }

  /** Call `advance(nowUs)` first. */
  totals(nowUs: number): NodeTotals {
    return {
      executions: this.executionCount,
      images: this.imageCount,
      gpuBusyUs: this.devices.gpuBusyUs(nowUs),
    };
  }

  /** Does what happens at `atUs`, the time of the next event. Of what coincides, an end of GPU work comes first. */
  private step(atUs: number): void {
    for (const instance of this.instances) {
      if (instance.phase === "gpu" && instance.phaseEndUs <= atUs) this.finish(instance);
    }
    for (let due = this.nextForGpu(atUs); due !== null; due = this.nextForGpu(atUs)) this.enterGpu(due);
    while (this.linkHead < this.link.length && this.link[this.linkHead]!.throughUs <= atUs) {
      const { item, images, timeoutUs, throughUs } = this.link[this.linkHead++]!;
      this.enqueue(item, images, timeoutUs, throughUs);
    }
    if (this.linkHead > 1024 && this.linkHead * 2 > this.link.length) {
      this.link = this.link.slice(this.linkHead);
      this.linkHead = 0;
    }
    this.dispatch(atUs);
  }

  private enqueue(item: T, images: number, timeoutUs: number, atUs: number): void {
    if (!this.batcher.enqueue(item, images, atUs, timeoutUs))
      this.listener.onRejected(item, "queue-full", atUs);
    this.dispatch(atUs);
  }

  private dispatch(atUs: number): void {
    while (this.idleCount > 0) {
      const batch = this.batcher.take(atUs);
      for (const item of this.batcher.drainExpired()) this.listener.onRejected(item, "timeout", atUs);
      if (batch === null) return;
      const instance = this.instances.find((candidate) => candidate.batch === null)!;
      instance.batch = batch;
      instance.sequence = this.taken++;
      instance.phase = "host";
      instance.startUs = atUs;
      const nominalUs = this.hostUsPerBatch + this.hostUsPerImage * batch.images;
      instance.hostEndUs = atUs + this.phaseUs("host", nominalUs, atUs);
      instance.phaseEndUs = instance.hostEndUs;
      this.idleCount--;
    }
  }

  /** Of the batches whose host phase is over, the one that was taken first. */
  private nextForGpu(atUs: number): InstanceState<T> | null {
    let next: InstanceState<T> | null = null;
    for (const instance of this.instances) {
      if (instance.phase !== "host" || instance.phaseEndUs > atUs) continue;
      if (next === null || instance.sequence < next.sequence) next = instance;
    }
    return next;
  }

  private enterGpu(instance: InstanceState<T>): void {
    const { images } = instance.batch!;
    instance.gpuStartUs = Math.max(instance.hostEndUs, this.devices.gpuFreeUs);
    const nominalUs = this.gpuUsPerBatch + this.gpuUsPerImage * images;
    const gpuUs = this.phaseUs("gpu", nominalUs, instance.gpuStartUs);
    instance.phase = "gpu";
    instance.phaseEndUs = instance.gpuStartUs + gpuUs;
    this.devices.gpuFreeUs = instance.phaseEndUs;
    this.devices.gpuScheduledUs += gpuUs;
  }

  private finish(instance: InstanceState<T>): void {
    const { items, enqueuedUs, images } = instance.batch!;
    const { startUs, hostEndUs, gpuStartUs, phaseEndUs: endUs } = instance;
    instance.batch = null;
    instance.phase = "host";
    instance.phaseEndUs = Infinity;
    this.idleCount++;
    this.executionCount++;
    this.imageCount += images;
    const index = this.instances.indexOf(instance);
    this.listener.onExecuted({
      items,
      enqueuedUs,
      images,
      instance: index,
      startUs,
      hostEndUs,
      gpuStartUs,
      endUs,
    });
  }

  private phaseUs(phase: Phase, nominalUs: number, startUs: number): number {
    return this.variation === undefined ? nominalUs : this.variation(nominalUs, phase, startUs);
  }
}
