/**
 * Planned send times, as pure code: no clock, no socket. Times are model seconds from the start of the load (warm-up included).
 * A plan is asked for its next time, told when that request was taken, and told when it was answered (closed loops need that).
 * A new load shape is a new case in `createPlan` and a class here; nobody else knows the shapes.
 */
import type { LoadProfile } from "./load-profile";
import { RandomStream, randomStreams } from "./random";
import { RateCurve, type RatedProfile } from "./rate-curve";
import { UserPlan } from "./user-plan";

/** Which part of the load a worker sends: worker `index` of `count`. */
export interface WorkerShare {
  /** 0 .. count - 1 */
  readonly index: number;
  /** >= 1 */
  readonly count: number;
}

export interface Plan {
  /** Planned time of the next request; Infinity while every user waits for an answer. Never decreases in an open loop. */
  readonly nextAtS: number;
  /** Takes the next request and returns its user (0 in an open loop). */
  take(): number;
  /** Tells the plan that a user's request ended (answered, failed or shed) at this time. */
  ended(user: number, atS: number): void;
}

/**
 * The plan of one worker. All workers together offer exactly the shape:
 * - poisson: independent streams of rate / count; their sum is a Poisson process of the whole rate.
 * - constant: arrival i happens at i / rate; worker w takes those with i mod count = w.
 * - ramp, steps: as poisson or constant, with time stretched so that the rate is the profile's at every moment.
 * - recorded: worker w takes the arrivals i with i mod count = w.
 * - users: worker w has the users u with u mod count = w.
 * @throws RangeError for a share that is none, or for a shape whose figures cannot be planned
 */
export function createPlan(shape: LoadProfile, seed: number, share: WorkerShare): Plan {
  const { index, count } = share;
  if (!Number.isSafeInteger(index) || !Number.isSafeInteger(count) || index < 0 || index >= count)
    throw new RangeError(`worker index must be in 0..count-1, got worker ${index} of ${count}`);
  switch (shape.kind) {
    case "poisson": {
      const random = new RandomStream(seed, randomStreams.poisson, index);
      const meanGapS = count / positive("ratePerS", shape.ratePerS);
      let atS = 0;
      return new OpenLoop(() => (atS += random.exponential() * meanGapS));
    }
    case "constant": {
      const ratePerS = positive("ratePerS", shape.ratePerS);
      let arrival = index - count;
      return new OpenLoop(() => (arrival += count) / ratePerS);
    }
    case "ramp":
    case "steps":
      return new OpenLoop(profileArrivals(shape, seed, share));
    case "recorded": {
      let arrival = index - count;
      return new OpenLoop(() => shape.atS[(arrival += count)] ?? Infinity);
    }
    case "users":
      return new UserPlan(shape, seed, share);
  }
}

/** Arrival times of one worker around a changing rate. */
function profileArrivals(
  shape: Extract<RatedProfile, { arrivals: unknown }>,
  seed: number,
  { index, count }: WorkerShare,
): () => number {
  const curve = new RateCurve(shape);
  if (shape.arrivals === "constant") {
    let arrival = index - count;
    return () => curve.timeOf((arrival += count));
  }
  // A Poisson process of rate 1 in units of expected arrivals is one of the profile's rate in time.
  const random = new RandomStream(seed, randomStreams.poisson, index);
  let expected = 0;
  return () => curve.timeOf((expected += random.exponential() * count));
}

function positive(name: string, value: number): number {
  if (!(value > 0) || !Number.isFinite(value))
    throw new RangeError(`${name} must be a number above 0, got ${value}`);
  return value;
}

/** Requests at times that do not depend on the answers. */
class OpenLoop implements Plan {
  nextAtS: number;

  /** @param arrivals gives the next arrival time at each call, in order */
  constructor(private readonly arrivals: () => number) {
    this.nextAtS = arrivals();
  }

  take(): number {
    this.nextAtS = this.arrivals();
    return 0;
  }

  ended(): void {
    // an open loop does not wait for anybody
  }
}
