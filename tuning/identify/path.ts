/** The way into the node: the time it adds, and its ceiling. */
import type { ServiceLaw } from "../../serving-model/service-law";
import { simulate } from "../../serving-model/simulate";
import type { Observation } from "./observation";

/** Throughput at saturation this far below the phases' prediction is a ceiling before the node, if the node does not say otherwise. */
const ceilingMargin = 0.05;
/** A window whose responses take this much longer than the calmest one's is overloaded. */
const mostCalm = 4;
/** Share of the response time outside the node, at saturation, from which on requests are held up before it. */
const outsideShare = 0.3;

/**
 * The path to the node: constant time outside it, and its ceiling where that was reached. Both follow from the response times of the
 * probes, by simulating them: the calmest one gives the time outside, the busiest one the ceiling.
 */
export function pathOf(
  observations: readonly Observation[],
  law: ServiceLaw,
): { overheadMs: number; ceilingPerS: number | null } {
  const probes = observations
    .filter(({ concurrency }) => concurrency !== null)
    .sort((a, b) => a.throughputPerS - b.throughputPerS);
  const calm = probes[0];
  const busy = probes.filter(({ variant, concurrency }) => concurrency! > variant.maxBatchSize).at(-1);
  const outside = (ingressRequestsPerS: number): number =>
    calm === undefined ? 0 : restOf(calm, { ...law, ingressRequestsPerS });
  // The open loop's rest, where there is no ceiling, is what counts at the knee.
  const open = observations.filter(({ concurrency }) => concurrency === null);
  const calmestMs = Math.min(...observations.map(({ responseMs }) => responseMs));
  const free = (): number => meanRest(open, mostCalm * calmestMs) ?? outside(Infinity);
  if (busy === undefined) return { overheadMs: free(), ceilingPerS: null };
  const throughputAt = (ingressRequestsPerS: number): number => {
    const path = { ...law, ingressRequestsPerS };
    const overheadMs = outside(ingressRequestsPerS);
    return (busy.concurrency! * 1000) / (closedResponseMs(busy, path, overheadMs) + overheadMs);
  };
  const { throughputPerS } = busy;
  const restMs = meanRest([busy], Infinity);
  const heldUp =
    restMs === null
      ? throughputPerS < throughputAt(Infinity) * (1 - ceilingMargin)
      : restMs > outsideShare * busy.responseMs;
  if (!heldUp) return { overheadMs: free(), ceilingPerS: null };
  let low = throughputPerS * 0.98;
  let high = throughputPerS * 1.5;
  for (let i = 0; i < 12; i++) {
    const middle = (low + high) / 2;
    if (throughputAt(middle) < throughputPerS) low = middle;
    else high = middle;
  }
  const ceilingPerS = (low + high) / 2;
  return { overheadMs: outside(ceilingPerS), ceilingPerS };
}

/** Mean response time inside the node with a fixed number in flight; what passes outside is like a think time. */
function closedResponseMs(
  { variant, concurrency }: Observation,
  law: ServiceLaw,
  overheadMs: number,
): number {
  const thinkS = overheadMs / 1000;
  const shape = {
    kind: "users",
    users: concurrency!,
    spawnPerS: 1e6,
    thinkMinS: thinkS,
    thinkMaxS: thinkS,
  } as const;
  return simulate(
    { ...variant, dynamicBatching: true, law },
    { shape, seed: 1, warmupS: 1, measureS: 3, sloBoundMs: 100 },
  ).meanResponseMs;
}

/** What the node does not explain of a probe's response time, milliseconds. */
function restOf(probe: Observation, law: ServiceLaw): number {
  let overheadMs = 0;
  for (let round = 0; round < 4; round++) {
    overheadMs = Math.max(0, probe.responseMs - closedResponseMs(probe, law, overheadMs));
  }
  return overheadMs;
}

/**
 * What the server's own times do not explain, weighted by the windows; null without such observations. Only of calm windows: in a
 * queue that grows, the requests that were sent and those that were executed in the window are not the same ones.
 */
function meanRest(observations: readonly Observation[], mostResponseMs: number): number | null {
  let weights = 0;
  let sum = 0;
  for (const { responseMs, queueMs, inputMs, inferMs, outputMs, measureS } of observations) {
    if (queueMs === null || inputMs === null || inferMs === null || responseMs > mostResponseMs) continue;
    sum += measureS * Math.max(0, responseMs - queueMs - inputMs - inferMs - (outputMs ?? 0));
    weights += measureS;
  }
  return weights > 0 ? sum / weights : null;
}
