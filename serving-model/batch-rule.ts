/** When to send a batch and how large: the settings of Triton's `dynamic_batching` that decide it. */
export interface BatchRuleSettings {
  /** Triton's max_batch_size, images, >= 1. */
  readonly maxBatchSize: number;
  /** dynamic_batching.preferred_batch_size; empty means none, and Triton then prefers max_batch_size. */
  readonly preferredBatchSizes: readonly number[];
  /** dynamic_batching.max_queue_delay_microseconds; 0 means that nothing waits for company. */
  readonly queueDelayUs: number;
  /** False when the model has no `dynamic_batching`: one request an execution, whatever its size. */
  readonly dynamicBatching: boolean;
}

/**
 * Triton's batching decision, without queue and clock (docs: "Dynamic Batcher" in Triton's model configuration guide; checked
 * against a running server). An idle instance takes
 *  - everything queued, up to max_batch_size, once the oldest request has waited queueDelayUs;
 *  - before that, the largest preferred size that is queued;
 *  - before that, as much as fits when the next request would exceed the largest preferred size or max_batch_size;
 *  - with a delay of 0, whatever is queued.
 * Otherwise it waits. Requests are never split.
 */
export class BatchRule {
  readonly maxBatchSize: number;
  readonly queueDelayUs: number;
  readonly dynamicBatching: boolean;
  /** Largest preferred size; max_batch_size when none is set. */
  readonly largestPreferred: number;
  /** [q]: largest preferred size <= q; 0 when there is none. */
  private readonly preferredSizes: Int32Array;

  /** @throws RangeError naming the setting that is wrong. */
  constructor(settings: BatchRuleSettings) {
    const { maxBatchSize, preferredBatchSizes, queueDelayUs } = settings;
    if (!Number.isInteger(maxBatchSize) || maxBatchSize < 1) {
      throw new RangeError(`maxBatchSize is ${maxBatchSize}; it must be an integer >= 1.`);
    }
    if (!(queueDelayUs >= 0) || !Number.isFinite(queueDelayUs)) {
      throw new RangeError(
        `queueDelayUs is ${queueDelayUs}; it must be a finite number of microseconds >= 0.`,
      );
    }
    for (const size of preferredBatchSizes) {
      if (!Number.isInteger(size) || size < 1 || size > maxBatchSize) {
        throw new RangeError(
          `preferredBatchSizes has ${size}; each must be an integer from 1 to maxBatchSize (${maxBatchSize}).`,
        );
      }
    }
    this.maxBatchSize = maxBatchSize;
    this.queueDelayUs = queueDelayUs;
    this.dynamicBatching = settings.dynamicBatching;
    const preferred = preferredBatchSizes.length > 0 ? preferredBatchSizes : [maxBatchSize];
    this.largestPreferred = Math.max(...preferred);
    this.preferredSizes = new Int32Array(maxBatchSize + 1);
    for (let size = 1; size <= maxBatchSize; size++) {
      this.preferredSizes[size] = preferred.includes(size) ? size : this.preferredSizes[size - 1]!;
    }
  }

  isPreferred(images: number): boolean {
    return images > 0 && this.preferredSizes[images] === images;
  }

  /** Largest preferred size that `images` reaches; 0 when it reaches none. */
  preferredUpTo(images: number): number {
    return this.preferredSizes[images]!;
  }

  /** Smallest preferred size above `images`; the smallest of all when there is none above. */
  preferredAbove(images: number): number {
    const { preferredSizes, maxBatchSize } = this;
    for (let size = images + 1; size <= maxBatchSize; size++) if (preferredSizes[size] === size) return size;
    return preferredSizes.find((size) => size > 0)!;
  }

  /**
   * How many of `queued` (>= 1) requests of one image each an idle instance takes; 0 means: wait. `delayOver` says that the
   * oldest one has waited queueDelayUs. The case that simulations need, in constant time.
   */
  takeOfSingles(queued: number, delayOver: boolean): number {
    if (!this.dynamicBatching) return 1;
    const fits = queued < this.maxBatchSize ? queued : this.maxBatchSize;
    if (delayOver && this.queueDelayUs > 0) return fits;
    const preferred = this.preferredSizes[fits]!;
    if (preferred > 0) return preferred;
    return this.queueDelayUs === 0 ? fits : 0;
  }
}
