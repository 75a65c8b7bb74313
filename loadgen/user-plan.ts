/**
 * The documents' users: think, send, wait for the answer, think again. The planned time of a request is the end of its think time.
 * A user's first request comes after the *rest* of a think time (the renewal process's equilibrium distribution), as if the user
 * had been there for ever: however fast the users are spawned, they do not march in step, and the measured window needs no
 * long settling. Where all users together have a limit, a worker's share of it spaces its requests. Think times belong to (seed, user, how many-th), so they do not depend on the server's speed.
 */
import { DueHeap } from "./due-heap";
import type { LoadShape } from "./load-spec";
import { RandomStream, randomStreams } from "./random";
import type { Plan, WorkerShare } from "./schedule";

export type UsersShape = Extract<LoadShape, { kind: "users" }>;

export class UserPlan implements Plan {
  private due = new DueHeap();
  private readonly randomOf = new Map<number, RandomStream>();
  /** Users who wait for an answer. */
  private readonly waiting = new Set<number>();
  /** Before this time the users' common limit lets nobody send. */
  private freeAtS = 0;

  constructor(
    private shape: UsersShape,
    private readonly seed: number,
    private readonly share: WorkerShare,
  ) {
    const { users, spawnPerS, thinkMinS, thinkMaxS } = shape;
    if (!Number.isSafeInteger(users) || users < 1)
      throw new RangeError(`users must be an integer >= 1, got ${users}`);
    if (!(spawnPerS > 0) || !Number.isFinite(spawnPerS))
      throw new RangeError(`spawnPerS must be a number above 0, got ${spawnPerS}`);
    if (!(thinkMinS >= 0 && thinkMaxS >= thinkMinS && Number.isFinite(thinkMaxS)))
      throw new RangeError(`think time must be 0 <= min <= max, got ${thinkMinS}..${thinkMaxS} s`);
    for (let user = share.index; user < users; user += share.count) this.spawn(user, user / spawnPerS);
  }

  get nextAtS(): number {
    return Math.max(this.due.earliest, this.freeAtS);
  }

  take(): number {
    const { maxRatePerS = 0 } = this.shape;
    if (maxRatePerS > 0) this.freeAtS = this.nextAtS + this.share.count / maxRatePerS;
    const user = this.due.pop();
    this.waiting.add(user);
    return user;
  }

  ended(user: number, atS: number): void {
    const random = this.randomOf.get(user);
    if (random === undefined) throw new RangeError(`user ${user} does not belong to this worker`);
    this.waiting.delete(user);
    if (user >= this.shape.users) return;
    const { thinkMinS, thinkMaxS } = this.shape;
    this.due.push(atS + thinkMinS + random.uniform() * (thinkMaxS - thinkMinS), user);
  }

  /**
   * Another number of users from a time on. Users with the highest numbers leave: at once while they think, after their answer otherwise.
   * New ones come at the new shape's spawn rate. Those who stay think as the new shape says from their next answer on.
   */
  resize(shape: UsersShape, atS: number): void {
    const before = this.shape.users;
    this.shape = shape;
    const stay = new DueHeap();
    const present = new Set(this.waiting);
    while (this.due.earliest < Infinity) {
      const due = this.due.earliest;
      const user = this.due.pop();
      if (user >= shape.users) continue;
      stay.push(due, user);
      present.add(user);
    }
    this.due = stay;
    const { index, count } = this.share;
    for (let user = index; user < shape.users; user += count)
      if (!present.has(user)) this.spawn(user, atS + Math.max(0, user - before) / shape.spawnPerS);
  }

  private spawn(user: number, atS: number): void {
    let random = this.randomOf.get(user);
    if (random === undefined) {
      random = new RandomStream(this.seed, randomStreams.think, user);
      this.randomOf.set(user, random);
    }
    this.due.push(atS + this.restOfThinkS(random), user);
  }

  /** Rest of the think time that is running when somebody looks at a random moment: a length-biased think time, cut uniformly. */
  private restOfThinkS(random: RandomStream): number {
    const { thinkMinS, thinkMaxS } = this.shape;
    const running = Math.sqrt(thinkMinS ** 2 + random.uniform() * (thinkMaxS ** 2 - thinkMinS ** 2));
    return random.uniform() * running;
  }
}
