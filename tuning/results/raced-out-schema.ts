/** What `result.json` says about a variant whose search was ended by a race. */
import { z } from "zod";

export const racedOutSchema = z
  .object({
    leader: z.string().describe("The best variant when it was given up."),
    leaderAtLeastPerS: z
      .number()
      .nonnegative()
      .describe("Lower end of the interval of the leader's SLO rate."),
    atMostPerS: z.number().nonnegative().describe("One-sided upper bound of this variant's SLO rate."),
    level: z.number().min(0).max(1).describe("Level of that bound."),
  })
  .nullable()
  .default(null)
  .describe("Its search was ended early, being clearly worse than the leader; null when it was not.");
