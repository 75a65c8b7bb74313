/**
 * Model time: microseconds since the server's start, slowed down by the time dilation. A machine that is too slow for a load
 * plays it `dilation` times slower; everything that the server reports is in model time, so the figures read as if undilated.
 */
export class ModelClock {
  private readonly startMs = performance.now();

  /** @throws RangeError unless `dilation` (wall seconds per model second) is a finite number >= 1. */
  constructor(readonly dilation: number) {
    if (!(dilation >= 1) || !Number.isFinite(dilation)) {
      throw new RangeError(
        `The time dilation is ${dilation}; it must be a number >= 1 (wall seconds per model second).`,
      );
    }
  }

  /** Model time now, microseconds. */
  nowUs(): number {
    return ((performance.now() - this.startMs) * 1000) / this.dilation;
  }

  /** Wall milliseconds from now until a model time; negative when it has passed. */
  wallMsUntil(modelUs: number): number {
    return (modelUs * this.dilation) / 1000 - (performance.now() - this.startMs);
  }

  /** Wall milliseconds that a model duration takes. */
  wallMs(modelUs: number): number {
    return (modelUs * this.dilation) / 1000;
  }
}
