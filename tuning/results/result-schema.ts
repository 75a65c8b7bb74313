/**
 * `result.json`: the contract that other tools read. Members are only ever added within one `schemaVersion`; readers must ignore
 * those they do not know. `schemas/result.schema.json` is generated from here (`npm run schemas`).
 *
 * Rates are requests per second per replica, times are undilated (model) time, throughout.
 */
import { z } from "zod";
import { lawSchema } from "./manifest";
import { racedOutSchema } from "./raced-out-schema";

/** Name of the result in the results folder. */
export const resultFileName = "result.json";

/** Version of the layout; raised only when a member is removed or changes its meaning. */
export const resultSchemaVersion = 1;

const share = z.number().min(0).max(1);
const rate = z.number().nonnegative();

const intervalSchema = z
  .object({
    estimate: z.number(),
    low: z.number(),
    high: z.number(),
    level: share.describe("Confidence level of [low, high], e.g. 0.95."),
  })
  .describe("A two-sided confidence interval.");

const sloSchema = z.object({
  quantile: share.describe("Share of the requests that must hold the bound, e.g. 0.95."),
  boundMs: z.number().positive().describe("Bound on the response time, from the planned send, milliseconds."),
});

const trialSchema = z.object({
  purpose: z.enum(["probe", "locate", "confirm", "verify"]),
  ratePerS: rate.describe("Offered rate; with --load users the throughput."),
  users: z.number().int().nullable().describe("Users of a closed-loop trial; null for an open loop."),
  seed: z.number().int(),
  warmupS: z.number(),
  measureS: z.number(),
  planned: z.number().int().describe("Requests whose planned send lies in the measured window."),
  late: z.number().int().describe("Answered after the bound, or shed at the in-flight cap."),
  failed: z.number().int().describe("Errors, deadlines and wrong answers."),
  missShare: intervalSchema
    .nullable()
    .describe("(late + failed) / planned with its batch-means interval; null when nothing was planned."),
  quantileMs: z
    .number()
    .nullable()
    .describe("Response time at the SLO's quantile; null when nothing was answered."),
  p50Ms: z.number().nullable(),
  p95Ms: z.number().nullable(),
  p99Ms: z.number().nullable(),
  meanBatch: z.number().nullable(),
  gpuBusy: share.nullable(),
  queueMs: z.number().nullable().describe("Mean time in the server's queue per request."),
  latenessP99Ms: z.number().nullable().describe("How late the load generator sent, 99th percentile."),
  verdict: z.enum(["pass", "fail", "undecided"]),
  valid: z.boolean().describe("False: the load generator was the limit, or a worker was lost; not used."),
  reason: z.string(),
});

const diagnosisSchema = z.object({
  cause: z.enum([
    "gpu-bound",
    "cpu-bound",
    "host-bound",
    "wire-bound",
    "client-bound",
    "queue-delay",
    "memory-limit",
    "throttled",
    "conversion-noop",
    "none",
  ]),
  summary: z.string(),
  evidence: z.record(z.string(), z.string()),
  nextMove: z
    .object({
      change: z.string(),
      predictedSloRate: rate,
      predictedGain: z.number().describe("0.38 means 38 % more than today's predicted SLO rate."),
    })
    .nullable(),
});

const accuracySchema = z
  .object({
    reference: z.string().describe("Variant that its answers were compared with."),
    images: z.number().int().nullable(),
    top1Agreement: share.nullable().describe("Share of images with the same most probable class."),
    top5Agreement: share.nullable().describe("Share whose reference class is among the five most probable."),
    maxDifference: share.nullable().describe("Largest difference of a probability on any image."),
    meanDifference: share.nullable().describe("Largest difference of each image, averaged."),
    afterSoftmax: z.boolean().describe("True: the scores were no probabilities."),
    passed: z.boolean().describe("False: not measured, and no part of the ranking."),
    reasons: z.array(z.string()).describe("Why it does not pass; empty when it does."),
  })
  .describe("Comparison of its answers on held-out images; figures are null when they cannot be compared.");

