/** Where the knee of a modelled server lies: its long-run SLO rate, by simulation. */
import { simulate, type SimulatedServer } from "../../serving-model/simulate";
import type { SimulationResult } from "../../serving-model/window-stats";
import { withHostPhase } from "../../serving-model/service-law";
import { capacityPerS } from "../../serving-model/truth";
import { percentileMs } from "../../serving-model/latency-bins";
import { normalQuantile } from "../statistics/special";
import type { Slo } from "../trial";
import { excessOfCounts, excessOfSimulation } from "./quantile-excess";
import { type LoadMode, shapeAt, withOverhead } from "./load-axis";

/** A modelled system under test: the node, and what the path to it adds to every response. */
export interface ModelledSystem {
  readonly server: SimulatedServer;
  /** Milliseconds outside the node, constant. */
  readonly overheadMs: number;
}

export interface KneeEffort {
  /** Seeds, each with a window of its own. */
  readonly seeds: number;
  /** Requests simulated a seed, about; the window is that long. */
  readonly requests: number;
  /** Shortest and longest window, seconds. */
  readonly leastS: number;
  readonly mostS: number;
}

/** For a decision on the way: about 0.5 % in steep knees, 1 % in flat ones. */
export const roughEffort: KneeEffort = { seeds: 2, requests: 40_000, leastS: 20, mostS: 400 };
/** For an answer. Slow servers are simulated for longer: what their knee is uncertain by depends on requests, not on seconds. */
export const fineEffort: KneeEffort = { seeds: 4, requests: 160_000, leastS: 60, mostS: 1600 };

export interface Knee {
  /** Requests/s in an open loop, users in a closed one. */
  readonly value: number;
  /** Throughput there, requests/s. */
  readonly ratePerS: number;
  readonly quantileMs: number;
  readonly meanBatch: number;
  readonly gpuBusy: number;
  /**
   * Standard error of `value`, relative, by how much the seeds disagree; 0 where they are meant to (a spread), or the rate is at the
   * server's capacity.
   */
  readonly chance: number;
}

/** Queues forget within some tens of bounds: a fast server need not be simulated for longer. */
const settleS = 5;
const settleBounds = 40;
const leastBounds = 120;

/**
 * Null when the SLO holds at no load. Deterministic: the same system gives the same knee.
 * @param spread standard deviation (ln) of the server's speed from window to window: bad spells weigh more in the long run than
 *   good ones make up for. The seeds' windows stand for equal shares of the time.
 */
export function kneeOf(
  system: ModelledSystem,
  mode: LoadMode,
  slo: Slo,
  effort: KneeEffort,
  guess?: number,
  spread = 0,
): Knee | null {
  const levels = Array.from({ length: effort.seeds }, (_, i) => normalQuantile((i + 0.5) / effort.seeds));
  // So few levels lie closer together than what they stand for.
  const narrowness = Math.sqrt(levels.reduce((sum, z) => sum + z ** 2, 0) / effort.seeds) || 1;
  const servers = levels.map((level) => {
    const z = level / narrowness;
    return spread === 0 ? system.server : spedUp(system, Math.exp(spread * z)).server;
  });
  const ceiling = capacityPerS(system.server) * (mode === "users" ? 1 + slo.boundMs / 500 + 1 : 1);
  const at = (value: number): { y: number; runs: SimulationResult[] } => {
    const rate = Math.min(value, capacityPerS(system.server));
    const leastS = Math.min(effort.leastS, (leastBounds * slo.boundMs) / 1000);
    const measureS = Math.min(effort.mostS, Math.max(leastS, effort.requests / rate));
    const runs = Array.from({ length: effort.seeds }, (_, i) =>
      simulate(servers[i]!, {
        shape: withOverhead(shapeAt(mode, value), system.overheadMs),
        seed: 7001 + i,
        warmupS: Math.min(settleS, (settleBounds * slo.boundMs) / 1000),
        measureS,
        sloBoundMs: slo.boundMs,
      }),
    );
    return { y: excessOfCounts(runs, slo, system.overheadMs), runs };
  };
  const root = rootOf(
    (v) => at(v).y,
    Math.min(guess ?? ceiling * 0.9, ceiling * 0.999),
    ceiling,
    mode === "users" ? 1 : 0,
  );
  if (root === null) return null;
  const { value, slope } = root;
  const { runs } = at(value);
  const mean = (pick: (run: SimulationResult) => number): number =>
    runs.reduce((sum, run) => sum + pick(run), 0) / runs.length;
  const counts = new Uint32Array(runs[0]!.responseCounts.length);
  for (const run of runs) run.responseCounts.forEach((count, bin) => (counts[bin]! += count));
  return {
    value,
    ratePerS: mode === "users" ? mean((run) => run.throughputPerS) : value,
    quantileMs: percentileMs(counts, slo.quantile) + system.overheadMs,
    meanBatch: mean((run) => run.meanBatch),
    gpuBusy: mean((run) => run.gpuBusy),
    chance:
      spread > 0 || !(slope > 0)
        ? 0
        : chanceOf(runs.map((run) => excessOfSimulation(run, slo, system.overheadMs))) / slope,
  };
}

