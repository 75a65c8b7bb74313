/**
 * Whether the server became another one during the search: a GPU that throttles, a neighbour that comes or goes. Trials before such a
 * change say nothing about what holds from now on. Pure.
 */
import type { ErrorModel, PlacedFit } from "./estimate";
import { wobbleOf } from "./time-course";

/** The trials from `from` on belong together. */
export interface Change {
  readonly from: number;
  /** ln of the speed after over that before the last change, < 0. */
  readonly logRatio: number;
}

/** A change is believed when it explains so much more than one speed for all: squared deviations, about F(1, n). */
const leastEvidence = 20;
/** Smaller changes are not told apart from chance, and hardly matter. */
const leastRatio = 0.025;
/** Weight of the expectation that trials scatter as the error model says, in trials. */
const expectedWeight = 3;

interface Row {
  readonly speed: number;
  readonly variance: number;
  /** Only an upper limit of the speed. */
  readonly limit: boolean;
}

/**
 * The last change to a slower server among trials in order of time; null when one speed explains them all. A server that gets faster is
 * not looked for: to take it for as fast as it was on average promises too little, never too much.
 */
export function lastChange(fits: readonly PlacedFit[], logKnee: number, model: ErrorModel): Change | null {
  const wobble = wobbleOf(fits.map(({ fit }) => fit.course));
  const rows = fits.map(({ logValue, fit }): Row => {
    const limit = fit.slope <= 0;
    const own = limit ? model.limit ** 2 : model.floor ** 2 + (model.excess / fit.slope) ** 2;
    // Trials of a server that varies from second to second differ without a change.
    const variance = own + (model.far * (logValue - logKnee)) ** 2 + wobble ** 2;
    return { speed: fit.logSpeed, variance, limit };
  });
  let found: Change | null = null;
  for (let from = 0; ;) {
    const next = changeIn(rows.slice(from));
    if (next === null) return found;
    found = { from: from + next.from, logRatio: next.logRatio };
    from = found.from;
  }
}

function changeIn(rows: readonly Row[]): Change | null {
  const whole = segment(rows).cost;
  let best: Change | null = null;
  let bestEvidence = leastEvidence;
  for (let from = 1; from < rows.length; from++) {
    const after = rows.slice(from);
    // One trial may have been disturbed; one that missed by far was not disturbed by a little.
    if (after.length < 2 && !after[0]!.limit) continue;
    const [first, last] = [segment(rows.slice(0, from)), segment(after)];
    const cost = first.cost + last.cost;
    const scatter = Math.max(1, (cost + expectedWeight) / (rows.length - 2 + expectedWeight));
    const logRatio = last.speed - first.speed;
    const evidence = (whole - cost) / scatter;
    if (evidence > bestEvidence && logRatio < -leastRatio) {
      best = { from, logRatio };
      bestEvidence = evidence;
    }
  }
  return best;
}

/** The speed that explains the rows best, and the squared deviations from it over what was expected. */
function segment(rows: readonly Row[]): { speed: number; cost: number } {
  const proper = rows.filter(({ limit }) => !limit);
  const limits = rows.filter(({ limit }) => limit);
  let speed = proper.length > 0 ? meanOf(proper) : Math.min(...limits.map((row) => row.speed));
  const broken = limits.filter((row) => row.speed < speed);
  if (proper.length > 0 && broken.length > 0) speed = meanOf([...proper, ...broken]);
  const cost = [...proper, ...broken].reduce((sum, row) => sum + (row.speed - speed) ** 2 / row.variance, 0);
  return { speed, cost };
}

function meanOf(rows: readonly Row[]): number {
  const weights = rows.reduce((sum, { variance }) => sum + 1 / variance, 0);
  return rows.reduce((sum, { speed, variance }) => sum + speed / variance, 0) / weights;
}
