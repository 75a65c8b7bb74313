/** A hard limit on the load that a sweep may put on somebody's server. */
import { peakRatePerS } from "../loadgen/load-profile";
import type { LoadClient, LoadProgress, LoadResult, LoadSpec } from "../loadgen/load-spec";

/** Requests per second, over all replicas. */
export const DEFAULT_MAX_RATE_PER_S = 1000;

/**
 * Refuses what would offer more than the limit. A fixed number in flight (the search's short probes) takes what the server gives, so it
 * gets the limit along. Everything else is passed on.
 */
export class LimitedLoad implements LoadClient {
  constructor(
    private readonly load: LoadClient,
    private readonly maxRatePerS: number,
  ) {}

  async run(
    spec: LoadSpec,
    onProgress?: (progress: LoadProgress) => void,
    signal?: AbortSignal,
  ): Promise<LoadResult> {
    const { shape } = spec;
    if (shape.kind === "users" && shape.thinkMinS === 0)
      return this.load.run(
        { ...spec, shape: { ...shape, maxRatePerS: this.maxRatePerS } },
        onProgress,
        signal,
      );
    const offered = peakRatePerS(shape);
    // The search may come as near as rounding lets it.
    if (offered > this.maxRatePerS * 1.001)
      throw new Error(
        `a trial would offer ${Math.round(offered)} requests/s, the limit is ${this.maxRatePerS}: raise --max-rate if the server may be loaded that much`,
      );
    return this.load.run(spec, onProgress, signal);
  }

  close(): Promise<void> {
    return this.load.close();
  }
}
