/**
 * Bins of a latency histogram: integer microseconds up to 256, then 128 bins an octave, so that a bin is at most 0.8 % wide.
 */
const SUB_BITS = 7;
const SUB = 1 << SUB_BITS;

/** Bins that cover every 31-bit number of microseconds (36 minutes). */
export const LATENCY_BINS = (31 - SUB_BITS + 1) * SUB;
const MAX_US = 2 ** 31 - 1;

/** Bin of a latency; what is over 36 minutes goes into the last one. */
export function latencyBin(us: number): number {
  const whole = us < MAX_US ? us | 0 : MAX_US;
  const shift = 31 - SUB_BITS - Math.clz32(whole | SUB);
  return (shift << SUB_BITS) + (whole >>> shift);
}

/** Lower bound of a bin, microseconds. */
export function latencyBinFloorUs(bin: number): number {
  if (bin < 2 * SUB) return bin;
  const shift = (bin >>> SUB_BITS) - 1;
  return (bin - (shift << SUB_BITS)) * 2 ** shift;
}

/**
 * Percentile by nearest rank: the smallest value whose cumulative count is >= p n, given as the middle of its bin, milliseconds.
 * NaN without values.
 */
export function percentileMs(counts: Uint32Array, p: number): number {
  let total = 0;
  for (const count of counts) total += count;
  if (total === 0) return NaN;
  const rank = Math.max(1, Math.ceil(p * total - 1e-9));
  let seen = 0;
  for (let bin = 0; bin < counts.length; bin++) {
    seen += counts[bin]!;
    if (seen >= rank) return (latencyBinFloorUs(bin) + latencyBinFloorUs(bin + 1)) / 2000;
  }
  return NaN;
}
