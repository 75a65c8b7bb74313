/** What is true of a random server: its SLO rate by long seeded runs, what limits it, and which change gains most. Cached. */
import { capacityPerS } from "../serving-model/truth";
import { simulate, type SimulatedServer } from "../serving-model/simulate";
import { candidatesOf, worthwhileGain } from "../tuning/diagnosis/candidates";
import { relievedSystems } from "../tuning/diagnosis/relief";
import { causeOf } from "../tuning/diagnosis/cause";
import type { ModelledSystem } from "../tuning/search/model-knee";
import type { Cause } from "../tuning/trial";
import type { TruthCache } from "./search-cache";
import type { ServerChange, World } from "./search-worlds";

/** What a right diagnosis may say; equal gains are equally right. */
export interface RightDiagnosis {
  readonly causes: readonly Cause[];
  /** Changes, as the diagnosis names them. */
  readonly moves: readonly string[];
}

interface Effort {
  readonly seeds: number;
  readonly measureS: number;
  readonly tolerance: number;
}

/** Windows are long: near the limit a queue takes a minute to fill, and short ones would flatter the server. */
const longRun: Effort = { seeds: 6, measureS: 200, tolerance: 0.0015 };
/** And hold so many requests: late ones come in bursts, and of a slow server 200 s hold too few for its 99th percentile. */
const leastRequests = 150_000;
/** Where bad spells come seldom. */
const varyingRun: Effort = { ...longRun, seeds: 9 };
/** To compare changes: the same random numbers in all of them. */
const comparing: Effort = { seeds: 2, measureS: 30, tolerance: 0.008 };
const warmupS = 10;
const firstStep = 1.01;
/** Gains that differ by less than this are the same. */
const sameGain = 0.015;
const sameGainShare = 0.1;
/** Another replica is right where no change gains this much. */
const replicaName = "another replica";

/** The SLO rate over [fromS, toS] of the sweep's time; null when the SLO holds at no rate of 1/s or more. */
export function trueRate(world: World, fromS: number, toS: number, truths: TruthCache): number | null {
  const [from, to] = world.changesOverTime ? [tens(fromS), tens(toS)] : [0, 0];
  const known = truths.get(`${world.seed}:${from}-${to}`, () => {
    const effort = world.kind === "heavy-tail" || world.kind === "wander" ? varyingRun : longRun;
    const rough = rateOf(world, from, to, { ...effort, measureS: 20, tolerance: 0.01 });
    if (rough === null) return null;
    const measureS = Math.max(effort.measureS, leastRequests / rough);
    return rateOf(world, from, to, { ...effort, measureS }, undefined, undefined, rough);
  });
  return known === null ? null : Math.min(known, world.offerablePerS);
}

/** Truths of nearly the same times are the same. */
function tens(seconds: number): number {
  return Math.round(seconds / 10) * 10;
}

function rateOf(
  world: World,
  fromS: number,
  toS: number,
  { seeds, measureS, tolerance }: Effort,
  change: ServerChange = (server) => server,
  overheadMs = world.overheadMs,
  guess?: number,
): number | null {
  const boundMs = world.slo.boundMs - overheadMs;
  const serverAt = (seed: number): SimulatedServer =>
    change(world.server(seed, fromS + ((seed - 0.5) / seeds) * (toS - fromS), true));
  /** ln(miss share / allowed), > 0 when the SLO is missed. */
  const missed = (ratePerS: number): number => {
    let planned = 0;
    let late = 0;
    for (let seed = 1; seed <= seeds; seed++) {
      const shape = { kind: "poisson", ratePerS } as const;
      const load = { shape, seed, warmupS, measureS, sloBoundMs: boundMs };
      const run = simulate(serverAt(seed), load);
      planned += run.planned;
      late += run.late;
    }
    return Math.log((late + 0.5) / (planned * (1 - world.slo.quantile)));
  };
  return highestRoot(
    missed,
    guess ?? capacityPerS(serverAt(1)) * 0.9,
    capacityPerS(serverAt(1)) * 1.3,
    tolerance,
  );
}

