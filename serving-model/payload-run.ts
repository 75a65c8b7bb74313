/**
 * Triton's dynamic batch scheduler as it is since batches are made up before an instance is free for them ("payloads"). Its rules,
 * written down from the behaviour of Triton 2.51 (24.10) and its open source (dynamic_batch_scheduler.cc, rate_limiter.cc,
 * instance_queue.cc):
 *  - One batcher thread fills the current payload from the queue and hands it to the payload queue, whether an instance is idle or not,
 *    as long as fewer than two payloads an instance wait there.
 *  - It moves requests when a preferred size is reached, when the largest one would be exceeded, or when the oldest queued request has
 *    waited the queue delay; then all that fit are moved.
 *  - A payload that waits can still take requests, but the thread sleeps after handing it over: it wakes when a payload starts to
 *    execute, when as many requests are queued as were missing to the next preferred size when it last looked, or after half a second.
 *    So a payload is often as small as it was when its first request's delay was over, while requests queue up behind it.
 *  - A full payload is closed. An instance that gets free takes the first payload, and with it following ones that are not full, whose
 *    delay is over, and that still fit.
 * Near the limit the consequence is large: small and full batches alternate, and the SLO rate is some 15 % below that of the simple rule.
 */
import { NodeRun } from "./node-run";
import type { SimulatedLoad, SimulatedServer } from "./simulate";

interface Payload {
  size: number;
  /** `open`: not handed over yet. */
  state: "open" | "waiting" | "executing";
  isFull: boolean;
}

/** Waiting payloads an instance. */
const PREFETCHED = 2;
/** Longest sleep of the batcher thread, microseconds. */
const LONGEST_SLEEP_US = 500_000;

export class PayloadRun extends NodeRun {
  private current: Payload = { size: 0, state: "open", isFull: false };
  /** Handed over, in order: the requests [taken, sealed). */
  private readonly waiting: Payload[] = [];
  /** [sealed, ready) are queued. */
  private sealed = 0;
  private wakeUs = 0;
  /** Requests that must be queued for an arrival to wake the thread. */
  private nextPreferred = 0;
  private readonly isExecuting: boolean[];
  private readonly capacity: number;

  constructor(server: SimulatedServer, load: SimulatedLoad) {
    super(server, load);
    this.isExecuting = new Array<boolean>(server.instanceCount).fill(false);
    this.capacity = PREFETCHED * server.instanceCount;
  }

  step(): boolean {
    const { hostEndUs, freeAtUs, isExecuting } = this;
    let hosting = -1;
    let hostUs = Infinity;
    let freeing = -1;
    let freeUs = Infinity;
    for (let i = 0; i < isExecuting.length; i++) {
      if (
        hostEndUs[i]! < hostUs ||
        (hostEndUs[i]! === hostUs && hosting >= 0 && this.start[i]! < this.start[hosting]!)
      ) {
        hostUs = hostEndUs[(hosting = i)]!;
      }
      if (isExecuting[i] && freeAtUs[i]! < freeUs) freeUs = freeAtUs[(freeing = i)]!;
    }
    const eventUs = Math.min(freeUs, hostUs, this.queued > 0 ? this.wakeUs : Infinity);
    const arrivalUs = this.nextEnqueuedUs(eventUs);
    const atUs = Math.min(eventUs, arrivalUs);
    if (atUs === Infinity) return false;
    if (atUs > this.nowUs) this.nowUs = atUs;
    if (freeUs <= atUs) {
      isExecuting[freeing] = false;
      if (this.startPayloads()) this.runBatcher();
    } else if (hostUs <= atUs) {
      this.enterGpu(hosting, hostUs);
    } else if (arrivalUs <= atUs) {
      this.arrive();
    } else {
      this.runBatcher();
    }
    return true;
  }

  private get queued(): number {
    return this.ready - this.sealed;
  }

  private arrive(): void {
    // While nothing is queued, sleeps of half a second follow one another.
    while (this.queued === 0 && this.wakeUs <= this.nowUs) this.wakeUs += LONGEST_SLEEP_US;
    this.ready++;
    const { current } = this;
    const wakes = current.isFull || current.state === "executing" || this.queued >= this.nextPreferred;
    if (wakes && this.waiting.length < this.capacity) this.runBatcher();
  }

  /** What the batcher thread does until it sleeps. */
  private runBatcher(): void {
    for (;;) {
      if (this.current.isFull || this.current.state === "executing") {
        this.current = { size: 0, state: "open", isFull: false };
        this.nextPreferred = 0;
      }
      if (this.queued === 0) {
        this.wakeUs = this.nowUs + LONGEST_SLEEP_US;
        return;
      }
      if (this.waiting.length >= this.capacity) {
        // Until a payload starts to execute.
        this.wakeUs = Infinity;
        return;
      }
      const overUs = this.enqueued[this.sealed & this.mask]! + this.rule.queueDelayUs;
      const moved = this.requestsToMove(this.nowUs >= overUs);
      if (moved < 0) {
        this.wakeUs = overUs;
        return;
      }
      this.sealed += moved;
      this.current.size += moved;
      if (this.current.state === "open" && this.current.size > 0) {
        this.current.state = "waiting";
        this.waiting.push(this.current);
        this.startPayloads();
      }
    }
  }

  /** Requests that go into the current payload now; -1: none, sleep until the delay of the oldest is over. */
  private requestsToMove(delayOver: boolean): number {
    const { current, rule } = this;
    const { maxBatchSize, largestPreferred, queueDelayUs } = rule;
    const fits = Math.min(this.queued, maxBatchSize - current.size);
    const total = current.size + fits;
    const preferred = rule.preferredUpTo(total);
    let best = preferred > current.size ? preferred - current.size : 0;
    if (best === 0 && current.size >= largestPreferred) {
      // Beyond every preferred size: it goes as it is, and takes no more after this.
      current.isFull = true;
      best = Math.min(1, fits);
    }
    if (best > 0 && !(delayOver && queueDelayUs > 0)) {
      if (queueDelayUs === 0) current.isFull = true;
      return best;
    }
    if (total >= largestPreferred || this.queued > fits) {
      current.isFull = true;
      return fits;
    }
    if (delayOver || queueDelayUs === 0) return fits;
    this.nextPreferred = rule.preferredAbove(total) - current.size;
    return -1;
  }

  /** Gives waiting payloads to idle instances. True when one started, which wakes the thread. */
  private startPayloads(): boolean {
    let started = false;
    for (let i = 0; i < this.isExecuting.length && this.waiting.length > 0; i++) {
      if (this.isExecuting[i]) continue;
      this.isExecuting[i] = true;
      this.dispatch(i, this.takePayload());
      started = true;
    }
    return started;
  }

  /** Images of the first payload and of those that go with it. */
  private takePayload(): number {
    const { rule, waiting } = this;
    const first = waiting.shift()!;
    first.state = "executing";
    let { size } = first;
    while (rule.queueDelayUs > 0 && rule.maxBatchSize > 1 && !first.isFull && waiting.length > 0) {
      const next = waiting[0]!;
      const oldestUs = this.enqueued[(this.taken + size) & this.mask]!;
      const isOver = this.nowUs - oldestUs > rule.queueDelayUs;
      if (next.isFull || !isOver || size + next.size > rule.maxBatchSize) break;
      waiting.shift();
      next.state = "executing";
      size += next.size;
    }
    return size;
  }
}
