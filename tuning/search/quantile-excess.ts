/**
 * The figure that the search follows: y = ln(q-quantile of the response time / SLO bound). The SLO holds where y <= 0. Unlike the
 * miss share it is smooth on both sides of the knee and says something at every load.
 */
import type { LoadResult } from "../../loadgen/load-spec";
import { latencyBinFloorUs } from "../../serving-model/latency-bins";
import type { SimulationResult } from "../../serving-model/window-stats";
import type { Slo } from "../trial";

/** y of a window whose quantile falls on requests that were never answered; the same for every larger y. */
export const excessCeiling = Math.log(20);

/** Of a trial; failed and shed requests count as endless. NaN when nothing was planned. */
export function excessOf(load: LoadResult, slo: Slo): number {
  const { planned, failed, shed } = load.total;
  if (planned === 0) return NaN;
  const bins = load.responseHistogram;
  return excessOfBins(
    bins.length,
    (i) => bins[i]![1],
    (i) => bins[i]![0],
    planned - failed - shed,
    planned,
    slo,
  );
}

/** Of a simulated window. `overheadMs` is what the path outside the node adds to every response. */
export function excessOfSimulation(
  run: Pick<SimulationResult, "planned" | "responseCounts">,
  slo: Slo,
  overheadMs: number,
): number {
  if (run.planned === 0) return NaN;
  let answered = 0;
  for (const count of run.responseCounts) answered += count;
  const middleUs = (bin: number): number =>
    (latencyBinFloorUs(bin) + latencyBinFloorUs(bin + 1)) / 2 + overheadMs * 1000;
  return excessOfBins(
    run.responseCounts.length,
    (bin) => run.responseCounts[bin]!,
    middleUs,
    answered,
    run.planned,
    slo,
  );
}

/** Of several simulated windows put together. */
export function excessOfCounts(runs: readonly SimulationResult[], slo: Slo, overheadMs: number): number {
  const responseCounts = new Uint32Array(runs[0]!.responseCounts.length);
  let planned = 0;
  for (const run of runs) {
    planned += run.planned;
    run.responseCounts.forEach((count, bin) => (responseCounts[bin]! += count));
  }
  return excessOfSimulation({ planned, responseCounts }, slo, overheadMs);
}

function excessOfBins(
  length: number,
  countOf: (i: number) => number,
  usOf: (i: number) => number,
  answered: number,
  planned: number,
  slo: Slo,
): number {
  const rank = Math.max(1, Math.ceil(slo.quantile * planned - 1e-9));
  if (rank > answered) return excessCeiling;
  let seen = 0;
  for (let i = 0; i < length; i++) {
    seen += countOf(i);
    if (seen >= rank) return Math.min(excessCeiling, Math.log(Math.max(1, usOf(i)) / (slo.boundMs * 1000)));
  }
  return excessCeiling;
}

/** The SLO's quantile of a trial's response time, milliseconds; null when it falls on requests that were never answered. */
export function quantileMsOf(load: LoadResult, slo: Slo): number | null {
  const excess = excessOf(load, slo);
  return Number.isNaN(excess) || excess >= excessCeiling ? null : slo.boundMs * Math.exp(excess);
}
