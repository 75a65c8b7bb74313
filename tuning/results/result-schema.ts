/**
 * `result.json`: the contract that other tools read. Members are only ever added within one `schemaVersion`; readers must ignore
 * those they do not know. `schemas/result.schema.json` is generated from here (`npm run schemas`).
 *
 * Rates are requests per second per replica, times are undilated (model) time, throughout.
 */
import { z } from "zod";
import { intervalSchema, rate, share } from "./figure-schemas";
import { variantResultSchema } from "./variant-result-schema";

/** Name of the result in the results folder. */
export const resultFileName = "result.json";

/** Version of the layout; raised only when a member is removed or changes its meaning. */
export const resultSchemaVersion = 1;
const sloSchema = z.object({
  quantile: share.describe("Share of the requests that must hold the bound, e.g. 0.95."),
  boundMs: z.number().positive().describe("Bound on the response time, from the planned send, milliseconds."),
});
const limitsSchema = z.object({
  top1Agreement: share,
  top5Agreement: share,
  maxDifference: share,
  meanDifference: share,
});
export const resultSchema = z
  .object({
    schemaVersion: z.literal(resultSchemaVersion),
    project: z.object({ name: z.string(), version: z.string() }),
    target: z.string().describe("`local`, `stack:NAME` or the server's address."),
    targetDescription: z.string(),
    processor: z
      .enum(["gpu", "cpu"])
      .default("gpu")
      .describe("What infers. `cpu`: gpuBusy is null, and figures of the GPU phase are the CPU's."),
    simulated: z.boolean().describe("True: service times come from a model of the GPU, not from hardware."),
    timeDilation: z.number().min(1).describe("Largest factor used for any variant; 1 means real time."),
    slo: sloSchema,
    load: z.enum(["poisson", "constant", "users"]),
    seed: z.number().int(),
    startedAt: z.iso.datetime(),
    elapsedS: z.number().nonnegative().describe("Wall-clock seconds of the run that wrote this file."),
    percentileRule: z.string().describe("How percentiles are read off."),
    endedEarly: z.string().nullable().describe("Why variants are missing; null when the sweep is complete."),
    missingVariants: z.array(z.string()).describe("Asked for, but without an outcome."),
    variants: z.array(variantResultSchema),
    recommendation: z.object({
      variant: z.string().nullable().describe("Null when no variant held the SLO."),
      reason: z.string(),
      tiedWith: z.array(z.string()).describe("Variants whose interval overlaps that of the best."),
    }),
    goal: z
      .object({
        ratePerS: rate,
        answer: z
          .enum(["yes", "no", "uncertain"])
          .describe("`yes` by the operating rate, `no` by the interval's upper end."),
        variant: z.string().nullable().describe("The variant to take."),
        reachedBy: z.array(z.string()).describe("All variants that reach it for sure, most room first."),
        room: z.number().nullable().describe("Operating rate over goal, less one."),
        summary: z.string(),
      })
      .nullable()
      .describe("Answer to --goal-rate; null without one."),
    accuracy: z
      .object({
        reference: z.string(),
        images: z.number().int(),
        imagesHash: z.string(),
        limits: z.object({ fp32: limitsSchema, fp16: limitsSchema, int8: limitsSchema }),
      })
      .nullable()
      .default(null)
      .describe(
        "What conversions were compared with, and how far they may differ; null when nothing was compared.",
      ),
    price: z
      .object({
        usdPerReplicaHour: z
          .number()
          .nonnegative()
          .describe("One replica with its node, US dollars an hour."),
        asOf: z.string().describe("Month of the price table."),
      })
      .nullable(),
    exploration: z
      .object({
        proposals: z.array(
          z.object({
            variant: z.string(),
            predictedSloRate: rate.describe("Before it was measured, requests per second."),
            sloRate: rate.nullable().describe("As measured; null: it has none."),
          }),
        ),
        simulated: z
          .number()
          .int()
          .nonnegative()
          .describe("Configurations that were looked at in simulation."),
        ended: z.string().describe("Why no more were proposed."),
      })
      .nullable()
      .default(null)
      .describe("Configurations that nobody wrote down (--explore); null without."),
    scaling: z
      .array(
        z.object({
          replicas: z.number().int().min(2),
          sloRate: intervalSchema.describe("Requests per second of all of them together."),
          factor: rate.describe("sloRate over that of one replica; `replicas` if rates add up."),
        }),
      )
      .default([])
      .describe(
        "What several replicas of the recommended variant hold; empty unless --replicas asked for it.",
      ),
    cost: z
      .object({
        usd: z
          .number()
          .nonnegative()
          .describe(
            "What the run that wrote this file cost: all machines of the stack, US dollars at list prices.",
          ),
        usdPerHour: z.number().nonnegative(),
        maxUsd: z.number().positive().describe("Limit of --max-cost."),
        asOf: z.string().describe("Month of the price table."),
      })
      .nullable()
      .default(null)
      .describe("Null where no machines are paid for by the hour."),
    notes: z.array(z.string()),
  })
  .meta({ title: "Result of an SLO sweep", description: "What `npm run tune` writes to result.json." });

/** The content of result.json. */
export type Result = z.infer<typeof resultSchema>;
export type ResultVariant = Result["variants"][number];
export type ResultTrial = ResultVariant["trials"][number];

/** The JSON schema (draft 2020-12) of result.json, as text for a file. */
export function resultJsonSchema(): string {
  const schema = z.toJSONSchema(resultSchema, { target: "draft-2020-12", io: "input" });
  return JSON.stringify(schema, null, 2) + "\n";
}
