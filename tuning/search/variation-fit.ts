/** Which law of variation a server follows: the one whose response times, at the speed that matches the misses, look most like its own. */
import { latencyBinFloorUs } from "../../serving-model/latency-bins";
import type { SimulationResult } from "../../serving-model/window-stats";
import {
  comparedAt,
  firstLaws,
  misfit,
  neighboursOf,
  steady,
  type Tail,
  variationFor,
  type VariationLaw,
} from "../identify/variation";
import type { Slo } from "../trial";
import type { KneeTrial } from "./knee-trials";
import type { ModelledSystem } from "./model-knee";
import { matchingSpeed, type PooledTrial } from "./pooled";
import { replaysOf } from "./speed-fit";

export interface FittedVariation {
  readonly law: VariationLaw;
  readonly system: ModelledSystem;
  /** At which it misses as often as the server did (ln). */
  readonly logSpeed: number;
  /** Mean squared ln of modelled over measured shares beyond multiples of the bound. */
  readonly misfit: number;
}

/** Trials that are compared: the nearest ones, and those well below the knee, where a steady server would miss nothing. */
const nearTrials = 4;
const farBelow = 0.06;
/** A law with more parameters has to fit so much better than the steady one. */
const worthIt = 0.6;

/** Draws of a varying server's times for each trial: for the estimate, and for telling laws apart. */
const matchingDraws = 2;
const tellingDraws = 2;
/** Laws are told apart by their shapes, which hardly depend on so little of the speed (ln). */
const tellingTolerance = 2e-3;

/** The system with a law of variation. */
export function varied(system: ModelledSystem, law: VariationLaw): ModelledSystem {
  return { ...system, server: { ...system.server, variationFor: variationFor(law) ?? undefined } };
}

/** Trials as the matching of misses wants them. */
export function pooledTrials(
  system: ModelledSystem,
  trials: readonly KneeTrial[],
  draws = matchingDraws,
): PooledTrial[] {
  return trials.map(({ judged: { spec, result }, value }) => {
    const runs = replaysOf(system, spec, result, draws);
    const { ok, planned } = result.load.total;
    return {
      logValue: Math.log(value),
      planned,
      missShare: 1 - ok / planned,
      modelMissShare: (logSpeed) => {
        const replays = runs(logSpeed);
        return replays.reduce((sum, run) => sum + run.late / Math.max(1, run.planned), 0) / replays.length;
      },
    };
  });
}

/**
 * All laws that can be matched to the trials, the best first. The steady law is first unless another one fits clearly better.
 * @param start speed (ln) of the steady model, and the knee's place (ln of the load)
 */
export function fitVariation(
  system: ModelledSystem,
  trials: readonly KneeTrial[],
  slo: Slo,
  start: { readonly logSpeed: number; readonly logKnee: number },
): FittedVariation[] {
  const distance = ({ value }: KneeTrial): number => Math.abs(Math.log(value) - start.logKnee);
  const near = [...trials].sort((a, b) => distance(a) - distance(b)).slice(0, nearTrials);
  const below = trials.filter(
    ({ value }) => Math.log(value) < start.logKnee - farBelow && !near.some((t) => t.value === value),
  );
  const used = [...near, ...below.slice(-1)];
  const groups = [
    used.filter(({ value }) => Math.log(value) >= start.logKnee - farBelow),
    used.filter(({ value }) => Math.log(value) < start.logKnee - farBelow),
  ].filter((group) => group.length > 0);
  const fitOf = (law: VariationLaw): FittedVariation[] => {
    const own = varied(system, law);
    const slower = Math.log1p(law.tailShare * (law.tailFactor - 1));
    const from = { logSpeed: start.logSpeed + slower, logKnee: start.logKnee, trend: 0 };
    const logSpeed = matchingSpeed(pooledTrials(own, used, tellingDraws), from, tellingTolerance);
    if (logSpeed === null) return [];
    const bad = groups.map((group) =>
      misfit(
        tailOf(
          group.map(({ judged }) =>
            measuredTail(judged.result.load.responseHistogram, judged.result.load.total.planned, slo),
          ),
        ),
        tailOf(
          group.flatMap(({ judged: { spec, result } }) =>
            replaysOf(
              own,
              spec,
              result,
              tellingDraws,
            )(logSpeed).map((run) => modelledTail(run, slo, own.overheadMs)),
          ),
        ),
      ),
    );
    return [{ law, system: own, logSpeed, misfit: bad.reduce((sum, value) => sum + value, 0) / bad.length }];
  };
  const better = (a: FittedVariation, b: FittedVariation): number => a.misfit - b.misfit;
  const first = firstLaws.flatMap(fitOf);
  const best = [...first].sort(better)[0];
  const fits = [...first, ...(best === undefined ? [] : neighboursOf(best.law).flatMap(fitOf))];
  const ofSteady = fits.find(({ law }) => law === steady)?.misfit ?? Infinity;
  const rank = ({ law, misfit: bad }: FittedVariation): number => (law === steady ? ofSteady * worthIt : bad);
  return fits.sort((a, b) => rank(a) - rank(b));
}

function tailOf(tails: readonly Tail[]): Tail {
  const requests = tails.reduce((sum, tail) => sum + tail.requests, 0);
  const over = comparedAt.map(
    (_, i) => tails.reduce((sum, tail) => sum + tail.requests * tail.over[i]!, 0) / requests,
  );
  return { requests, over };
}

function measuredTail(histogram: readonly (readonly [number, number])[], planned: number, slo: Slo): Tail {
  return tailBeyond(histogram, planned, slo, 0);
}

function modelledTail({ responseCounts, planned }: SimulationResult, slo: Slo, overheadMs: number): Tail {
  const histogram = Array.from(responseCounts, (count, bin) => [latencyBinFloorUs(bin), count] as const);
  return tailBeyond(histogram, planned, slo, overheadMs);
}

/** What was never answered is beyond everything. */
function tailBeyond(
  histogram: readonly (readonly [number, number])[],
  planned: number,
  slo: Slo,
  overheadMs: number,
): Tail {
  const over = comparedAt.map((multiple) => {
    const limitUs = (multiple * slo.boundMs - overheadMs) * 1000;
    const within = histogram.reduce((sum, [us, count]) => (us < limitUs ? sum + count : sum), 0);
    return Math.max(0, 1 - within / Math.max(1, planned));
  });
  return { requests: planned, over };
}
