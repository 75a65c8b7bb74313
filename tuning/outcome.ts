/** What the sweep concludes about one variant. Rates in requests per second per replica, undilated. */
import type { VariationLaw } from "./identify/variation";
import type { ServiceLaw } from "../serving-model/service-law";
import type { SimulatedServer } from "../serving-model/simulate";
import type { Cause, TrialResult, TrialSpec, Verdict } from "./trial";

/** A two-sided interval. */
export interface Interval {
  readonly estimate: number;
  readonly low: number;
  readonly high: number;
  /** Confidence level, e.g. 0.95. */
  readonly level: number;
}

/** One trial, judged. */
export interface JudgedTrial {
  readonly spec: TrialSpec;
  readonly result: TrialResult;
  readonly verdict: Verdict;
  /** The miss share (late + failed) / planned with its batch-means interval. */
  readonly missShare: Interval;
  /** Offered load (open loop) or throughput (users), requests per second. */
  readonly ratePerS: number;
  /** Why the verdict is what it is, in one sentence. */
  readonly reason: string;
}

/** A configuration change and what the fitted model predicts from it. */
export interface NextMove {
  /** In words, e.g. "2 instances instead of 1". */
  readonly change: string;
  readonly predictedSloRate: number;
  /** predictedSloRate / today's predicted SLO rate - 1. */
  readonly predictedGain: number;
}

export interface Diagnosis {
  readonly cause: Cause;
  /** One or two sentences for a person. */
  readonly summary: string;
  /** Figures that support it, e.g. {"GPU busy": "43 %", "mean batch": "42.6 of 64"}. */
  readonly evidence: Readonly<Record<string, string>>;
  readonly nextMove: NextMove | null;
}

/** Why a variant's search was ended before its interval was narrow: it is clearly worse than the best one so far. */
export interface RacedOut {
  /** The best variant so far, and the lower end of its interval, requests/s. */
  readonly leader: string;
  readonly leaderAtLeastPerS: number;
  /** One-sided upper bound of this variant's SLO rate, requests/s, and its level. */
  readonly atMostPerS: number;
  readonly level: number;
}

export interface VariantOutcome {
  readonly variantName: string;
  /** Null when no rate held the SLO, or when no trial was valid; `note` then says why. */
  readonly sloRate: Interval | null;
  /** Rate to run at: one-sided 99 % lower bound on the SLO rate. */
  readonly operatingRate: number | null;
  /** Predicted before the first locating trial, from the probe. */
  readonly predictedSloRate: number | null;
  /** Response-time percentile of the SLO's quantile at the SLO rate, milliseconds. */
  readonly p95Ms: number | null;
  readonly meanBatch: number | null;
  readonly gpuBusy: number | null;
  /** Fitted from the trials. */
  readonly fittedLaw: ServiceLaw | null;
  /** Constant part of the response time outside the node that goes with `fittedLaw`, milliseconds; absent: 0. */
  readonly fittedOverheadMs?: number;
  /** How the phase times vary that go with `fittedLaw`; absent: hardly. */
  readonly fittedVariation?: VariationLaw;
  readonly diagnosis: Diagnosis;
  readonly trials: readonly JudgedTrial[];
  readonly note: string | null;
  /** Its search was ended early, and `sloRate` is rougher than otherwise; absent: it was not. */
  readonly racedOut?: RacedOut;
  /** Why it was not measured and takes no part in the ranking; absent: it was. */
  readonly excluded?: string;
}

/** Outcome of a variant that is not to be measured. */
export function excludedOutcome(variantName: string, reason: string): VariantOutcome {
  return {
    variantName,
    sloRate: null,
    operatingRate: null,
    predictedSloRate: null,
    p95Ms: null,
    meanBatch: null,
    gpuBusy: null,
    fittedLaw: null,
    diagnosis: { cause: "none", summary: reason, evidence: {}, nextMove: null },
    trials: [],
    note: reason,
    excluded: reason,
  };
}

/** Outside knowledge about the system under test that the search and the diagnosis may use. */
export interface SystemFacts {
  /** Known ceiling of the path between load generator and server, requests per second; null when unknown. */
  readonly wireCeilingPerS: number | null;
  /** How the server makes its batches; see SimulatedServer. Default: as the simulated T4 does, `idle`. */
  readonly scheduler?: SimulatedServer["scheduler"];
  /** What infers: words of diagnosis and report. Default `gpu`. */
  readonly processor?: "gpu" | "cpu";
  /** Largest rate that may be offered, requests per second undilated (--max-rate, or what a stack's load workers are made for); null: any. */
  readonly clientCeilingPerS: number | null;
}

/** Thrown into a strategy in place of a result: there will be no more trials, and it returns what it knows. */
export class SearchStopped extends Error {
  override readonly name = "SearchStopped";
}

/**
 * A search strategy: yields the next trial and is fed its result; returns the outcome. Pure: no clock, no socket.
 * A trial that stayed invalid after its retries is fed as null.
 */
export type SearchStrategy = Generator<TrialSpec, VariantOutcome, TrialResult | null>;
