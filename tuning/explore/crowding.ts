/**
 * How instances slow each other on the host: an instance in its host phase takes longer the more others are in theirs. Instances that wait
 * for the GPU, or use it, are in nobody's way, so that the number of instances alone says little. Pure.
 */
import { finiteSourceWaitMs, usualVariability } from "../identify/finite-source";

/** A server whose instances all have work, batch after batch. */
export interface BusyServer {
  readonly instanceCount: number;
  /** Host phase of a batch while no other instance is in its own, milliseconds. */
  readonly hostAloneMs: number;
  /** GPU phase of a batch, milliseconds. */
  readonly gpuMs: number;
  /** Share by which every other instance in its host phase lengthens this one's; 0: they do not mind each other. */
  readonly crowding: number;
}

export interface Balance {
  /** Host phase of a batch, milliseconds, with the others in the way. */
  readonly hostMs: number;
  /** Mean number of instances in their host phase. */
  readonly active: number;
  /** Share of the time that the GPU works, 0..1. */
  readonly gpuBusy: number;
}

/**
 * Where host and GPU balance: batches pass at the rate at which the instances' cycles (host phase, wait for the GPU, GPU phase) add up to
 * the number of instances (Little's law), or as the GPU passes them.
 */
export function balanceOf({ instanceCount, hostAloneMs, gpuMs, crowding }: BusyServer): Balance {
  const hostMsAt = (perMs: number): number => {
    // host = alone (1 + crowding (active - 1)), active = rate x host
    const rest = 1 - crowding * perMs * hostAloneMs;
    return rest <= 0 ? Infinity : Math.max(hostAloneMs, (hostAloneMs * (1 - crowding)) / rest);
  };
  const busyInstances = (perMs: number): number =>
    perMs *
    (hostMsAt(perMs) + gpuMs + usualVariability * finiteSourceWaitMs(instanceCount, gpuMs, perMs * gpuMs));
  let low = 0;
  let high = Math.min(1 / Math.max(gpuMs, leastMs), instanceCount / Math.max(hostAloneMs + gpuMs, leastMs));
  if (busyInstances(high) > instanceCount)
    for (let i = 0; i < 40; i++) {
      const middle = (low + high) / 2;
      if (busyInstances(middle) < instanceCount) low = middle;
      else high = middle;
    }
  const hostMs = Math.min(hostMsAt(high), instanceCount / high);
  return { hostMs, active: Math.min(instanceCount, high * hostMs), gpuBusy: high * gpuMs };
}

const leastMs = 1e-9;

/** Host phase that was measured with all instances at work. */
export interface CrowdedHost {
  readonly instanceCount: number;
  /** Images a batch. */
  readonly batch: number;
  /** Milliseconds a batch. */
  readonly hostMs: number;
  readonly gpuMs: number;
}

/** Where instances wait for the GPU nearly all the time, what they do on the host is not seen. */
const unseen = 0.93;

export interface ActiveInstances {
  /** Mean number of instances in their host phase. */
  readonly active: number;
  /** Whether the host phase shows: otherwise its time may be anything that the GPU hides. */
  readonly seen: boolean;
}

/** Of a measured server with all instances at work. */
export function activeOf({ instanceCount, hostMs, gpuMs }: CrowdedHost): ActiveInstances {
  const { active, gpuBusy } = balanceOf({ instanceCount, hostAloneMs: hostMs, gpuMs, crowding: 0 });
  return { active, seen: instanceCount === 1 || gpuBusy < unseen };
}

/**
 * Before two numbers of instances were measured. Recorded on a GPU server with ten cores for its instances (docs/evidence/h200): 0.27 over
 * one to eight instances and batches of 32 to 128.
 */
const usualCrowding = 0.27;
/** How far other servers may be from it, and measured host phases from the law: standard deviations. */
const crowdingSd = 0.2;
const hostSd = 0.1;

export interface CrowdingRange {
  /** The share that explains the measured host phases best; the usual one where nothing is seen. */
  readonly likely: number;
  /** The smallest that explains them nearly as well: one standard deviation below. */
  readonly least: number;
}

/** As if a phase were so and so much an image when alone. */
export function crowdingOf(measured: readonly CrowdedHost[]): CrowdingRange {
  const points = measured.flatMap((one) => {
    const { active, seen } = activeOf(one);
    return !seen || one.hostMs <= 0 ? [] : [{ active, ln: Math.log(one.hostMs / one.batch) }];
  });
  const badnessOf = (crowding: number): number => {
    const rests = points.map(({ active, ln }) => ln - Math.log(slowdown(crowding, active)));
    const mean = rests.reduce((sum, rest) => sum + rest, 0) / Math.max(1, rests.length);
    const misses = rests.reduce((sum, rest) => sum + ((rest - mean) / hostSd) ** 2, 0);
    return misses + ((crowding - usualCrowding) / crowdingSd) ** 2;
  };
  const all = Array.from({ length: 101 }, (_, percent) => ({
    crowding: percent / 100,
    badness: badnessOf(percent / 100),
  }));
  const best = all.reduce((one, other) => (other.badness < one.badness ? other : one));
  return { likely: best.crowding, least: all.find(({ badness }) => badness <= best.badness + 1)!.crowding };
}

/** Factor by which a host phase is longer than alone. */
export function slowdown(crowding: number, active: number): number {
  return 1 + crowding * Math.max(0, active - 1);
}