const limitsSchema = z.object({
  top1Agreement: share,
  top5Agreement: share,
  maxDifference: share,
  meanDifference: share,
});

const standAloneSchema = z
  .object({
    batchSize: z
      .number()
      .int()
      .positive()
      .describe("The largest that was measured and that the variant serves."),
    imagesPerS: rate,
    latencyP95Ms: z.number().nonnegative().describe("Time of a batch, 95th percentile."),
    basis: z
      .enum(["measured", "simulated"])
      .describe(
        "`measured`: by the conversion, one caller, copies included. `simulated`: GPU phase of the simulated GPU alone; nothing was measured.",
      ),
    on: z.string().nullable().describe("What it was measured on; null when that is not known."),
    servedShare: rate
      .nullable()
      .describe("SLO rate over imagesPerS; above 1 where instances do at once what one caller does in turn."),
  })
  .describe("The artefact's speed without a server.");

const settingsSchema = z.object({
  artefact: z.string(),
  precision: z.enum(["original", "fp32", "fp16", "int8"]),
  maxBatchSize: z.number().int(),
  instanceCount: z.number().int(),
  queueDelayUs: z.number(),
  preferredBatchSizes: z.array(z.number().int()),
});

const variantSchema = z.object({
  name: z.string(),
  settings: settingsSchema,
  rank: z
    .number()
    .int()
    .positive()
    .nullable()
    .describe("1 is best; tied variants share a rank; null without an SLO rate."),
  sloRate: intervalSchema.nullable().describe("Highest rate at which the SLO holds; null when none did."),
  operatingRate: rate.nullable().describe("Rate to run at: one-sided 99 % lower bound on the SLO rate."),
  predictedSloRate: rate.nullable().describe("Predicted from the probe, before the first locating trial."),
  p95Ms: z
    .number()
    .nullable()
    .describe("Response time at the SLO's quantile (95 % by default) in the trial nearest to the SLO rate."),
  meanBatch: z.number().nullable(),
  gpuBusy: share.nullable().describe("Null when the server has no GPU metrics."),
  diagnosis: diagnosisSchema,
  published: z
    .object({
      rps: rate,
      kind: z
        .enum(["limit", "reached"])
        .describe("`reached`: a goal that was reached; the limit was not sought."),
      source: z.string(),
      gpuBusy: share.nullable(),
      ratio: z
        .number()
        .nullable()
        .describe("SLO rate over the published figure; null unless that is a limit."),
    })
    .nullable(),
  timeDilation: z.number().min(1).describe("Wall seconds per model second while this variant was measured."),
  usdPerMillion: z
    .number()
    .nullable()
    .describe("US dollars per million inferences at the operating rate; null without prices."),
  fittedLaw: lawSchema.nullable().describe("Service times fitted to the trials."),
  modelCurve: z
    .array(z.object({ ratePerS: rate, quantileMs: z.number(), meanBatch: z.number(), gpuBusy: share }))
    .nullable()
    .describe("What the fitted service model predicts by rate: for drawing. Null without a fitted model."),
  sensitivity: z
    .array(z.object({ quantile: share, boundMs: z.number().positive(), sloRate: rate.nullable() }))
    .nullable()
    .default(null)
    .describe("SLO rate for other objectives, predicted from the same trials. Null without a fitted model."),
  racedOut: racedOutSchema,
  measuredS: z.number().describe("Warm-up and measured windows of all its trials."),
  trials: z.array(trialSchema),
  accuracy: accuracySchema
    .nullable()
    .default(null)
    .describe("Null for the reference, for unconverted models, and when nothing was compared."),
  standAlone: standAloneSchema
    .nullable()
    .default(null)
    .describe("Null when there is no manifest of the artefact's conversion."),
  assumptions: z
    .array(z.string())
    .default([])
    .describe("What of its simulated service times nobody has published; empty on real hardware."),
  note: z.string().nullable(),
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
    variants: z.array(variantSchema),
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
