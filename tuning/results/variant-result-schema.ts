/** What `result.json` says about one variant: its rates, why they are what they are, and its trials. */
import { z } from "zod";
import { intervalSchema, rate, share } from "./figure-schemas";
import { lawSchema } from "./manifest";
import { racedOutSchema } from "./raced-out-schema";

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
export const variantResultSchema = z.object({
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
  warmUp: z
    .object({
      seconds: z.number().nonnegative(),
      windows: z.number().int().positive(),
      firstP95Ms: z.number().nullable(),
      lastP95Ms: z.number().nullable(),
      settled: z.boolean().describe("False: it was given up, and measured as it was."),
    })
    .nullable()
    .default(null)
    .describe(
      "Short loads until a server without model_warmup was as fast as it stays. Null where the configuration has one, the server is " +
        "simulated, or all trials are those of an earlier run.",
    ),
  assumptions: z
    .array(z.string())
    .default([])
    .describe("What of its simulated service times nobody has published; empty on real hardware."),
  note: z.string().nullable(),
});
