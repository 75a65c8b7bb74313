/**
 * How much faster or slower than its model a server was in a trial: the model is run through the trial's own arrivals, everything
 * in it sped up by one factor until its quantile is the measured one. Near the knee that factor says where the real knee lies,
 * whatever the model's small errors are.
 */
import { simulate } from "../../serving-model/simulate";
import type { SimulationResult } from "../../serving-model/window-stats";
import { inFlightCap } from "../live-runner";
import type { TrialResult, TrialSpec } from "../trial";
import { type ModelledSystem, spedUp } from "./model-knee";
import { excessCeiling, excessOf, excessOfSimulation } from "./quantile-excess";
import { withOverhead } from "./load-axis";
import { arrivalsOf } from "./replay";
import { compareCourses, courseOf, type TimeCourse } from "./time-course";

export interface SpeedFit {
  /** ln of the factor; positive: the server is faster than the model. */
  readonly logSpeed: number;
  /**
   * -dy / d logSpeed from the reference speed to the fitted one: how sharply the trial tells the two apart. Not at the fitted speed: there
   * it would depend on the trial's luck, and unlucky trials would count more; nor at the reference speed alone, where a server that the
   * model takes for idle would hardly count, however late its answers were. 0 when the trial only gives a limit.
   */
  readonly slope: number;
  /** Measured y. */
  readonly excess: number;
  /** y of the model as it is (logSpeed 0). */
  readonly modelExcess: number;
  /** How its seconds compare with the model's; null where the arrivals are not known exactly, or the trial only gives a limit. */
  readonly course: TimeCourse | null;
}

const widest = 0.7;
/** Draws that are averaged where the arrivals are not known exactly, or the server varies. */
const guessedDraws = 3;

/**
 * Null when the trial has no requests.
 * @param reference logSpeed from which the slope is taken: the best estimate so far
 */
export function fitSpeed(
  system: ModelledSystem,
  spec: TrialSpec,
  result: TrialResult,
  reference: number,
): SpeedFit | null {
  const measured = excessOf(result.load, spec.slo);
  if (Number.isNaN(measured)) return null;
  const excess = modelExcess(system, spec, result);
  const at0 = excess(0);
  if (measured >= excessCeiling)
    return {
      logSpeed: Math.min(0, limit(excess, measured)),
      slope: 0,
      excess: measured,
      modelExcess: at0,
      course: null,
    };
  // y falls with speed: walk from 0 towards the measured value until it is bracketed.
  const direction = at0 > measured ? 1 : -1;
  let near = 0;
  let far = 0;
  for (let step = 0.005; Math.abs(far) < widest; step *= 2) {
    far = direction * Math.min(widest, Math.abs(near) + step);
    if ((excess(far) - measured) * direction <= 0) break;
    near = far;
  }
  for (let i = 0; i < 20 && Math.abs(far - near) > 1e-4; i++) {
    const middle = (near + far) / 2;
    if ((excess(middle) - measured) * direction <= 0) far = middle;
    else near = middle;
  }
  const logSpeed = (near + far) / 2;
  // Not even the widest speed explains what was measured: no fit.
  const explained = Math.abs(logSpeed) < widest * 0.99;
  const [slower, faster] = [Math.min(reference, logSpeed) - step, Math.max(reference, logSpeed) + step];
  const slope = explained ? Math.max(0, (excess(slower) - excess(faster)) / (faster - slower)) : 0;
  const course = slope > 0 ? courseAt(system, spec, result, logSpeed) : null;
  return { logSpeed, slope, excess: measured, modelExcess: at0, course };
}

/** Step (ln of the speed) of a numerical derivative. */
const step = 0.01;

function courseAt(
  system: ModelledSystem,
  spec: TrialSpec,
  result: TrialResult,
  logSpeed: number,
): TimeCourse | null {
  if (!arrivalsOf(spec, result.load).exact) return null;
  const runs = replaysOf(system, spec, result, 1);
  const at = (speed: number): number[] => courseOf(runs(speed)[0]!, system.overheadMs);
  const courses = { fitted: at(logSpeed), slower: at(logSpeed - step), faster: at(logSpeed + step) };
  return compareCourses(result.load, courses, step);
}

/** Fastest speed at which the model misses as thoroughly as the server did. */
function limit(excess: (logSpeed: number) => number, measured: number): number {
  let low = -widest;
  let high = widest;
  for (let i = 0; i < 12; i++) {
    const middle = (low + high) / 2;
    if (excess(middle) >= measured) low = middle;
    else high = middle;
  }
  return low;
}

function modelExcess(
  system: ModelledSystem,
  spec: TrialSpec,
  result: TrialResult,
): (logSpeed: number) => number {
  const runs = replaysOf(system, spec, result);
  return (logSpeed) => {
    const ys = runs(logSpeed).map((run) => excessOfSimulation(run, spec.slo, system.overheadMs));
    return ys.reduce((sum, y) => sum + y, 0) / ys.length;
  };
}

/** The trial in the model, at any speed; several draws where its arrivals are not known exactly. */
export function replaysOf(
  system: ModelledSystem,
  spec: TrialSpec,
  result: TrialResult,
  mostDraws = guessedDraws,
): (logSpeed: number) => SimulationResult[] {
  const arrivals = arrivalsOf(spec, result.load);
  const draws = Array.from(
    { length: arrivals.exact && system.server.variationFor === undefined ? 1 : mostDraws },
    (_, index) => withOverhead(arrivals.draw(index), system.overheadMs),
  );
  return (logSpeed) => {
    const { server, overheadMs } = spedUp(system, Math.exp(logSpeed));
    return draws.map((shape, draw) =>
      simulate(server, {
        shape,
        seed: 501 + draw,
        warmupS: spec.warmupS,
        measureS: spec.measureS,
        sloBoundMs: Math.max(1e-3, spec.slo.boundMs - overheadMs),
        maxInFlight: inFlightCap(spec),
        intervalS: result.load.intervalS,
      }),
    );
  };
}
