/**
 * "Stop when the 95 % of the last N seconds exceeds the bound": watching the chart and pressing Stop, made exact. Pure: it is fed the merged
 * reports of all workers and asked once a second.
 */
import type { SparseHistogram } from "./histogram";
import { SlidingWindow, type WindowContent } from "./sliding-window";

export interface StopRule {
  /** E.g. 0.95. */
  readonly quantile: number;
  /** Milliseconds of model time. */
  readonly boundMs: number;
  /** Length of the window, model seconds. */
  readonly windowS: number;
  /** Requests that the window must hold before it is judged: the percentile of few says nothing. */
  readonly minSamples: number;
}

/** One look at the window. */
export interface WindowReading {
  /** End of the window, model seconds since the load's start. */
  readonly atS: number;
  /** Ended requests per second. */
  readonly ratePerS: number;
  /** The rule's quantile, milliseconds; null when so many failed or were shed that it is one of those: beyond any time. */
  readonly quantileMs: number | null;
}

/** Why the load was stopped: the last window that held and the first that did not. */
export interface StopFinding {
  readonly rule: StopRule;
  /** Null: no window held before. */
  readonly lastGood: WindowReading | null;
  readonly firstBad: WindowReading;
}

/** Ten requests beyond the quantile, or the reading is one of chance. */
export function defaultMinSamples(quantile: number): number {
  return Math.ceil(10 / (1 - quantile) - 1e-9);
}

/** What a report adds to the window. */
export interface StopRuleReport {
  readonly response: SparseHistogram;
  /** Failed and shed requests: beyond every bound. */
  readonly lost: number;
}

export class StopRuleWatch {
  private readonly window: SlidingWindow;
  private sinceS: number | undefined;
  private lastGood: WindowReading | null = null;

  constructor(private readonly rule: StopRule) {
    this.window = new SlidingWindow(rule.windowS, 0);
  }

  /** @param atS model time of the report */
  add({ response, lost }: StopRuleReport, atS: number): void {
    if (response.counts.length === 0 && lost === 0) return;
    this.sinceS ??= atS - 1;
    this.window.add(response, atS, lost);
  }

  /** The finding, if the window that ends now is beyond the bound. */
  check(nowS: number): StopFinding | undefined {
    const { rule } = this;
    const { response, lost } = this.window.read(nowS);
    const samples = response.count + lost;
    if (samples < rule.minSamples || this.sinceS === undefined) return undefined;
    const spanS = Math.max(1, Math.min(rule.windowS, nowS - this.sinceS));
    const reading: WindowReading = {
      atS: nowS,
      ratePerS: samples / spanS,
      quantileMs: quantileMs(response, lost, rule.quantile),
    };
    if (reading.quantileMs !== null && reading.quantileMs <= rule.boundMs) {
      this.lastGood = reading;
      return undefined;
    }
    return { rule, lastGood: this.lastGood, firstBad: reading };
  }
}

/** Quantile over answered and lost requests; lost ones lie beyond all times. */
function quantileMs(response: WindowContent["response"], lost: number, quantile: number): number | null {
  const rank = quantile * (response.count + lost);
  // A share that misses 1 only by rounding is 1.
  const share = rank / response.count;
  return share > 1 + 1e-9 ? null : response.percentileUs(Math.min(1, share)) / 1000;
}

/** In one sentence. */
export function describeStop({ rule, lastGood, firstBad }: StopFinding): string {
  const name = `p${Number((rule.quantile * 100).toFixed(3))}`;
  const value = firstBad.quantileMs === null ? "beyond all times" : `${firstBad.quantileMs.toFixed(1)} ms`;
  const good =
    lastGood === null
      ? "no window before it held"
      : `the last window that held had ${lastGood.ratePerS.toFixed(1)} requests/s at ${lastGood.quantileMs?.toFixed(1)} ms`;
  return (
    `${name} of the last ${rule.windowS} s was ${value} at ${firstBad.ratePerS.toFixed(1)} requests/s ` +
    `(bound ${rule.boundMs} ms); ${good}`
  );
}
