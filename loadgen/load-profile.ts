/** Shapes of the offered load, steady and changing, and what follows from a shape alone. */
import type { LoadShape } from "./load-spec";

/** How arrivals lie around a changing rate: by chance, or evenly. */
export type Arrivals = "poisson" | "constant";

/** A rate that is kept for some time. */
export interface RateStep {
  readonly ratePerS: number;
  /** Seconds. */
  readonly forS: number;
}

/** Every load that the generator can offer: the steady shapes of trials, and those that change while they run. */
export type LoadProfile =
  | LoadShape
  /** The rate grows (or falls) evenly within `overS` seconds, then stays. */
  | {
      readonly kind: "ramp";
      readonly fromPerS: number;
      readonly toPerS: number;
      readonly overS: number;
      readonly arrivals: Arrivals;
    }
  /** One rate after another; the last one stays. */
  | { readonly kind: "steps"; readonly steps: readonly RateStep[]; readonly arrivals: Arrivals }
  /** Arrivals at recorded times, seconds from the start, ascending. */
  | { readonly kind: "recorded"; readonly atS: readonly number[] };

/** Most arrivals of a recording: they travel to every worker in one message, 8 bytes each. */
export const MAX_RECORDED_ARRIVALS = 1_000_000;

/** Most users: each is an entry in its worker's memory. */
const MAX_USERS = 1_000_000;
/** Highest rate, requests per second: far beyond any client; above it one would only count what it sheds. */
const MAX_RATE_PER_S = 10_000_000;

/** Whether requests leave at planned times whatever the answers are. */
export function isOpenLoop(shape: LoadProfile): shape is Exclude<LoadProfile, { kind: "users" }> {
  return shape.kind !== "users";
}

/**
 * Highest rate that the shape can offer, requests per second. Users are bounded by their think time or their common limit. A fixed
 * number in flight without either has no rate of its own (0): it takes what the server gives and never queues up more than its number.
 */
export function peakRatePerS(shape: LoadProfile): number {
  switch (shape.kind) {
    case "users":
      return peakOfUsers(shape);
    case "ramp":
      return Math.max(shape.fromPerS, shape.toPerS);
    case "steps":
      return Math.max(...shape.steps.map(({ ratePerS }) => ratePerS));
    case "recorded":
      return busiestSecond(shape.atS);
    default:
      return shape.ratePerS;
  }
}

function peakOfUsers({ users, thinkMinS, maxRatePerS = 0 }: Extract<LoadShape, { kind: "users" }>): number {
  const byThinking = thinkMinS > 0 ? users / thinkMinS : Infinity;
  const peak = Math.min(byThinking, maxRatePerS > 0 ? maxRatePerS : Infinity);
  return peak === Infinity ? 0 : peak;
}

/** Offered rate at a time of an open loop, requests per second; undefined where there is none by plan. */
export function rateAt(shape: LoadProfile, atS: number): number | undefined {
  switch (shape.kind) {
    case "ramp": {
      const done = Math.min(1, atS / shape.overS);
      return shape.fromPerS + done * (shape.toPerS - shape.fromPerS);
    }
    case "steps": {
      let endS = 0;
      for (const { ratePerS, forS } of shape.steps) if (atS < (endS += forS)) return ratePerS;
      return shape.steps.at(-1)!.ratePerS;
    }
    case "poisson":
    case "constant":
      return shape.ratePerS;
    default:
      return undefined;
  }
}

/** Users who have been spawned at a time; undefined in an open loop. */
export function usersAt(shape: LoadProfile, atS: number): number | undefined {
  if (shape.kind !== "users") return undefined;
  return Math.min(shape.users, Math.floor(atS * shape.spawnPerS) + 1);
}

/** In words, e.g. "poisson 400/s" or "3000 users". */
export function describeLoad(shape: LoadProfile): string {
  const rate = (perS: number): string => `${Number(perS.toFixed(1))}/s`;
  switch (shape.kind) {
    case "users":
      return (
        (shape.thinkMaxS > 0
          ? `${shape.users} users at ${rate(shape.spawnPerS)}, think ${shape.thinkMinS} to ${shape.thinkMaxS} s`
          : `${shape.users} in flight`) +
        ((shape.maxRatePerS ?? 0) > 0 ? `, at most ${rate(shape.maxRatePerS!)}` : "")
      );
    case "ramp":
      return `${shape.arrivals} ramp ${rate(shape.fromPerS)} to ${rate(shape.toPerS)} in ${shape.overS} s`;
    case "steps":
      return `${shape.arrivals} steps ${shape.steps.map(({ ratePerS, forS }) => `${rate(ratePerS)} for ${forS} s`).join(", ")}`;
    case "recorded":
      return `${shape.atS.length} recorded arrivals`;
    default:
      return `${shape.kind} ${rate(shape.ratePerS)}`;
  }
}

