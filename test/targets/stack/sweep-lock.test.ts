import { describe, expect, it, onTestFinished } from "vitest";
import type { Lease } from "../../../targets/stack/kube";
import { LockLostError, SweepLock, type LeaseCalls } from "../../../targets/stack/sweep-lock";

/** The leases of one namespace, as the API server keeps them: a write needs the version that was read. */
class Leases implements LeaseCalls {
  lease: Lease | null = null;
  isReachable = true;
  private writes = 0;

  async readLease(): Promise<Lease> {
    if (!this.isReachable) throw Object.assign(new Error("refused"), { code: "ECONNREFUSED" });
    if (this.lease === null) throw refusal(404);
    return this.lease;
  }

  async createLease(_namespace: string, _name: string, holder: string, durationS: number): Promise<void> {
    if (this.lease !== null) throw refusal(409);
    this.write(holder, durationS);
  }

  async replaceLease(
    _namespace: string,
    _name: string,
    holder: string,
    durationS: number,
    version: string,
  ): Promise<void> {
    if (this.lease?.version !== version) throw refusal(409);
    this.write(holder, durationS);
  }

  async deleteLease(): Promise<void> {
    this.lease = null;
  }

  /** As if nothing had been heard of its holder for long. */
  expire(): void {
    if (this.lease) this.lease = { ...this.lease, renewedMs: 0, endsMs: 0 };
  }

  private write(holder: string, durationS: number): void {
    const renewedMs = Date.now();
    this.lease = { holder, renewedMs, endsMs: renewedMs + durationS * 1000, version: String(++this.writes) };
  }
}

function refusal(code: number): Error {
  return Object.assign(new Error(`HTTP status ${code}`), { code });
}

async function acquire(leases: Leases): Promise<SweepLock> {
  const lock = await SweepLock.acquire(leases, "load", "sweep");
  onTestFinished(() => lock.release());
  return lock;
}

describe("the lock of a stack", () => {
  it("is held by one sweep, says by whom, and is free after its release", async () => {
    const leases = new Leases();
    const first = await acquire(leases);
    await expect(acquire(leases)).rejects.toThrow(
      /another sweep measures this stack: .+@.+, last heard of at 20.*forgotten after 120 s/,
    );
    await first.release();
    expect(leases.lease).toBeNull();
    await (await acquire(leases)).confirm();
  });

  it("is renewed by its holder", async () => {
    const leases = new Leases();
    const lock = await acquire(leases);
    leases.expire();
    await lock.confirm();
    expect(leases.lease!.endsMs).toBeGreaterThan(Date.now());
  });

  it("is lost to another sweep after a long silence: the sleeper touches nothing of the other's", async () => {
    const leases = new Leases();
    const sleeper = await acquire(leases);
    leases.expire();
    const other = await acquire(leases);
    await expect(sleeper.confirm()).rejects.toThrow(/another sweep \(.+@.+\) has taken over this stack/);
    expect(sleeper.isLost).toBe(true);
    await sleeper.release();
    await other.confirm();
    expect(other.isLost).toBe(false);
  });

  it("when the other sweep has ended meanwhile, it is taken again, and what is loaded is not trusted", async () => {
    const leases = new Leases();
    const sleeper = await acquire(leases);
    leases.expire();
    await (await acquire(leases)).release();
    await expect(sleeper.confirm()).rejects.toThrow(LockLostError);
    expect(sleeper.isLost).toBe(false);
    await sleeper.confirm();
    expect(leases.lease).not.toBeNull();
  });

  it("an API server that cannot be asked is no loss", async () => {
    const leases = new Leases();
    const lock = await acquire(leases);
    leases.isReachable = false;
    await expect(lock.confirm()).rejects.toThrow("refused");
    expect(lock.isLost).toBe(false);
    leases.isReachable = true;
    await lock.confirm();
  });

  it("two sweeps that find an abandoned lock at the same moment do not both get it", async () => {
    const leases = new Leases();
    await acquire(leases);
    leases.expire();
    const both = await Promise.allSettled([acquire(leases), acquire(leases)]);
    expect(both.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
  });
});
