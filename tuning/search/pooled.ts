/**
 * The speed at which the model misses the SLO as often as the server did, over all trials near the knee together. Where a server's speed
 * varies, what counts in the long run is the mean of the misses, not the mean of the speeds: a bad spell costs more misses than a good
 * one saves. Pure.
 */
export interface PooledTrial {
  /** ln of requests/s or users. */
  readonly logValue: number;
  readonly planned: number;
  /** Late, failed or shed, over planned. */
  readonly missShare: number;
  /** Miss share of the model with the trial's own arrivals at this speed (ln). */
  readonly modelMissShare: (logSpeed: number) => number;
}

export interface PooledSpeed {
  readonly logSpeed: number;
  /** From the trials' own deviations (sandwich estimator: Huber 1967), so it holds whatever makes them deviate. */
  readonly standardError: number;
}

/** Trials this far from the knee (ln of the load) count for less: there the model's shape would be judged, not its speed. */
const nearness = 0.04;
/** The speed is sought this far around the first guess. */
const reach = 0.4;
const speedTolerance = 1e-3;

/** First guess of the speed, the knee's place (ln of the load), and how the speed changes with the load. */
export interface Start {
  readonly logSpeed: number;
  readonly logKnee: number;
  readonly trend: number;
}

interface Solved {
  readonly logSpeed: number;
  readonly excessesAt: (logSpeed: number) => number[];
  /** Weights of the trials. */
  readonly weights: readonly number[];
}

/** The speed alone, to a tolerance (ln); null as below. */
export function matchingSpeed(
  trials: readonly PooledTrial[],
  start: Start,
  tolerance: number,
): number | null {
  return solve(trials, start, 0, tolerance)?.logSpeed ?? null;
}

/**
 * Null with fewer than three trials, or when no speed explains their misses.
 * @param start first guess, the knee's place (ln of the load), and how the speed changes with the load
 * @param spread standard deviation (ln) of the server's speed from trial to trial
 */
export function matchMisses(
  trials: readonly PooledTrial[],
  start: Start,
  spread: number,
): PooledSpeed | null {
  const solved = solve(trials, start, spread, speedTolerance);
  if (solved === null) return null;
  const { logSpeed, excessesAt, weights } = solved;
  const excesses = excessesAt(logSpeed);
  const slope = (sum(excessesAt(logSpeed - 0.01)) - sum(excessesAt(logSpeed + 0.01))) / 0.02;
  if (!(slope > 0)) return null;
  const effective = sum(weights) ** 2 / sum(weights.map((weight) => weight ** 2));
  const variance = sum(excesses.map((excess) => excess ** 2)) * (effective / Math.max(1, effective - 1));
  return { logSpeed, standardError: Math.sqrt(variance) / slope };
}

function sum(list: readonly number[]): number {
  return list.reduce((total, value) => total + value, 0);
}

function solve(
  trials: readonly PooledTrial[],
  start: Start,
  spread: number,
  tolerance: number,
): Solved | null {
  if (trials.length < 3) return null;
  const scale = Math.max(nearness, spread);
  const weighted = trials.map((trial) => ({
    trial,
    weight: trial.planned * Math.exp(-(((trial.logValue - start.logKnee) / scale) ** 2) / 2),
  }));
  const excessesAt = (logSpeed: number): number[] =>
    weighted.map(({ trial, weight }) => {
      const share = (trial.modelMissShare(logSpeed - spread) + trial.modelMissShare(logSpeed + spread)) / 2;
      return weight * (share - trial.missShare);
    });
  // The faster, the fewer misses.
  let [low, high] = [start.logSpeed, start.logSpeed];
  let [yLow, yHigh] = [sum(excessesAt(low)), NaN];
  yHigh = yLow;
  for (let step = 0.01; yHigh > 0; step *= 2) {
    if (high > start.logSpeed + reach) return null;
    [low, yLow] = [high, yHigh];
    high += step;
    yHigh = sum(excessesAt(high));
  }
  for (let step = 0.01; yLow <= 0; step *= 2) {
    if (low < start.logSpeed - reach) return null;
    [high, yHigh] = [low, yLow];
    low -= step;
    yLow = sum(excessesAt(low));
  }
  for (let round = 0; high - low > tolerance && round < 12; round++) {
    const share = round % 3 === 2 ? 0.5 : Math.min(0.9, Math.max(0.1, yLow / (yLow - yHigh)));
    const middle = low + share * (high - low);
    const y = sum(excessesAt(middle));
    if (y > 0) [low, yLow] = [middle, y];
    else [high, yHigh] = [middle, y];
  }
  return { logSpeed: (low + high) / 2, excessesAt, weights: weighted.map(({ weight }) => weight) };
}