/** Standard error of the mean. */
function chanceOf(ys: readonly number[]): number {
  const mean = ys.reduce((sum, y) => sum + y, 0) / ys.length;
  const squares = ys.reduce((sum, y) => sum + (y - mean) ** 2, 0);
  return ys.length < 2 ? 0 : Math.sqrt(squares / (ys.length - 1) / ys.length);
}

/** Shares of the knee at which low loads are looked at, and where a miss there ends, relative. */
const lowShares = [0.02, 0.05, 0.1, 0.2, 0.35, 0.55];
const lowTolerance = 1.03;

/**
 * Lowest load from which on the SLO holds up to the knee; null when it holds at every lower one. At low loads requests may wait for a batch
 * that does not fill, until their queue delay is over.
 */
export function holdsFrom(
  system: ModelledSystem,
  mode: LoadMode,
  slo: Slo,
  kneeValue: number,
): number | null {
  const misses = (value: number): boolean => {
    const run = simulate(system.server, {
      shape: withOverhead(shapeAt(mode, value), system.overheadMs),
      seed: 7001,
      warmupS: 1,
      // Enough requests for the quantile, whatever the load.
      measureS: Math.max(20, Math.min(400, 2000 / value)),
      sloBoundMs: slo.boundMs,
    });
    return excessOfCounts([run], slo, system.overheadMs) > 0;
  };
  const missed = lowShares.filter((share) => misses(kneeValue * share)).at(-1);
  if (missed === undefined) return null;
  let low = kneeValue * missed;
  let high = kneeValue * (lowShares.find((share) => share > missed) ?? 0.9);
  while (high / low > lowTolerance && !(mode === "users" && high - low < 1)) {
    const middle = Math.sqrt(low * high);
    if (misses(middle)) low = middle;
    else high = middle;
  }
  return high;
}

/** The root is known when its bracket is this narrow, or when the line through its ends moves by less than this. */
const narrow = 1.0008;
const atRest = 0.0003;

/** Least value worth looking at, requests/s or users. */
const leastValue = 1;

interface Root {
  readonly value: number;
  /** dy / d ln(value) there; Infinity at the ceiling. */
  readonly slope: number;
}

/** Largest value with y <= 0 in log steps: bracket from the guess, then regula falsi with bisection as a safeguard. */
function rootOf(
  y: (value: number) => number,
  guess: number,
  ceiling: number,
  leastStep: number,
): Root | null {
  let low = NaN;
  let yLow = NaN;
  let high = NaN;
  let yHigh = NaN;
  let value = guess;
  for (let factor = 1.01; Number.isNaN(low) || Number.isNaN(high); factor *= factor) {
    const here = y(value);
    if (here <= 0) {
      low = value;
      yLow = here;
      if (value >= ceiling) return { value, slope: Infinity };
      if (Number.isNaN(high)) value = Math.min(ceiling, value * factor);
    } else {
      high = value;
      yHigh = here;
      if (value <= leastValue) return null;
      if (Number.isNaN(low)) value = Math.max(leastValue, value / factor);
    }
  }
  const slope = (): number => (yHigh - yLow) / Math.log(high / low);
  const crossing = (): number => Math.exp(Math.log(low) + (yLow / (yLow - yHigh)) * Math.log(high / low));
  let last = NaN;
  for (let i = 0; i < 40 && high / low > narrow && high - low > leastStep; i++) {
    const guessed = crossing();
    // The straight line between the two ends has come to rest: it is the root.
    if (leastStep === 0 && Math.abs(guessed / last - 1) < atRest) return { value: guessed, slope: slope() };
    last = guessed;
    const share = Math.min(0.95, Math.max(0.05, Math.log(guessed / low) / Math.log(high / low)));
    const middle = i % 4 === 3 ? Math.sqrt(low * high) : low * (high / low) ** share;
    const here = y(middle);
    if (here <= 0) [low, yLow] = [middle, here];
    else [high, yHigh] = [middle, here];
  }
  return { value: leastStep > 0 ? Math.round(low) : crossing(), slope: slope() };
}

/** The same system, everything in it faster by this factor (below 1: slower). */
export function spedUp(system: ModelledSystem, factor: number): ModelledSystem {
  const { law } = system.server;
  return {
    ...system,
    server: {
      ...system.server,
      law: {
        ...withHostPhase(law, 1 / factor),
        gpuMsPerBatch: law.gpuMsPerBatch / factor,
        gpuMsPerImage: law.gpuMsPerImage / factor,
        ingressRequestsPerS: law.ingressRequestsPerS * factor,
      },
    },
  };
}
