/** The service law of a server that reports no execution times, from response times alone. */
import { type Equation, line } from "./least-squares";
import type { Observation } from "./observation";
import type { Phases } from "./phases";

/** Sum of the phases from response times at known concurrencies, the split from saturation. */
export function fromResponses(observations: readonly Observation[]): Phases | null {
  const ladder: Equation[] = [];
  let saturated: Observation | null = null;
  for (const seen of observations) {
    const { variant, concurrency, responseMs, measureS } = seen;
    if (concurrency === null) continue;
    if (concurrency > variant.maxBatchSize) {
      saturated = seen;
      continue;
    }
    const fills = concurrency === variant.maxBatchSize || variant.preferredBatchSizes.includes(concurrency);
    ladder.push({
      batch: concurrency,
      ms: responseMs - (fills ? 0 : variant.queueDelayUs / 1000),
      weight: measureS,
    });
  }
  const any = observations[0];
  if (any === undefined) return null;
  const notes = ["The server reports no execution times: the law is estimated from response times alone."];
  if (saturated !== null && saturated.variant.instanceCount === 1) {
    // One instance: at saturation every execution is full and follows the one before.
    const { maxBatchSize } = saturated.variant;
    ladder.push({
      batch: maxBatchSize,
      ms: (maxBatchSize * 1000) / saturated.throughputPerS,
      weight: saturated.measureS,
    });
  }
  if (ladder.length === 0) {
    const delayMs = any.variant.queueDelayUs / 1000;
    ladder.push({ batch: 1, ms: Math.max(0.1, any.responseMs - delayMs), weight: 1 });
  }
  const total = line(ladder);
  const { instanceCount, maxBatchSize } = any.variant;
  if (instanceCount === 1 || saturated === null) {
    return result(0, total.perImage, ["Host and GPU phase are not told apart: all is counted as GPU time."]);
  }
  const gpuPerImage = Math.max(
    0,
    ((maxBatchSize * 1000) / saturated.throughputPerS - total.perBatch) / maxBatchSize,
  );
  if (gpuPerImage >= total.perImage) return result(0, total.perImage, []);
  return result(total.perImage - gpuPerImage, gpuPerImage, [
    "The split into host and GPU phase assumes that the GPU is what saturates.",
  ]);

  function result(host: number, perImage: number, more: readonly string[]): Phases {
    return {
      law: {
        hostMsPerBatch: 0,
        hostMsPerImage: host,
        gpuMsPerBatch: total.perBatch,
        gpuMsPerImage: perImage,
      },
      phases: false,
      batchSplit: total.split,
      residual: NaN,
      notes: [...notes, ...more],
    };
  }
}
