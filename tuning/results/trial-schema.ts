/**
 * Schemas of the trial's contracts, for reading points back. Unknown members are kept, so that a log written by a newer version
 * survives a round trip. Figures that JSON cannot carry (NaN, infinities) are written as their names.
 */
import { z } from "zod";
import type { Variant } from "../../model-repo/variant";
import type { Slo, TrialResult, TrialSpec } from "../trial";

/** A number, or the name of one that JSON lacks. */
const figure = z.union([z.number(), z.enum(["NaN", "Infinity", "-Infinity"]).transform(Number)]);
const count = z.number().int().nonnegative();

/** Replacer for JSON.stringify that `figure` reads back. */
export function namedNonFinite(_name: string, value: unknown): unknown {
  return typeof value === "number" && !Number.isFinite(value) ? String(value) : value;
}

const tensorSchema = z.looseObject({
  name: z.string(),
  type: z.enum(["FP32", "UINT8"]),
  dims: z.array(z.number().int()),
  format: z.enum(["FORMAT_NHWC", "FORMAT_NCHW"]).nullable(),
});

export const publishedSchema = z.looseObject({
  rps: z.number(),
  kind: z.enum(["limit", "reached"]),
  gpuBusy: z.number().nullable(),
  source: z.string(),
});

// Typed by the contract, not by zod's inference: its index signatures would make every reader cast.
export const variantSchema: z.ZodType<Variant> = z.looseObject({
  name: z.string(),
  artefact: z.looseObject({
    name: z.string(),
    platform: z.enum(["tensorflow_savedmodel", "tensorrt_plan", "onnxruntime_onnx", "other"]),
    precision: z.enum(["original", "fp32", "fp16", "int8"]),
    builtMaxBatchSize: z.number().int().nullable(),
    input: tensorSchema,
    output: tensorSchema,
    labelsFile: z.string().nullable(),
  }),
  maxBatchSize: z.number().int(),
  instanceCount: z.number().int(),
  queueDelayUs: z.number(),
  preferredBatchSizes: z.array(z.number().int()),
  published: publishedSchema.nullable(),
});

const shapeSchema = z.discriminatedUnion("kind", [
  z.looseObject({ kind: z.literal("poisson"), ratePerS: z.number() }),
  z.looseObject({ kind: z.literal("constant"), ratePerS: z.number() }),
  z.looseObject({
    kind: z.literal("users"),
    users: z.number(),
    spawnPerS: figure,
    thinkMinS: z.number(),
    thinkMaxS: z.number(),
  }),
]);

export const sloSchema: z.ZodType<Slo> = z.looseObject({
  quantile: z.number().gt(0).lt(1),
  boundMs: z.number().positive(),
});

export const trialSpecSchema = z.looseObject({
  variant: variantSchema,
  shape: shapeSchema,
  slo: sloSchema,
  seed: z.number(),
  warmupS: z.number(),
  measureS: z.number(),
  purpose: z.enum(["probe", "locate", "confirm", "verify"]),
}) satisfies z.ZodType<TrialSpec>;

const counts = { planned: count, ok: count, late: count, failed: count, shed: count };

const latencySchema = z.looseObject({
  count,
  meanMs: figure,
  p50Ms: figure,
  p90Ms: figure,
  p95Ms: figure,
  p99Ms: figure,
  maxMs: figure,
});

const loadResultSchema = z.looseObject({
  id: z.string(),
  valid: z.boolean(),
  invalidReasons: z.array(z.string()),
  intervalS: z.number(),
  intervals: z.array(
    z.looseObject({ ...counts, index: count, responseSumMs: figure, answered: count, inFlight: z.number() }),
  ),
  total: z.looseObject(counts),
  response: latencySchema,
  service: latencySchema,
  responseHistogram: z.array(z.tuple([z.number(), z.number()])),
  health: z.looseObject({
    latenessP99Ms: figure,
    loopDelayP99Ms: figure,
    cpuShare: figure,
    wireMBPerS: figure,
    achievedShare: figure,
  }),
  errors: z.record(z.string(), z.number()),
  perAddress: z.record(z.string(), z.number()),
  workers: z.number().int(),
  measuredFromUnixMs: z.number(),
  measuredToUnixMs: z.number(),
});

const reported = figure.nullable();

export const trialResultSchema = z.looseObject({
  load: loadResultSchema,
  server: z.looseObject({
    meanBatch: reported,
    queueMs: reported,
    computeInputMs: reported,
    computeInferMs: reported,
    computeOutputMs: reported,
    gpuBusy: reported,
    gpuMemoryUsedBytes: reported,
    gpuPowerW: reported,
    gpuMemoryTotalBytes: reported.optional(),
    gpuPowerLimitW: reported.optional(),
    batchSizes: z.record(z.string(), z.number()).nullable(),
  }),
}) satisfies z.ZodType<TrialResult>;
