/** Outcomes and their circumstances -> the content of result.json. Pure. */
import type { StandAloneSpeed } from "../../model-repo/stand-alone-speed";
import type { Variant } from "../../model-repo/variant";
import { usdPerMillionInferences } from "../../pricing/cost";
import type { AccuracyVerdict } from "../accuracy/gate";
import type { SystemFacts, VariantOutcome } from "../outcome";
import type { Exploration } from "../explore/explore";
import type { Scaling } from "../scaling";
import type { Slo } from "../trial";
import { unsettledNote, type WarmUp } from "../warm-up";
import { answerGoal } from "./goal";
import { lawToJson, withoutCredentials } from "./manifest";
import { modelCurve } from "./model-curve";
import { busyShare, describeTrial } from "./result-trial";
import { sensitivityOf } from "./sensitivity";
import { rank, type Candidate } from "./ranking";
import { describeStandAlone, withStandAlone } from "./stand-alone";
import { resultSchema, resultSchemaVersion, type Result, type ResultVariant } from "./result-schema";

/** What a result says beside the outcomes. */
export interface ResultContext {
  readonly project: Result["project"];
  /** `local`, `stack:NAME` or the server's address. */
  readonly target: string;
  readonly targetDescription: string;
  readonly simulated: boolean;
  readonly slo: Slo;
  readonly load: Result["load"];
  readonly seed: number;
  readonly startedAt: Date;
  readonly elapsedS: number;
  /** All variants that were asked for, in the order to show them. */
  readonly variants: readonly Variant[];
  /** Wall seconds per model second used for a variant. */
  readonly timeDilationOf: (variant: Variant) => number;
  /** Requests per second asked for with --goal-rate; null without. */
  readonly goalRatePerS: number | null;
  /** Price of one replica with its node; null when no prices are given. */
  readonly price: Result["price"];
  /** What was proposed beyond the variants that were asked for. Default: nothing was looked for. */
  readonly exploration?: Exploration | null;
  /** What several replicas of the recommended variant hold together. Default: not measured. */
  readonly scaling?: readonly Scaling[];
  /** What the sweep cost. Default: nothing was paid for. */
  readonly cost?: Result["cost"];
  /** Why variants are missing; null when the sweep is complete. */
  readonly endedEarly: string | null;
  readonly notes: readonly string[];
  /** What conversions were compared with; null or absent: nothing was compared. */
  readonly accuracy?: Result["accuracy"];
  readonly accuracyOf?: (variant: Variant) => AccuracyVerdict | null;
  /** How the server makes its batches. Default: as the simulated T4 does. */
  readonly scheduler?: SystemFacts["scheduler"];
  /** What infers. Default `gpu`. */
  readonly processor?: Result["processor"];
  /** What of a variant's simulated service times is assumed. Default: nothing. */
  readonly assumptionsOf?: (variant: Variant) => readonly string[];
  /** Speed of a variant's artefact without a server. Default: not known. */
  readonly standAloneOf?: (variant: Variant) => StandAloneSpeed | null;
  /** How the variant's server became warm. Default: nobody had to watch. */
  readonly warmUpOf?: (variant: Variant) => WarmUp | null;
}

/**
 * @throws Error when an outcome belongs to no variant of the context; ZodError when an outcome breaks the contract (e.g. a rate
 * that is not a number)
 */
export function buildResult(outcomes: readonly VariantOutcome[], context: ResultContext): Result {
  const byName = new Map(outcomes.map((outcome) => [outcome.variantName, outcome]));
  const stray = outcomes.find(
    (outcome) => !context.variants.some((variant) => variant.name === outcome.variantName),
  );
  if (stray)
    throw new Error(`there is an outcome of ${stray.variantName}, which is not a variant of this sweep`);
  const candidates: Candidate[] = context.variants.flatMap((variant) => {
    const outcome = byName.get(variant.name);
    return outcome ? [{ variant, outcome }] : [];
  });
  const ranking = rank(candidates);
  const variants = candidates.map((candidate) =>
    describeVariant(candidate, ranking.ranks.get(candidate.variant.name) ?? null, context),
  );
  return resultSchema.parse({
    schemaVersion: resultSchemaVersion,
    project: context.project,
    target: withoutCredentials(context.target),
    targetDescription: withoutCredentials(context.targetDescription),
    processor: context.processor ?? "gpu",
    simulated: context.simulated,
    timeDilation: Math.max(1, ...variants.map((variant) => variant.timeDilation)),
    slo: { quantile: context.slo.quantile, boundMs: context.slo.boundMs },
    load: context.load,
    seed: context.seed,
    startedAt: context.startedAt.toISOString(),
    elapsedS: context.elapsedS,
    percentileRule: "nearest rank: the smallest value whose cumulative count is >= q n",
    endedEarly: context.endedEarly,
    missingVariants: context.variants.map((variant) => variant.name).filter((name) => !byName.has(name)),
    variants,
    recommendation: {
      variant: ranking.recommended,
      reason: ranking.reason,
      tiedWith: [...ranking.tiedWith],
    },
    accuracy: context.accuracy ?? null,
    goal: context.goalRatePerS === null ? null : answerGoal(context.goalRatePerS, candidates),
    price: context.price,
    exploration: context.exploration ? explorationOf(context.exploration, byName) : null,
    scaling: (context.scaling ?? []).map((one) => ({ ...one })),
    cost: context.cost ?? null,
    notes: [...context.notes],
  } satisfies Result);
}

