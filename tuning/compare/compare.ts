/**
 * Whether a later sweep is better or worse than an earlier one, beyond what chance explains. Intervals, not estimates, decide: two sweeps
 * of the same system differ by a per cent or so, and a gate that fails on that is switched off after a week. Pure.
 */
import type { Interval } from "../outcome";
import type { Result, ResultVariant } from "../results/result-schema";
import { normalQuantile } from "../statistics/special";

export type CompareVerdict = "better" | "worse" | "no evidence";

export interface VariantComparison {
  readonly name: string;
  readonly verdict: CompareVerdict;
  /** SLO rates, requests/s; null: the SLO held at no rate. */
  readonly before: number | null;
  readonly after: number | null;
  /** after / before with its interval; null where one of them is. */
  readonly ratio: Interval | null;
  /** The diagnosed causes, when they differ. */
  readonly causes: { readonly before: string; readonly after: string } | null;
}

export interface Comparison {
  /** `worse` if any variant is, else `better` if any is. */
  readonly verdict: CompareVerdict;
  readonly variants: readonly VariantComparison[];
  /** Measured in one of the sweeps only. */
  readonly onlyBefore: readonly string[];
  readonly onlyAfter: readonly string[];
  /** Recommended variants. */
  readonly recommended: { readonly before: string | null; readonly after: string | null };
  /** Probability of calling any variant better or worse although none changed. */
  readonly falseAlarm: number;
}

/** What can be wrong with the two results: then they are not compared. */
export function incomparable(before: Result, after: Result): readonly string[] {
  const sentences: string[] = [];
  if (before.slo.quantile !== after.slo.quantile || before.slo.boundMs !== after.slo.boundMs)
    sentences.push("they have different SLOs: the rates mean different things");
  if (before.load !== after.load)
    sentences.push(
      `one was loaded by ${before.load}, the other by ${after.load}: the rates mean different things`,
    );
  if (before.simulated !== after.simulated)
    sentences.push("one was measured on a simulated GPU, the other was not");
  return sentences;
}

/** Default probability of a false alarm over all variants together. */
export const defaultFalseAlarm = 0.05;
/** Two sweeps of the same system on another day differ by this much even if both intervals are narrower (half width, relative). */
export const leastDifference = 0.01;

/** @param falseAlarm probability of calling any variant better or worse although none changed, 0 .. 1 */
export function compareResults(before: Result, after: Result, falseAlarm = defaultFalseAlarm): Comparison {
  const later = new Map(measured(after).map((variant) => [variant.name, variant]));
  const pairs = measured(before).flatMap((variant) => {
    const other = later.get(variant.name);
    return other === undefined ? [] : [{ variant, other }];
  });
  // Bonferroni: with seven variants one in three comparisons of equal sweeps would else find a difference.
  const level = 1 - falseAlarm / Math.max(1, pairs.length);
  const variants = pairs.map(({ variant, other }) => compareVariant(variant, other, level));
  const verdicts = variants.map(({ verdict }) => verdict);
  const names = (result: Result): string[] => measured(result).map(({ name }) => name);
  return {
    verdict: verdicts.includes("worse") ? "worse" : verdicts.includes("better") ? "better" : "no evidence",
    variants,
    onlyBefore: names(before).filter((name) => !names(after).includes(name)),
    onlyAfter: names(after).filter((name) => !names(before).includes(name)),
    recommended: { before: before.recommendation.variant, after: after.recommendation.variant },
    falseAlarm,
  };
}

function measured(result: Result): readonly ResultVariant[] {
  return result.variants.filter(({ trials }) => trials.length > 0);
}

function compareVariant(before: ResultVariant, after: ResultVariant, level: number): VariantComparison {
  const { cause } = before.diagnosis;
  const common = {
    name: before.name,
    before: before.sloRate?.estimate ?? null,
    after: after.sloRate?.estimate ?? null,
    causes: cause === after.diagnosis.cause ? null : { before: cause, after: after.diagnosis.cause },
  };
  if (!before.sloRate || !after.sloRate) {
    const verdict = before.sloRate ? "worse" : after.sloRate ? "better" : "no evidence";
    return { ...common, verdict, ratio: null };
  }
  const estimate = after.sloRate.estimate / before.sloRate.estimate;
  const half = Math.max(
    leastDifference,
    Math.hypot(halfWidthAt(before.sloRate, level), halfWidthAt(after.sloRate, level)),
  );
  const ratio = { estimate, low: estimate * Math.exp(-half), high: estimate * Math.exp(half), level };
  return { ...common, ratio, verdict: ratio.low > 1 ? "better" : ratio.high < 1 ? "worse" : "no evidence" };
}

/** Half width (ln) of the interval at another level: errors of ln rate are about normal. */
function halfWidthAt({ low, high, level }: Interval, wanted: number): number {
  const widening = normalQuantile(0.5 + wanted / 2) / normalQuantile(0.5 + level / 2);
  return (Math.log(high / low) / 2) * widening;
}
