/** Kinds of figures in `result.json`. */
import { z } from "zod";

/** A share of one. */
export const share = z.number().min(0).max(1);
/** Requests per second per replica, undilated. */
export const rate = z.number().nonnegative();

export const intervalSchema = z
  .object({
    estimate: z.number(),
    low: z.number(),
    high: z.number(),
    level: share.describe("Confidence level of [low, high], e.g. 0.95."),
  })
  .describe("A two-sided confidence interval.");