function explorationOf(
  { proposals, simulated, ended }: Exploration,
  outcomes: ReadonlyMap<string, VariantOutcome>,
): Result["exploration"] {
  return {
    proposals: proposals.map(({ variant, predictedSloRate }) => ({
      variant: variant.name,
      predictedSloRate,
      sloRate: outcomes.get(variant.name)?.sloRate?.estimate ?? null,
    })),
    simulated,
    ended,
  };
}

function describeVariant(
  candidate: Candidate,
  rankOrNull: number | null,
  context: ResultContext,
): ResultVariant {
  const { variant, outcome } = candidate;
  const { operatingRate } = outcome;
  const warmUp = context.warmUpOf?.(variant) ?? null;
  const gpuBusy = busyShare(outcome.gpuBusy);
  const standAlone = describeStandAlone(context.standAloneOf?.(variant) ?? null, outcome);
  const diagnosis = withStandAlone(outcome.diagnosis, standAlone, gpuBusy);
  return {
    name: variant.name,
    settings: {
      artefact: variant.artefact.name,
      precision: variant.artefact.precision,
      maxBatchSize: variant.maxBatchSize,
      instanceCount: variant.instanceCount,
      queueDelayUs: variant.queueDelayUs,
      preferredBatchSizes: [...variant.preferredBatchSizes],
    },
    rank: rankOrNull,
    sloRate: outcome.sloRate,
    operatingRate,
    predictedSloRate: outcome.predictedSloRate,
    p95Ms: outcome.p95Ms,
    meanBatch: outcome.meanBatch,
    gpuBusy,
    diagnosis: { ...diagnosis, evidence: { ...diagnosis.evidence } },
    published: describePublished(variant, outcome),
    timeDilation: context.timeDilationOf(variant),
    usdPerMillion:
      context.price && operatingRate
        ? usdPerMillionInferences(context.price.usdPerReplicaHour, operatingRate)
        : null,
    fittedLaw: outcome.fittedLaw && lawToJson(outcome.fittedLaw),
    sensitivity:
      sensitivityOf(outcome, variant, context.load, context.slo, context.scheduler)?.map((other) => ({
        ...other,
      })) ?? null,
    modelCurve:
      modelCurve(outcome, variant, context.load, context.slo)?.map((point) => ({
        ...point,
        gpuBusy: Math.min(1, point.gpuBusy),
      })) ?? null,
    racedOut: outcome.racedOut ?? null,
    measuredS: outcome.trials.reduce((sum, { spec }) => sum + spec.warmupS + spec.measureS, 0),
    trials: outcome.trials.map(describeTrial),
    accuracy: describeAccuracy(context.accuracyOf?.(variant) ?? null),
    standAlone,
    assumptions: [...(context.assumptionsOf?.(variant) ?? [])],
    warmUp: warmUp && { ...warmUp },
    note: noteOf(outcome, warmUp),
  };
}

function noteOf({ note }: VariantOutcome, warmUp: WarmUp | null): string | null {
  const notes = [note, warmUp && unsettledNote(warmUp)].filter((text) => text !== null);
  return notes.length === 0 ? null : notes.join(" ");
}

function describeAccuracy(verdict: AccuracyVerdict | null): ResultVariant["accuracy"] {
  if (verdict === null) return null;
  const { reference, figures, passed, reasons } = verdict;
  const none = {
    images: null,
    top1Agreement: null,
    top5Agreement: null,
    maxDifference: null,
    meanDifference: null,
  };
  return { reference, ...(figures ?? { ...none, afterSoftmax: false }), passed, reasons: [...reasons] };
}

function describePublished(variant: Variant, outcome: VariantOutcome): ResultVariant["published"] {
  const { published } = variant;
  if (!published) return null;
  const comparable = published.kind === "limit" && outcome.sloRate !== null;
  return { ...published, ratio: comparable ? outcome.sloRate.estimate / published.rps : null };
}
