/**
 * The binomial bound for independent requests: the early-stopping test of MLPerf LoadGen with tolerance d = 0. Requests of one
 * trial depend on each other near the knee, so it is a floor here: no verdict without at least this many requests.
 */
import { betaQuantile, regularizedBeta } from "./special";

/**
 * Probability of at most `misses` misses in `requests` independent requests of which a share 1 - quantile misses:
 * I_p(h, t + 1) with h = requests - misses. 1 when all missed.
 */
export function atMostMisses(requests: number, misses: number, quantile: number): number {
  return misses >= requests ? 1 : regularizedBeta(quantile, requests - misses, misses + 1);
}

/** Probability of at least `misses` misses; 1 for 0. */
export function atLeastMisses(requests: number, misses: number, quantile: number): number {
  return misses <= 0 ? 1 : 1 - atMostMisses(requests, misses - 1, quantile);
}

/** Least number of independent requests, `misses` of them missed, that proves the quantile within its bound at this confidence. */
export function leastRequests(misses: number, quantile: number, confidence: number): number {
  const proves = (requests: number): boolean => atMostMisses(requests, misses, quantile) <= 1 - confidence;
  let high = Math.max(misses + 1, 2);
  while (!proves(high)) high *= 2;
  let low = Math.max(misses, Math.floor(high / 2) - 1);
  while (high - low > 1) {
    const middle = (low + high) >>> 1;
    if (proves(middle)) high = middle;
    else low = middle;
  }
  return high;
}

/** What the counts of independent requests prove. */
export function binomialVerdict(
  requests: number,
  misses: number,
  quantile: number,
  confidence: number,
): "pass" | "fail" | "undecided" {
  if (requests === 0) return "undecided";
  if (atMostMisses(requests, misses, quantile) <= 1 - confidence) return "pass";
  return atLeastMisses(requests, misses, quantile) <= 1 - confidence ? "fail" : "undecided";
}

/**
 * Two-sided interval of a share (Clopper and Pearson 1934) for `misses` of `requests`; both may be fractional, as effective
 * counts of dependent requests are.
 */
export function shareInterval(
  requests: number,
  misses: number,
  level: number,
): { low: number; high: number } {
  const tail = (1 - level) / 2;
  return {
    low: misses <= 0 ? 0 : betaQuantile(tail, misses, requests - misses + 1),
    high: misses >= requests ? 1 : betaQuantile(1 - tail, misses + 1, requests - misses),
  };
}
