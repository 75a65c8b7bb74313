/** How far a conversion's answers may lie from the reference's, by precision. */
import { z } from "zod";
import type { Precision } from "../../model-repo/variant";
import type { AccuracyFigures } from "./compare";

const share = z.number().min(0).max(1);

export const accuracyLimitsSchema = z.strictObject({
  /** Least share of images with the same most probable class. */
  top1Agreement: share,
  /** Least share of images whose reference class is among the five most probable ones. */
  top5Agreement: share,
  /** Largest difference of a probability on any image. */
  maxDifference: share,
  /** Largest mean over the images of their largest difference. */
  meanDifference: share,
});

export type AccuracyLimits = Readonly<z.infer<typeof accuracyLimitsSchema>>;

/** Precisions that conversions have; the unconverted model is the reference and has no limits. */
export type ConvertedPrecision = Exclude<Precision, "original">;

export type LimitsByPrecision = Readonly<Record<ConvertedPrecision, AccuracyLimits>>;

/**
 * Wide enough for a good conversion on a few dozen photographs, where one near tie that falls the other way is 4 % of the images;
 * narrow enough for wrong colours, a wrong layout, wrong scaling or a broken calibration, which change most answers. A choice of this
 * project, not a published standard (MLPerf, for one, asks for 99 % of the reference's accuracy on 50,000 images).
 */
export const defaultLimits: LimitsByPrecision = {
  fp32: { top1Agreement: 0.99, top5Agreement: 0.99, maxDifference: 0.02, meanDifference: 0.005 },
  fp16: { top1Agreement: 0.95, top5Agreement: 0.99, maxDifference: 0.1, meanDifference: 0.02 },
  int8: { top1Agreement: 0.85, top5Agreement: 0.95, maxDifference: 0.6, meanDifference: 0.15 },
};

const fileSchema = z.strictObject(
  Object.fromEntries(
    Object.keys(defaultLimits).map((precision) => [precision, accuracyLimitsSchema.partial().optional()]),
  ) as Record<ConvertedPrecision, z.ZodOptional<ReturnType<typeof accuracyLimitsSchema.partial>>>,
);

/**
 * Limits of a user's: what is left out stays at its default.
 * @param content parsed YAML or JSON, e.g. { int8: { top1Agreement: 0.9 } }
 * @throws ZodError naming every wrong key
 */
export function limitsFrom(content: unknown): LimitsByPrecision {
  const given = fileSchema.parse(content);
  const merged = (precision: ConvertedPrecision): AccuracyLimits => ({
    ...defaultLimits[precision],
    ...Object.fromEntries(Object.entries(given[precision] ?? {}).filter(([, value]) => value !== undefined)),
  });
  return { fp32: merged("fp32"), fp16: merged("fp16"), int8: merged("int8") };
}

/** Why the figures do not pass, a sentence a limit; empty when they do. */
export function violations(figures: AccuracyFigures, limits: AccuracyLimits): string[] {
  const atLeast = (name: string, value: number, least: number): string[] =>
    value >= least ? [] : [`${name} ${percent(value)}, at least ${percent(least)} is asked for`];
  const atMost = (name: string, value: number, most: number): string[] =>
    value <= most ? [] : [`${name} ${value.toFixed(4)}, at most ${most} is allowed`];
  return [
    ...atLeast("top-1 agreement", figures.top1Agreement, limits.top1Agreement),
    ...atLeast("top-5 agreement", figures.top5Agreement, limits.top5Agreement),
    ...atMost("largest difference of a probability", figures.maxDifference, limits.maxDifference),
    ...atMost("mean difference of probabilities", figures.meanDifference, limits.meanDifference),
  ];
}

function percent(value: number): string {
  return `${(100 * value).toFixed(1)} %`;
}
