import { BatchRule, type BatchRuleSettings } from "./batch-rule";
import { RequestQueue } from "./request-queue";

/** dynamic_batching.default_queue_policy. */
export interface QueuePolicy {
  /** Requests that may wait; one more is refused. 0 means no limit (Triton's default). */
  readonly maxQueueSize: number;
  /** Longest wait in the queue, microseconds; 0 means no limit (Triton's default). */
  readonly defaultTimeoutUs: number;
  /** What happens after it: `reject` answers with an error; `delay` serves the request after all others. */
  readonly timeoutAction: "reject" | "delay";
  /** Whether a request may shorten the timeout by its own parameter. */
  readonly allowTimeoutOverride: boolean;
}

export const noQueuePolicy: QueuePolicy = {
  maxQueueSize: 0,
  defaultTimeoutUs: 0,
  timeoutAction: "reject",
  allowTimeoutOverride: false,
};

export interface BatcherSettings extends BatchRuleSettings {
  /** Default: no limits. */
  readonly queuePolicy?: QueuePolicy;
}

/** Requests that go into one execution, oldest first. */
export interface Batch<T> {
  readonly items: T[];
  /** When each item was queued, microseconds, in the order of `items`. */
  readonly enqueuedUs: number[];
  /** Sum of the requests' batch sizes. */
  readonly images: number;
}

/**
 * Triton's dynamic batcher as a pure class: no clock (every method takes the time) and no instances (the owner asks for a
 * batch whenever it has an idle one). The server drives it with real time, the simulation with virtual time.
 * One known difference: a real Triton prepares a batch while all instances are busy and sometimes sends it as it was then,
 * smaller than what is queued when the instance gets free; that depends on thread timing and differs from run to run.
 *
 * The owner's loop: after every enqueue, every freed instance and at `nextWakeUs()`: while an instance is idle, `take(now)`;
 * then answer what `drainExpired()` returns.
 */
export class DynamicBatcher<T> {
  readonly rule: BatchRule;
  private readonly policy: QueuePolicy;
  private readonly queue = new RequestQueue<T>();
  /** Requests past their timeout under `delay`: served after all others. */
  private readonly delayed = new RequestQueue<T>();
  private expired: T[] = [];
  private queuedImagesNow = 0;
  /** Lower bound of the deadlines in `queue`: spares the scan while nothing can have expired. */
  private closestDeadlineUs = Infinity;

  constructor(settings: BatcherSettings) {
    this.rule = new BatchRule(settings);
    this.policy = settings.queuePolicy ?? noQueuePolicy;
    for (const key of ["maxQueueSize", "defaultTimeoutUs"] as const) {
      if (!(this.policy[key] >= 0))
        throw new RangeError(`queuePolicy.${key} is ${this.policy[key]}; it must be >= 0.`);
    }
  }

  get queuedRequests(): number {
    return this.queue.length + this.delayed.length;
  }

  get queuedImages(): number {
    return this.queuedImagesNow;
  }

  /**
   * Queues a request of `images` images. False when the queue is full (Triton answers UNAVAILABLE, "Exceeds maximum queue size").
   * `timeoutUs` is the request's own timeout parameter; it counts only if the policy allows it and it is the shorter one.
   * @throws RangeError when `images` is not an integer from 1 to max_batch_size; the server checks that first.
   */
  enqueue(item: T, images: number, nowUs: number, timeoutUs = 0): boolean {
    if (!Number.isInteger(images) || images < 1 || images > this.rule.maxBatchSize) {
      throw new RangeError(
        `A request of ${images} images cannot be batched; the size must be from 1 to ${this.rule.maxBatchSize}.`,
      );
    }
    const { maxQueueSize } = this.policy;
    if (maxQueueSize > 0) {
      this.expire(nowUs);
      if (this.queuedRequests >= maxQueueSize) return false;
    }
    const deadlineUs = this.deadlineOf(nowUs, timeoutUs);
    if (deadlineUs < this.closestDeadlineUs) this.closestDeadlineUs = deadlineUs;
    this.queue.push(item, images, nowUs, deadlineUs);
    this.queuedImagesNow += images;
    return true;
  }

