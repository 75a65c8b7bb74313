/** Reads the values of the load command's own options: shapes of load, stop rules, times. */
import type { Arrivals, RateStep } from "../loadgen/load-profile";
import { defaultMinSamples, type StopRule } from "../loadgen/stop-rule";
import { sloOf, type Complaints } from "./option-values";

const number = String.raw`\d+(?:\.\d+)?`;

/** A time with its unit: 90s, 5m, 500ms, 1h; a bare number is seconds. */
export function secondsOf(
  text: string,
  option: string,
  range: { readonly min: number; readonly max: number },
  complaints: Complaints,
): number | null {
  const seconds = parseSeconds(text);
  if (seconds === null || seconds < range.min || seconds > range.max)
    return complaints.add(option, text, `give a time from ${range.min}s to ${range.max}s, e.g. 90s or 5m`);
  return seconds;
}

const unitS: Readonly<Record<string, number>> = { ms: 0.001, s: 1, m: 60, h: 3600, "": 1 };

function parseSeconds(text: string): number | null {
  const match = new RegExp(`^(${number})(ms|s|m|h|)$`).exec(text.trim());
  return match === null ? null : Number((Number(match[1]) * unitS[match[2]!]!).toPrecision(12));
}

/** A range of two numbers: 0.8..1.2, or one for both. */
export function rangeOf(
  text: string,
  option: string,
  complaints: Complaints,
): { readonly from: number; readonly to: number } | null {
  const match = new RegExp(`^(${number})(?:\\.\\.(${number}))?s?$`).exec(text.trim());
  const from = Number(match?.[1]);
  const to = match?.[2] === undefined ? from : Number(match[2]);
  if (match === null || from > to) return complaints.add(option, text, "give seconds, e.g. 0.8..1.2 or 1");
  return { from, to };
}

export interface Ramp {
  readonly fromPerS: number;
  readonly toPerS: number;
  readonly overS: number;
}

/** FROM..TO/TIME, e.g. 0..500/60s. */
export function rampOf(text: string, option: string, complaints: Complaints): Ramp | null {
  const match = new RegExp(`^(${number})\\.\\.(${number})/(.+)$`).exec(text.trim());
  const overS = parseSeconds(match?.[3] ?? "");
  const toPerS = Number(match?.[2]);
  if (match === null || overS === null || overS <= 0 || toPerS <= 0)
    return complaints.add(option, text, "give FROM..TO/TIME in requests per second, e.g. 0..500/60s");
  return { fromPerS: Number(match[1]), toPerS, overS };
}

/** RATExTIME,RATExTIME, e.g. 100x30s,200x30s. */
export function stepsOf(text: string, option: string, complaints: Complaints): readonly RateStep[] | null {
  const steps: RateStep[] = [];
  for (const word of text.split(",")) {
    const match = new RegExp(`^(${number})x(.+)$`).exec(word.trim());
    const forS = parseSeconds(match?.[2] ?? "");
    const ratePerS = Number(match?.[1]);
    if (match === null || forS === null || forS <= 0 || ratePerS <= 0)
      return complaints.add(option, word, "give RATExTIME, separated by commas, e.g. 100x30s,200x30s");
    steps.push({ ratePerS, forS });
  }
  return steps;
}

/** p95>100ms/10s: percentile, bound and window of the stop rule; its sample minimum comes apart. */
export function stopRuleOf(
  text: string,
  minSamples: number | null,
  option: string,
  complaints: Complaints,
): StopRule | null {
  const match = /^(p[\d.]+)>([\d.]+m?s)\/(.+)$/.exec(text.trim());
  const windowS = parseSeconds(match?.[3] ?? "");
  if (match === null || windowS === null || windowS < 1 || windowS > 3600)
    return complaints.add(
      option,
      text,
      "give PERCENTILE>BOUND/WINDOW, e.g. p95>100ms/10s (quote it: the shell reads >)",
    );
  const before = complaints.list.length;
  const slo = sloOf(`${match[1]}=${match[2]}`, option, complaints);
  if (slo === null || complaints.list.length > before) return null;
  return { ...slo, windowS, minSamples: minSamples ?? defaultMinSamples(slo.quantile) };
}

export const arrivalKinds: readonly Arrivals[] = ["poisson", "constant"];