/** Highest rate at which `missed` is <= 0, found from above. */
function highestRoot(
  missed: (ratePerS: number) => number,
  guess: number,
  ceiling: number,
  tolerance: number,
): number | null {
  let high = Math.min(guess, ceiling);
  let yHigh = missed(high);
  let low = high;
  let yLow = yHigh;
  for (let factor = firstStep; yHigh <= 0 && high < ceiling; factor *= factor) {
    [low, yLow] = [high, yHigh];
    high = Math.min(ceiling, high * factor);
    yHigh = missed(high);
  }
  if (yHigh <= 0) return high;
  for (let factor = firstStep; yLow > 0; factor = Math.min(1.5, factor * factor)) {
    if (low < 1) return null;
    [high, yHigh] = [low, yLow];
    low /= factor;
    yLow = missed(low);
  }
  const crossing = (): number => low * (high / low) ** (yLow / (yLow - yHigh));
  let last = NaN;
  for (let round = 0; high / low - 1 > tolerance; round++) {
    const guessed = crossing();
    // The straight line between the two ends has come to rest: it is the root.
    if (Math.abs(guessed / last - 1) < tolerance / 4) return guessed;
    last = guessed;
    const share = Math.log(guessed / low) / Math.log(high / low);
    const middle =
      round % 4 === 3 ? Math.sqrt(low * high) : low * (high / low) ** Math.min(0.95, Math.max(0.05, share));
    const y = missed(middle);
    if (y <= 0) [low, yLow] = [middle, y];
    else [high, yHigh] = [middle, y];
  }
  return crossing();
}

/** Of a sweep that ended at `endS`: the planted cause, or the resources whose relief gains most in the real server; and the best changes. */
export function rightDiagnosis(world: World, endS: number, truths: TruthCache): RightDiagnosis {
  const planted = world.planted(endS);
  // A server that changes is what it is at the end: that is what has to be helped.
  const atS = world.changesOverTime ? tens(endS) : 0;
  const found = truths.get(`${world.seed}:why:${atS}`, () => reasonsOf(world, atS));
  return planted === null ? found : { ...found, causes: [planted] };
}

function reasonsOf(world: World, atS: number): RightDiagnosis {
  const base = rateOf(world, atS, atS, comparing);
  if (base === null) return { causes: [], moves: [] };
  const system = {
    server: { ...world.variant, dynamicBatching: true, law: world.law },
    overheadMs: world.overheadMs,
  };
  const gainOf = (changed: ModelledSystem): number => {
    // Settings and law of the changed system, the variation of the real one.
    const rate = rateOf(
      world,
      atS,
      atS,
      comparing,
      ({ variation }) => ({ ...changed.server, variation }),
      changed.overheadMs,
      base,
    );
    return rate === null ? -1 : rate / base - 1;
  };
  const reliefs = relievedSystems(system).map(({ resource, system: relieved }) => ({
    cause: causeOf(resource),
    gain: gainOf(relieved),
  }));
  const bestRelief = Math.max(...reliefs.map(({ gain }) => gain));
  const { variant, lawOf } = world;
  const instancesAllowed = world.kind === "memory" ? variant.instanceCount : Infinity;
  const moves = candidatesOf({ variant, system, lawOf, instancesAllowed }).map(
    ({ change, system: changed }) => ({
      change,
      gain: gainOf(changed),
    }),
  );
  const best = Math.max(...moves.map(({ gain }) => gain));
  const nearly = (gain: number, of: number): boolean => gain >= of - Math.max(sameGain, sameGainShare * of);
  return {
    causes: reliefs.filter(({ gain }) => nearly(gain, bestRelief)).map(({ cause }) => cause),
    moves: [
      ...moves.filter(({ gain }) => nearly(gain, best)).map(({ change }) => change),
      ...(best < worthwhileGain + sameGain ? [replicaName] : []),
    ],
  };
}

export function isRightMove(change: string, { moves }: RightDiagnosis): boolean {
  return moves.some((right) => change === right || (right === replicaName && change.startsWith(replicaName)));
}
