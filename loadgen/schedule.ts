/**
 * Planned send times, as pure code: no clock, no socket. Times are model seconds from the start of the load (warm-up included).
 * A plan is asked for its next time, told when that request was taken, and told when it was answered (closed loops need that).
 * A new load shape is a new case in `createPlan` and a class here; nobody else knows the shapes.
 */
import { DueHeap } from "./due-heap";
import type { LoadShape } from "./load-spec";
import { RandomStream } from "./random";

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

/** Purposes of random streams: each draws its own numbers from the one seed. */
const streams = { poisson: 1, think: 2 } as const;

/**
 * The plan of one worker. All workers together offer exactly the shape:
 * - poisson: independent streams of rate / count; their sum is a Poisson process of the whole rate.
 * - constant: arrival i happens at i / rate; worker w takes those with i mod count = w.
 * - users: worker w has the users u with u mod count = w.
 * @throws RangeError for a share that is none, or for a shape whose figures cannot be planned
 */
export function createPlan(shape: LoadShape, seed: number, share: WorkerShare): Plan {
  const { index, count } = share;
  if (!Number.isSafeInteger(index) || !Number.isSafeInteger(count) || index < 0 || index >= count)
    throw new RangeError(`worker index must be in 0..count-1, got worker ${index} of ${count}`);
  switch (shape.kind) {
    case "poisson": {
      const random = new RandomStream(seed, streams.poisson, index);
      const meanGapS = count / positive("ratePerS", shape.ratePerS);
      let atS = 0;
      return new OpenLoop(() => (atS += random.exponential() * meanGapS));
    }
    case "constant": {
      const ratePerS = positive("ratePerS", shape.ratePerS);
      let arrival = index - count;
      return new OpenLoop(() => (arrival += count) / ratePerS);
    }
    case "users":
      return new ClosedLoop(shape, seed, share);
  }
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

type UsersShape = Extract<LoadShape, { kind: "users" }>;

/**
 * The documents' users: think, send, wait for the answer, think again. The planned time of a request is the end of its think time.
 * A user's first request comes after the *rest* of a think time (the renewal process's equilibrium distribution), as if the user
 * had been there for ever: however fast the users are spawned, they do not march in step, and the measured window needs no
 * long settling. Think times belong to (seed, user, how many-th), so they do not depend on the server's speed.
 */
class ClosedLoop implements Plan {
  private readonly due = new DueHeap();
  private readonly randomOf = new Map<number, RandomStream>();

  constructor(
    private readonly shape: UsersShape,
    seed: number,
    share: WorkerShare,
  ) {
    const { users, spawnPerS, thinkMinS, thinkMaxS } = shape;
    if (!Number.isSafeInteger(users) || users < 1)
      throw new RangeError(`users must be an integer >= 1, got ${users}`);
    positive("spawnPerS", spawnPerS);
    if (!(thinkMinS >= 0 && thinkMaxS >= thinkMinS && Number.isFinite(thinkMaxS)))
      throw new RangeError(`think time must be 0 <= min <= max, got ${thinkMinS}..${thinkMaxS} s`);
    for (let user = share.index; user < users; user += share.count) {
      const random = new RandomStream(seed, streams.think, user);
      this.randomOf.set(user, random);
      this.due.push(user / spawnPerS + this.restOfThinkS(random), user);
    }
  }

  get nextAtS(): number {
    return this.due.earliest;
  }

  take(): number {
    return this.due.pop();
  }

  ended(user: number, atS: number): void {
    const random = this.randomOf.get(user);
    if (random === undefined) throw new RangeError(`user ${user} does not belong to this worker`);
    const { thinkMinS, thinkMaxS } = this.shape;
    this.due.push(atS + thinkMinS + random.uniform() * (thinkMaxS - thinkMinS), user);
  }

  /** Rest of the think time that is running when somebody looks at a random moment: a length-biased think time, cut uniformly. */
  private restOfThinkS(random: RandomStream): number {
    const { thinkMinS, thinkMaxS } = this.shape;
    const running = Math.sqrt(thinkMinS ** 2 + random.uniform() * (thinkMaxS ** 2 - thinkMinS ** 2));
    return random.uniform() * running;
  }
}
