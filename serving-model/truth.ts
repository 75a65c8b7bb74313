import { gpuImagesPerS, hostMsOf } from "./service-law";
import { simulate, type SimulatedServer } from "./simulate";
import type { SimulatedShape } from "./arrival-source";

/** The SLO in the simulation's terms. */
export interface TruthSlo {
  /** Share of requests that must be answered within the bound, 0..1. */
  readonly quantile: number;
  readonly boundMs: number;
}

export interface TruthOptions {
  /** Open loop only; a closed loop has a largest number of users instead (`truthOfUsers`). Default: Poisson. */
  readonly shape?: "poisson" | "constant";
  /** Seeds whose windows are put together. Default 1 to 8. */
  readonly seeds?: readonly number[];
  /** Default 10. */
  readonly warmupS?: number;
  /** Window of each seed, seconds. Default 120. */
  readonly measureS?: number;
  /** The bisection ends when the bracket is this narrow, relative. Default 0.001. */
  readonly tolerance?: number;
}

/** A server whose variation starts anew with every run, so that runs can be repeated; or one without any. */
export type ServerOrSeeded = SimulatedServer | ((seed: number) => SimulatedServer);

function seeded(server: ServerOrSeeded, seed: number): SimulatedServer {
  return typeof server === "function" ? server(seed) : server;
}

/** Miss share of a simulated server at one load, all seeds' windows put together. */
export function longRunMissShare(
  server: ServerOrSeeded,
  shape: SimulatedShape,
  slo: TruthSlo,
  options: TruthOptions = {},
): number {
  const { seeds = [1, 2, 3, 4, 5, 6, 7, 8], warmupS = 10, measureS = 120 } = options;
  let planned = 0;
  let late = 0;
  for (const seed of seeds) {
    const result = simulate(seeded(server, seed), {
      shape,
      seed,
      warmupS,
      measureS,
      sloBoundMs: slo.boundMs,
    });
    planned += result.planned;
    late += result.late;
  }
  return late / planned;
}

/**
 * The SLO rate of a simulated server: the highest arrival rate at which the long-run miss share is at most 1 - quantile, by
 * bisection in log rate. The same seeds at every rate make the miss share nearly monotone in the rate. Null when the SLO does
 * not hold at 1 request/s.
 */
export function truthOf(server: ServerOrSeeded, slo: TruthSlo, options: TruthOptions = {}): number | null {
  const { shape = "poisson", tolerance = 0.001 } = options;
  const holds = (ratePerS: number): boolean =>
    longRunMissShare(server, { kind: shape, ratePerS }, slo, options) <= 1 - slo.quantile;
  const upper = capacityPerS(seeded(server, 0)) * (typeof server === "function" ? 1.3 : 1);
  // Above capacity every queue grows without end: only from there down is there something to look for. (A variation may make a
  // server a little faster than its law.)
  return bisect(upper, tolerance, holds);
}

/** Highest rate the server can pass at all, requests/s: full batches, the slowest of link, host phases and GPU. */
export function capacityPerS(server: SimulatedServer): number {
  const { law, instanceCount } = server;
  const batch = server.dynamicBatching ? server.maxBatchSize : 1;
  const gpuMs = law.gpuMsPerBatch + law.gpuMsPerImage * batch;
  const executionMs = gpuMs + hostMsOf(law, batch);
  return Math.min(
    law.ingressRequestsPerS,
    gpuImagesPerS(law, batch),
    (1000 * batch * instanceCount) / executionMs,
  );
}

function bisect(upper: number, tolerance: number, holds: (ratePerS: number) => boolean): number | null {
  if (holds(upper)) return upper;
  let high = upper;
  let low = upper / 2;
  while (!holds(low)) {
    high = low;
    low /= 2;
    if (low < 1) return null;
  }
  while (high / low - 1 > tolerance) {
    const middle = Math.sqrt(low * high);
    if (holds(middle)) low = middle;
    else high = middle;
  }
  return Math.sqrt(low * high);
}

export interface UsersTruth {
  /** Largest number of users that holds the SLO. */
  readonly users: number;
  /** Throughput there, requests/s. */
  readonly throughputPerS: number;
}

/** How the documents' users behave: think time uniform 0.8 to 1.2 s after an answer. */
export const documentsThink = { thinkMinS: 0.8, thinkMaxS: 1.2 } as const;

/** Users of the documents' kind, spawned within one second. */
export function usersShape(users: number): SimulatedShape {
  return { kind: "users", users, spawnPerS: users, ...documentsThink };
}

/**
 * The closed-loop SLO rate: the largest number of the documents' users at which the miss share is at most 1 - quantile, and the
 * throughput there. Null when the SLO does not hold with one user.
 */
export function truthOfUsers(
  server: ServerOrSeeded,
  slo: TruthSlo,
  options: TruthOptions = {},
): UsersTruth | null {
  const holds = (users: number): boolean =>
    longRunMissShare(server, usersShape(users), slo, options) <= 1 - slo.quantile;
  let low = 0;
  let high = Math.max(2, Math.ceil(capacityPerS(seeded(server, 0)) * 1.5));
  while (holds(high)) {
    low = high;
    high *= 2;
  }
  while (high - low > 1) {
    const middle = (low + high) >>> 1;
    if (holds(middle)) low = middle;
    else high = middle;
  }
  if (low === 0) return null;
  const { seeds = [1], warmupS = 10, measureS = 120 } = options;
  const runs = seeds.map((seed) =>
    simulate(seeded(server, seed), {
      shape: usersShape(low),
      seed,
      warmupS,
      measureS,
      sloBoundMs: slo.boundMs,
    }),
  );
  return { users: low, throughputPerS: runs.reduce((sum, run) => sum + run.throughputPerS, 0) / runs.length };
}
