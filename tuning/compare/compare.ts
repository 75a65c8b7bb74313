/**
 * Whether a later sweep is better or worse than an earlier one, beyond what chance explains. Intervals, not estimates, decide: two sweeps
 * of the same system differ by a per cent or so, and a gate that fails on that is switched off after a week. Pure.
 */
import type { Interval } from "../outcome";
import type { Result, ResultVariant } from "../results/result-schema";
import { isUnmeasured } from "../results/unmeasured";
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
  /** Why the rates alone do not decide, or are missing, in a few words; null when they decide. */
  readonly remark: string | null;
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
  const later = new Map(after.variants.map((variant) => [variant.name, variant]));
  const pairs = measured(before).flatMap((variant) => {
    const other = later.get(variant.name);
    return other === undefined || !(isMeasured(other) || isWrong(other)) ? [] : [{ variant, other }];
  });
  // Bonferroni: with seven variants one in three comparisons of equal sweeps would else find a difference.
  const level = 1 - falseAlarm / Math.max(1, pairs.length);
  const variants = pairs.map(({ variant, other }) => compareVariant(variant, other, level));
  const verdicts = variants.map(({ verdict }) => verdict);
  const names = (result: Result): string[] => measured(result).map(({ name }) => name);
  const compared = pairs.map(({ variant }) => variant.name);
  return {
    verdict: verdicts.includes("worse") ? "worse" : verdicts.includes("better") ? "better" : "no evidence",
    variants,
    onlyBefore: names(before).filter((name) => !compared.includes(name)),
    onlyAfter: names(after).filter((name) => !compared.includes(name)),
    recommended: { before: before.recommendation.variant, after: after.recommendation.variant },
    falseAlarm,
  };
}

function measured(result: Result): readonly ResultVariant[] {
  return result.variants.filter(isMeasured);
}

function isMeasured({ trials }: ResultVariant): boolean {
  return trials.length > 0;
}

/** It was not measured because its answers differ too much from the unconverted model's. */
function isWrong({ accuracy }: ResultVariant): boolean {
  return accuracy?.passed === false;
}

/** The rate is what the load generator could offer: the server holds as much, and perhaps more. */
function isAtLeast({ diagnosis }: ResultVariant): boolean {
  return diagnosis.cause === "client-bound";
}

function compareVariant(before: ResultVariant, after: ResultVariant, level: number): VariantComparison {
  const { cause } = before.diagnosis;
  const common = {
    name: before.name,
    before: before.sloRate?.estimate ?? null,
    after: after.sloRate?.estimate ?? null,
    causes:
      cause === after.diagnosis.cause || isUnmeasured(before) || isUnmeasured(after) || isWrong(after)
        ? null
        : { before: cause, after: after.diagnosis.cause },
  };
  if (isWrong(after))
    return { ...common, verdict: "worse", ratio: null, remark: "its answers are wrong now" };
  for (const [variant, when] of [
    [before, "before"],
    [after, "after"],
  ] as const)
    if (isUnmeasured(variant))
      return {
        ...common,
        verdict: "no evidence",
        ratio: null,
        remark: `not known ${when}: no valid trial near its limit`,
      };
  if (!before.sloRate || !after.sloRate) {
    const verdict = before.sloRate ? "worse" : after.sloRate ? "better" : "no evidence";
    return { ...common, verdict, ratio: null, remark: null };
  }
  const ratio = ratioOf(before.sloRate, after.sloRate, level);
  const verdict = ratio.low > 1 ? "better" : ratio.high < 1 ? "worse" : "no evidence";
  // Who may hold more than it was offered is not surpassed by more, and not worse for being offered less.
  const hidden = verdict === "better" ? isAtLeast(before) : verdict === "worse" && isAtLeast(after);
  if (!hidden) return { ...common, ratio, verdict, remark: null };
  const remark = `${verdict === "better" ? "before" : "after"} it may hold more than could be offered`;
  return { ...common, ratio, verdict: "no evidence", remark };
}

function ratioOf(before: Interval, after: Interval, level: number): Interval {
  const [first, second] = [widthsAt(before, level), widthsAt(after, level)];
  const estimate = after.estimate / before.estimate;
  // It is smallest where the rate before was higher and the rate after lower than estimated.
  const below = Math.max(leastDifference, Math.hypot(first.above, second.below));
  const above = Math.max(leastDifference, Math.hypot(first.below, second.above));
  return { estimate, low: estimate * Math.exp(-below), high: estimate * Math.exp(above), level };
}

/** Widths (ln) of the interval to either side of its estimate at another level: errors of ln rate are about normal. */
function widthsAt(
  { estimate, low, high, level }: Interval,
  wanted: number,
): { readonly below: number; readonly above: number } {
  const widening = normalQuantile(0.5 + wanted / 2) / normalQuantile(0.5 + level / 2);
  return { below: Math.log(estimate / low) * widening, above: Math.log(high / estimate) * widening };
}