  /** The batch that one idle instance takes now, or null when it has to wait. */
  take(nowUs: number): Batch<T> | null {
    this.expire(nowUs);
    const count = this.requestsToTake(nowUs);
    if (count === 0) return null;
    const items = new Array<T>(count);
    const enqueuedUs = new Array<number>(count);
    let images = 0;
    for (let i = 0; i < count; i++) {
      const from = this.queue.length > 0 ? this.queue : this.delayed;
      enqueuedUs[i] = from.enqueuedUs(0);
      images += from.images(0);
      items[i] = from.shift();
    }
    this.queuedImagesNow -= images;
    if (this.queue.length === 0) this.closestDeadlineUs = Infinity;
    return { items, enqueuedUs, images };
  }

  /**
   * When the owner must call `take` again although nothing arrives and no instance gets free: the end of the oldest request's
   * queue delay, or the first timeout. Infinity when there is no such time. A time that has passed means "as soon as an
   * instance is idle".
   */
  nextWakeUs(): number {
    if (this.queuedRequests === 0) return Infinity;
    const delayOverUs = this.oldestUs() + this.rule.queueDelayUs;
    return delayOverUs < this.closestDeadlineUs ? delayOverUs : this.closestDeadlineUs;
  }

  /** Requests that timed out under `reject` since the last call; the owner answers them (Triton: UNAVAILABLE, "Request timeout expired"). */
  drainExpired(): T[] {
    if (this.expired.length === 0) return [];
    const drained = this.expired;
    this.expired = [];
    return drained;
  }

  /** Takes a queued request out; false when it is not in the queue (any more). */
  cancel(item: T): boolean {
    const images = this.queue.remove(item) || this.delayed.remove(item);
    this.queuedImagesNow -= images;
    return images > 0;
  }

  /** Takes everything out, for unloading a model. */
  drainAll(): T[] {
    const items: T[] = [];
    while (this.queue.length > 0) items.push(this.queue.shift());
    while (this.delayed.length > 0) items.push(this.delayed.shift());
    this.queuedImagesNow = 0;
    this.closestDeadlineUs = Infinity;
    return items;
  }

  private deadlineOf(nowUs: number, timeoutUs: number): number {
    const { defaultTimeoutUs, allowTimeoutOverride } = this.policy;
    let limitUs = defaultTimeoutUs > 0 ? defaultTimeoutUs : Infinity;
    if (allowTimeoutOverride && timeoutUs > 0 && timeoutUs < limitUs) limitUs = timeoutUs;
    return nowUs + limitUs;
  }

  private oldestUs(): number {
    const queued = this.queue.length > 0 ? this.queue.enqueuedUs(0) : Infinity;
    const late = this.delayed.length > 0 ? this.delayed.enqueuedUs(0) : Infinity;
    return queued < late ? queued : late;
  }

  private requestsToTake(nowUs: number): number {
    const requests = this.queuedRequests;
    if (requests === 0) return 0;
    // Compared as sums, as in nextWakeUs: now - oldest could round to just below the delay and wake for ever.
    const delayOver = nowUs >= this.oldestUs() + this.rule.queueDelayUs;
    if (this.queuedImagesNow === requests) return this.rule.takeOfSingles(requests, delayOver);
    return this.takeOfMixed(requests, delayOver);
  }

  /** BatchRule.takeOfSingles for requests of several sizes: the prefix of the queue that goes. */
  private takeOfMixed(requests: number, delayOver: boolean): number {
    const { rule } = this;
    if (!rule.dynamicBatching) return 1;
    let images = 0;
    let count = 0;
    let preferredCount = 0;
    let overflowed = false;
    while (count < requests) {
      const next =
        count < this.queue.length ? this.queue.images(count) : this.delayed.images(count - this.queue.length);
      // A batch that would pass every preferred size goes as it is: waiting cannot make it a preferred one.
      if (images > 0 && images + next > rule.largestPreferred && preferredCount === 0) preferredCount = count;
      if (images + next > rule.maxBatchSize) {
        overflowed = true;
        break;
      }
      images += next;
      count++;
      if (rule.isPreferred(images)) preferredCount = count;
    }
    if (delayOver && rule.queueDelayUs > 0) return count;
    if (preferredCount > 0) return preferredCount;
    return overflowed || images >= rule.largestPreferred || rule.queueDelayUs === 0 ? count : 0;
  }

  private expire(nowUs: number): void {
    if (nowUs < this.closestDeadlineUs) return;
    this.closestDeadlineUs = this.queue.removeExpired(nowUs, (item, images, enqueuedUs) => {
      if (this.policy.timeoutAction === "delay") {
        this.delayed.push(item, images, enqueuedUs, Infinity);
      } else {
        this.expired.push(item);
        this.queuedImagesNow -= images;
      }
    });
  }
}
