/** What a load of `npm run load` came to: verdict, text and JSON. Pure. */
import { busyWaitWords } from "../loadgen/busy-wait-words";
import { describeLoad } from "../loadgen/load-profile";
import type { LatencySummary, LoadProgress, LoadResult, LoadSpec } from "../loadgen/load-spec";
import type { Slo } from "../tuning/trial";
import { exitCodes, type ExitCode } from "./exit-codes";

export interface LoadVerdict {
  /** held, broken, or unknown: the figures must not be used. */
  readonly slo: "held" | "broken" | "unknown";
  /** Requests that were answered correctly within the bound over planned ones; null: none was planned. */
  readonly inTimeShare: number | null;
  /** Answered requests per second of the measured time. */
  readonly answeredPerS: number;
  readonly exitCode: ExitCode;
}

/** Length of the measured time, model seconds. */
export function measuredS({ warmupS, measureS }: LoadSpec, { stop }: LoadResult): number {
  return stop ? Math.max(0, stop.atS - warmupS) : measureS;
}

/** Counted misses decide, not a percentile of buckets: exact. */
export function judgeLoad(spec: LoadSpec, result: LoadResult, slo: Slo): LoadVerdict {
  const { planned, ok } = result.total;
  const seconds = measuredS(spec, result);
  const inTimeShare = planned === 0 ? null : ok / planned;
  const answeredPerS = seconds === 0 ? 0 : result.response.count / seconds;
  // 0.95 of a hundred is ninety-five, whatever the last digit of the division is.
  const holds = inTimeShare !== null && inTimeShare >= slo.quantile - 1e-9;
  const isStoppedByRule = result.stop?.finding != null;
  const verdict =
    !result.valid || inTimeShare === null ? "unknown" : holds && !isStoppedByRule ? "held" : "broken";
  const exitCode =
    verdict === "unknown" ? exitCodes.partial : verdict === "held" ? exitCodes.ok : exitCodes.sloNeverHeld;
  return { slo: verdict, inTimeShare, answeredPerS, exitCode };
}

/** The line that is rewritten while the load runs. */
export function progressLine(progress: LoadProgress, slo: Slo): string {
  const { phase, elapsedS, ratePerS, p95Ms, total } = progress;
  if (phase === "connecting") return "connecting";
  const p95 = Number.isNaN(p95Ms) ? "-" : `${p95Ms.toFixed(1)} ms`;
  const misses =
    total.planned === 0
      ? ""
      : `, ${((100 * total.ok) / total.planned).toFixed(2)} % within ${slo.boundMs} ms`;
  return `${elapsedS.toFixed(0)} s ${phase}: ${ratePerS.toFixed(1)}/s, p95 ${p95}${misses}, ${total.failed} failed`;
}

/** Lines for the terminal. */
export function renderLoad(spec: LoadSpec, result: LoadResult, slo: Slo): string {
  const verdict = judgeLoad(spec, result, slo);
  const { total, health } = result;
  const seconds = measuredS(spec, result);
  const plannedPerS = seconds === 0 ? 0 : total.planned / seconds;
  const name = `p${Number((100 * slo.quantile).toFixed(3))} <= ${slo.boundMs} ms`;
  const share = verdict.inTimeShare === null ? "-" : `${(100 * verdict.inTimeShare).toFixed(2)} %`;
  const lines: [string, string][] = [
    [
      "load",
      `${describeLoad(spec.shape)} for ${seconds.toFixed(1)} s on ${spec.modelName} at ${spec.addresses.join(", ")}`,
    ],
    [
      "requests",
      `${total.planned} planned (${plannedPerS.toFixed(1)}/s), ${result.response.count} answered ` +
        `(${verdict.answeredPerS.toFixed(1)}/s), ${total.failed} failed, ${total.shed} shed`,
    ],
    ["response", summaryText(result.response)],
    ["service", summaryText(result.service)],
    [
      "client",
      `lateness p99 ${ms(health.latenessP99Ms)}, event loop p99 ${ms(health.loopDelayP99Ms)}, ` +
        `${(100 * health.cpuShare).toFixed(0)} % of a core (busiest worker), ${health.wireMBPerS.toFixed(1)} MB/s, workers ${result.workers}${busyWaitWords(health)}`,
    ],
    ...Object.entries(result.errors).map(([kind, count]): [string, string] => [
      "error",
      `${count} x ${kind}: ${result.errorMessages?.[kind] ?? ""}`,
    ]),
    ...(Object.keys(result.perAddress).length > 1
      ? Object.entries(result.perAddress).map(([address, count]): [string, string] => [
          "replica",
          `${address} answered ${count}`,
        ])
      : []),
    ...(result.warnings ?? []).map((warning): [string, string] => ["warning", warning]),
    ...(result.stop
      ? [["stopped", `after ${result.stop.atS.toFixed(1)} s: ${result.stop.reason}`] as [string, string]]
      : []),
    ...result.invalidReasons.map((reason): [string, string] => ["invalid", reason]),
    ["SLO", `${name} ${verdict.slo === "unknown" ? "cannot be judged" : verdict.slo}: ${share} in time`],
  ];
  return lines.map(([key, text]) => `${key.padEnd(9)} ${text}\n`).join("");
}

/** JSON for programs; there is no NaN in it: what there is no percentile of is null. */
export function loadJson(spec: LoadSpec, result: LoadResult, slo: Slo): string {
  const { slo: verdict, inTimeShare, answeredPerS } = judgeLoad(spec, result, slo);
  const { knownAnswers: _, tls, shape, ...rest } = spec;
  const load = shape.kind === "recorded" ? { kind: shape.kind, arrivals: shape.atS.length } : shape;
  const document = {
    version: 1,
    spec: { ...rest, shape: load, tls: tls !== undefined },
    slo: { ...slo, verdict, inTimeShare, answeredPerS },
    result,
  };
  return `${JSON.stringify(document, null, 2)}\n`;
}

function summaryText({ count, meanMs, p50Ms, p90Ms, p95Ms, p99Ms, maxMs }: LatencySummary): string {
  if (count === 0) return "nothing was answered";
  const figures = { mean: meanMs, p50: p50Ms, p90: p90Ms, p95: p95Ms, p99: p99Ms, max: maxMs };
  return Object.entries(figures)
    .map(([key, value]) => `${key} ${ms(value)}`)
    .join(", ");
}

function ms(value: number): string {
  return Number.isNaN(value) ? "-" : `${value.toFixed(value < 10 ? 2 : 1)} ms`;
}