/** Problems of a shape, one sentence each; empty when it can be planned. */
export function profileProblems(shape: LoadProfile): string[] {
  const problems: string[] = [];
  const positive = (name: string, value: number, what: string): void => {
    if (!(value > 0 && Number.isFinite(value)))
      problems.push(`shape.${name} must be above 0 ${what}, got ${value}`);
    else if (value > MAX_RATE_PER_S)
      problems.push(`shape.${name} must be at most ${MAX_RATE_PER_S} ${what}, got ${value}`);
  };
  switch (shape.kind) {
    case "poisson":
    case "constant":
      positive("ratePerS", shape.ratePerS, "requests/s");
      return problems;
    case "ramp":
      checkArrivals(shape.arrivals, problems);
      if (!(shape.fromPerS >= 0 && shape.fromPerS <= MAX_RATE_PER_S))
        problems.push(`shape.fromPerS must be 0 to ${MAX_RATE_PER_S} requests/s, got ${shape.fromPerS}`);
      positive("toPerS", shape.toPerS, "requests/s");
      positive("overS", shape.overS, "s");
      return problems;
    case "steps":
      checkArrivals(shape.arrivals, problems);
      if (!Array.isArray(shape.steps) || shape.steps.length === 0)
        return [...problems, "shape.steps must name at least one step"];
      (shape.steps as readonly RateStep[]).forEach(({ ratePerS, forS }, index) => {
        positive(`steps[${index}].ratePerS`, ratePerS, "requests/s");
        positive(`steps[${index}].forS`, forS, "s");
      });
      return problems;
    case "recorded":
      return recordingProblems(shape.atS);
    case "users":
      return userProblems(shape);
    default:
      return [`shape.kind ${JSON.stringify((shape as { kind?: unknown }).kind)} is not known`];
  }
}

function checkArrivals(arrivals: unknown, problems: string[]): void {
  if (arrivals !== "poisson" && arrivals !== "constant")
    problems.push(`shape.arrivals must be poisson or constant, got ${JSON.stringify(arrivals)}`);
}

function recordingProblems(atS: readonly number[]): string[] {
  if (!Array.isArray(atS) || atS.length === 0) return ["shape.atS must have at least one arrival"];
  if (atS.length > MAX_RECORDED_ARRIVALS)
    return [`shape.atS has ${atS.length} arrivals; at most ${MAX_RECORDED_ARRIVALS} fit: cut the recording`];
  let before = 0;
  for (const time of atS as readonly number[]) {
    if (!(time >= before && Number.isFinite(time)))
      return [`shape.atS must ascend from 0: ${time} follows ${before}`];
    before = time;
  }
  return [];
}

function userProblems(shape: Extract<LoadShape, { kind: "users" }>): string[] {
  const { users, spawnPerS, thinkMinS, thinkMaxS, maxRatePerS = 0 } = shape;
  const problems: string[] = [];
  if (!(maxRatePerS >= 0 && Number.isFinite(maxRatePerS)))
    problems.push(`shape.maxRatePerS must be 0 (no limit) or more requests/s, got ${maxRatePerS}`);
  if (!(Number.isSafeInteger(users) && users >= 1))
    problems.push(`shape.users must be a whole number >= 1, got ${users}`);
  if (users > MAX_USERS) problems.push(`shape.users must be at most ${MAX_USERS}, got ${users}`);
  if (!(spawnPerS > 0 && Number.isFinite(spawnPerS)))
    problems.push(`shape.spawnPerS must be above 0 users/s, got ${spawnPerS}`);
  if (!(thinkMinS >= 0 && thinkMaxS >= thinkMinS && Number.isFinite(thinkMaxS)))
    problems.push(`shape.thinkMinS and thinkMaxS must be 0 <= min <= max, got ${thinkMinS} and ${thinkMaxS}`);
  return problems;
}

/** Most arrivals within any second that starts with one. */
function busiestSecond(atS: readonly number[]): number {
  let most = 0;
  let first = 0;
  atS.forEach((time, index) => {
    while (atS[first]! <= time - 1) first++;
    most = Math.max(most, index - first + 1);
  });
  return most;
}
