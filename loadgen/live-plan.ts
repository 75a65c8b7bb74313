/** A plan whose load can be changed while it runs: what the console's controls do. */
import type { LoadProfile } from "./load-profile";
import { createPlan, type Plan, type WorkerShare } from "./schedule";
import { UserPlan } from "./user-plan";

/** Users of one plan: fewer than this, so that a number tells plan and user. */
const USERS_PER_PLAN = 2 ** 32;

export class LivePlan implements Plan {
  private plan: Plan;
  /** Start of the plan on this plan's time, seconds. */
  private startS = 0;
  private changes = 0;

  /** @throws RangeError as createPlan does */
  constructor(
    shape: LoadProfile,
    private readonly seed: number,
    private readonly share: WorkerShare,
  ) {
    this.plan = createPlan(shape, seed, share);
  }

  get nextAtS(): number {
    return this.startS + this.plan.nextAtS;
  }

  take(): number {
    return this.changes * USERS_PER_PLAN + this.plan.take();
  }

  ended(user: number, atS: number): void {
    // A request of an earlier plan is nobody's think time any more.
    if (Math.floor(user / USERS_PER_PLAN) !== this.changes) return;
    this.plan.ended(user % USERS_PER_PLAN, atS - this.startS);
  }

  /**
   * Another load from a time on. Users stay who they are and only their number and think time change; every other change starts the new
   * shape at its own time 0, with random numbers of its own.
   */
  change(shape: LoadProfile, atS: number): void {
    if (this.plan instanceof UserPlan && shape.kind === "users") {
      this.plan.resize(shape, atS - this.startS);
      return;
    }
    this.changes++;
    this.startS = atS;
    this.plan = createPlan(shape, this.seed + this.changes, this.share);
  }
}
