/** The lock that keeps two sweeps from measuring one stack at a time: a Lease, renewed while the sweep runs. */
import { randomUUID } from "node:crypto";
import { hostname, userInfo } from "node:os";
import { TargetError } from "../target-error";
import { kubeStatus, type Kube } from "./kube";

export type LeaseCalls = Pick<Kube, "readLease" | "createLease" | "replaceLease" | "deleteLease">;

/** A sweep that says nothing for so long is taken for dead, seconds. */
const DURATION_S = 120;
const RENEW_EVERY_MS = 30_000;

/** The servers may not be as this sweep left them. */
export class LockLostError extends Error {
  override readonly name = "LockLostError";
}

export class SweepLock {
  private timer: NodeJS.Timeout | undefined;
  private lostTo: string | null = null;
  private hasLapsed = false;

  private constructor(
    private readonly kube: LeaseCalls,
    private readonly namespace: string,
    private readonly name: string,
    private readonly holder: string,
  ) {}

  /** @throws TargetError naming who holds it and since when */
  static async acquire(kube: LeaseCalls, namespace: string, name: string): Promise<SweepLock> {
    const holder = `${userInfo().username}@${hostname()} ${randomUUID().slice(0, 8)}`;
    const lock = new SweepLock(kube, namespace, name, holder);
    await lock.take();
    lock.timer = setInterval(() => void lock.renew().catch(() => undefined), RENEW_EVERY_MS);
    lock.timer.unref();
    return lock;
  }

  /** Another sweep has taken the stack, because nothing was heard of this one for long: the servers are not ours any more. */
  get isLost(): boolean {
    return this.lostTo !== null;
  }

  /**
   * Renews the lock now: a machine that was asleep must know before it touches the servers whether they are still its own.
   * @throws LockLostError when another sweep has them, or had them meanwhile; the Kubernetes API's own error when it cannot be asked
   */
  async confirm(): Promise<void> {
    if (!this.isLost) await this.renew();
    if (this.isLost)
      throw new LockLostError(
        `another sweep (${this.lostTo}) has taken over this stack, since nothing was heard of this one for ${DURATION_S} s`,
      );
    if (!this.hasLapsed) return;
    this.hasLapsed = false;
    throw new LockLostError(
      "nothing was heard of this sweep for long, and another one may have used the servers meanwhile: the variant is loaded anew",
    );
  }

  async release(): Promise<void> {
    clearInterval(this.timer);
    const { kube, namespace, name, holder } = this;
    try {
      const lease = await kube.readLease(namespace, name);
      if (lease.holder === holder) await kube.deleteLease(namespace, name);
    } catch {
      // It runs out by itself.
    }
  }

  private async take(): Promise<void> {
    const { kube, namespace, name, holder } = this;
    try {
      await kube.createLease(namespace, name, holder, DURATION_S);
      return;
    } catch (error) {
      if (kubeStatus(error) !== 409) throw error;
    }
    const lease = await kube.readLease(namespace, name);
    if (lease.endsMs > Date.now())
      throw new TargetError(
        `another sweep measures this stack: ${lease.holder}, last heard of at ${new Date(lease.renewedMs).toISOString()}. ` +
          `Wait for its end; one that was killed is forgotten after ${DURATION_S} s`,
      );
    try {
      await kube.replaceLease(namespace, name, holder, DURATION_S, lease.version);
    } catch (error) {
      if (kubeStatus(error) !== 409) throw error;
      throw new TargetError("another sweep of this stack was started at the same moment: wait for its end");
    }
  }

  /** Says that this sweep lives, or finds out that another one has the stack. */
  private async renew(): Promise<void> {
    const { kube, namespace, name, holder } = this;
    try {
      const lease = await kube.readLease(namespace, name);
      if (lease.holder === holder)
        await kube.replaceLease(namespace, name, holder, DURATION_S, lease.version);
      else this.lostTo = lease.holder;
    } catch (error) {
      const status = kubeStatus(error);
      if (status === 404) {
        // Somebody took it over and has ended.
        this.hasLapsed = true;
        await kube.createLease(namespace, name, holder, DURATION_S);
      } else if (status !== 409) {
        throw error;
      }
      // 409: it was just renewed by the timer, or taken over; the next turn tells which.
    }
  }
}
