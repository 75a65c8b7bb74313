/** A judged trial -> its entry in result.json. Pure. */
import type { LoadResult } from "../../loadgen/load-spec";
import type { JudgedTrial } from "../outcome";
import type { ResultTrial } from "./result-schema";

export function describeTrial(trial: JudgedTrial): ResultTrial {
  const { spec, result } = trial;
  const { load, server } = result;
  return {
    purpose: spec.purpose,
    ratePerS: trial.ratePerS,
    users: spec.shape.kind === "users" ? spec.shape.users : null,
    seed: spec.seed,
    warmupS: spec.warmupS,
    measureS: spec.measureS,
    planned: load.total.planned,
    late: load.total.late,
    failed: load.total.failed,
    missShare: Number.isFinite(trial.missShare.estimate) ? trial.missShare : null,
    quantileMs: quantileMs(load, spec.slo.quantile),
    p50Ms: answeredOnly(load, load.response.p50Ms),
    p95Ms: answeredOnly(load, load.response.p95Ms),
    p99Ms: answeredOnly(load, load.response.p99Ms),
    meanBatch: server.meanBatch,
    gpuBusy: busyShare(server.gpuBusy),
    queueMs: server.queueMs,
    latenessP99Ms: finite(load.health.latenessP99Ms),
    verdict: trial.verdict,
    valid: load.valid,
    reason: load.valid ? trial.reason : load.invalidReasons.join("; ") || trial.reason,
  };
}

/** Nearest-rank quantile of the response time, milliseconds; null when nothing was answered. */
export function quantileMs(load: LoadResult, quantile: number): number | null {
  const { response, responseHistogram } = load;
  if (quantile === 0.95) return answeredOnly(load, response.p95Ms);
  if (quantile === 0.99) return answeredOnly(load, response.p99Ms);
  const wanted = Math.ceil(quantile * responseHistogram.reduce((sum, [, count]) => sum + count, 0));
  let seen = 0;
  for (const [lowerUs, count] of responseHistogram) {
    seen += count;
    if (seen >= wanted && count > 0) return lowerUs / 1000;
  }
  return null;
}

/** The percentile of nothing is not 0. */
function answeredOnly(load: LoadResult, valueMs: number): number | null {
  return load.response.count > 0 ? finite(valueMs) : null;
}

/** A share; counters read a moment apart may give a little more than 1. */
export function busyShare(value: number | null): number | null {
  return value === null || !Number.isFinite(value) ? null : Math.min(1, Math.max(0, value));
}

function finite(value: number): number | null {
  return Number.isFinite(value) ? value : null;
}
