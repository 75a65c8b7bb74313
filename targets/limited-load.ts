/** A hard limit on the load that a sweep may put on somebody's server. */
import type { LoadClient, LoadProgress, LoadResult, LoadSpec } from "../loadgen/load-spec";

/** Requests per second, over all replicas. */
export const DEFAULT_MAX_RATE_PER_S = 1000;

/**
 * Highest rate that the shape can offer, requests per second. A fixed number in flight without think time (the search's short
 * probes) has none: it takes what the server gives and can never queue up more than its number.
 */
export function offeredRatePerS({ shape }: Pick<LoadSpec, "shape">): number {
  if (shape.kind !== "users") return shape.ratePerS;
  return shape.thinkMinS > 0 ? shape.users / shape.thinkMinS : 0;
}

/** Refuses what would offer more than the limit; passes everything else on. */
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
    const offered = offeredRatePerS(spec);
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
