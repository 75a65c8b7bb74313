/**
 * Why the SLO rate is not higher, and what to change. The cause is the resource whose 10 % relief raises the predicted SLO rate
 * most, by the fitted service model; shares and thresholds are evidence, not the rule.
 */
import type { Variant } from "../../model-repo/variant";
import { payloadBytesOf } from "../../serving-model/t4";
import type { ServiceLaw } from "../../serving-model/service-law";
import type { FittedLaw } from "../identify/identify";
import type { Diagnosis, SystemFacts } from "../outcome";
import type { ModelledSystem } from "../search/model-knee";
import type { LoadMode } from "../search/load-axis";
import type { Cause, ServerWindow, Slo } from "../trial";
import { causeOf } from "./cause";
import { withKnownBatches } from "./known-batches";
import { adviceFor } from "./moves";
import { conversionWithoutEffect, instancesThatFit, memoryLimit, throttled } from "./special-causes";
import { predictionOf, type Relief, reliefs, type Resource, reliefShare, withLaw } from "./relief";

export interface DiagnosisInput {
  readonly variant: Variant;
  readonly slo: Slo;
  readonly mode: LoadMode;
  /** The fitted model, at the speed that the trials showed. */
  readonly system: ModelledSystem;
  readonly fitted: FittedLaw;
  /** Measured SLO rate, requests/s, and the searched load that belongs to it. */
  readonly sloRate: number;
  readonly kneeValue: number;
  /** What the server said in the trial nearest to the SLO rate, and that trial's mean response time; null without one. */
  readonly nearest: { readonly server: ServerWindow; readonly meanResponseMs: number } | null;
  readonly facts: SystemFacts;
  readonly lawOf: (variant: Variant) => ServiceLaw | null;
  /** ln of the server's speed after over before it got slower during the search. Null or absent: it did not. */
  readonly slowerBy?: number | null;
}

/** Reliefs that gain less than this are no cause. */
const leastGain = 0.005;
/** A ceiling this near to the load generator's own is the load generator's. */
const sameCeiling = 0.05;

/** The resource in words, and what 10 % of it would be less of. */
interface Words {
  readonly name: string;
  readonly time: string;
}

const gpuWords: Readonly<Record<Resource, Words>> = {
  gpu: { name: "The GPU", time: "GPU time" },
  host: { name: "The host phase", time: "host time" },
  wire: { name: "The link into the node", time: "link time" },
  "queue-delay": { name: "The queue delay", time: "queue delay" },
  outside: { name: "The time outside the node", time: "time outside the node" },
};

function wordsFor({ processor }: SystemFacts): Readonly<Record<Resource, Words>> {
  return processor === "cpu" ? { ...gpuWords, gpu: { name: "The CPU", time: "inference time" } } : gpuWords;
}

export function diagnose(input: DiagnosisInput): Diagnosis {
  const { variant, sloRate, fitted, facts } = input;
  const server = input.nearest?.server ?? null;
  const { system, batchesKnown } = fitted.identified.batchSplit
    ? { system: input.system, batchesKnown: true }
    : withKnownBatches(input.system, variant, server?.meanBatch ?? null, facts, input.lawOf);
  const prediction = predictionOf(system, input.mode, input.slo, input.kneeValue);
  if (prediction === null) {
    return {
      cause: "none",
      summary: "The fitted model holds the SLO at no load: it cannot say why.",
      evidence: {},
      nextMove: null,
    };
  }
  const gains = reliefs(system, prediction);
  const evidence = evidenceOf(input, gains);
  const instancesAllowed = instancesThatFit(variant, server);
  const { nextMove, blockedByMemory } = adviceFor({
    variant,
    // Where the way in was never the limit, what is known about it from elsewhere limits a change.
    system: withLaw(system, {
      ingressRequestsPerS: Math.min(
        system.server.law.ingressRequestsPerS,
        input.facts.wireCeilingPerS ?? Infinity,
      ),
    }),
    prediction,
    sloRate,
    lawOf: input.lawOf,
    instancesAllowed,
    batchesKnown,
  });
  const [first, second] = gains;
  if (first === undefined || first.gain < leastGain) {
    return {
      cause: "none",
      summary: "No single resource limits the SLO rate by the fitted model.",
      evidence,
      nextMove,
    };
  }
  const special =
    throttled(input.slowerBy ?? null, server) ??
    (first.resource === "gpu" || gains.some(({ resource, gain }) => resource === "gpu" && gain >= leastGain)
      ? conversionWithoutEffect(
          variant,
          system.server.law,
          server?.meanBatch ?? variant.maxBatchSize,
          input.lawOf,
        )
      : null) ??
    (blockedByMemory ? memoryLimit(instancesAllowed, server) : null);
  if (special !== null) {
    return {
      cause: special.cause,
      summary: special.summary,
      evidence: { ...special.evidence, ...evidence },
      nextMove,
    };
  }
  if (!fitted.identified.phases && (first.resource === "gpu" || first.resource === "host")) {
    const summary =
      "The execution of batches limits the SLO rate, but the server reports no execution times: whether copying or " +
      "inferring is the cause cannot be told.";
    return { cause: "none", summary, evidence, nextMove };
  }
  const client = first.resource === "wire" && isClientCeiling(input);
  const isCpu = first.resource === "gpu" && input.facts.processor === "cpu";
  const cause = client ? "client-bound" : isCpu ? "cpu-bound" : causeOf(first.resource);
  return { cause, summary: summaryOf(cause, first, second, wordsFor(input.facts)), evidence, nextMove };
}

/** Whether the ceiling before the node is what the load generator is known to be able to offer. */
function isClientCeiling({ facts, system }: DiagnosisInput): boolean {
  const ceiling = system.server.law.ingressRequestsPerS;
  return facts.clientCeilingPerS !== null && ceiling >= facts.clientCeilingPerS * (1 - sameCeiling);
}

function summaryOf(
  cause: Cause,
  first: Relief,
  second: Relief | undefined,
  words: Readonly<Record<Resource, Words>>,
): string {
  const limit = cause === "client-bound" ? "What the load generator can offer" : words[first.resource].name;
  const other =
    second !== undefined && second.gain >= leastGain
      ? `, 10 % less ${words[second.resource].time} by ${percent(second.gain)}`
      : "; nothing else would raise it by much";
  return `${limit} is the limit: ${percent(reliefShare)} less ${words[first.resource].time} would raise the SLO rate by ${percent(first.gain)}${other}.`;
}

function evidenceOf(
  { variant, system, nearest, sloRate, fitted, facts }: DiagnosisInput,
  gains: readonly Relief[],
): Record<string, string> {
  const words = wordsFor(facts);
  const { law } = system.server;
  const evidence: Record<string, string> = {};
  for (const { resource, gain } of gains) {
    evidence[`SLO rate with ${percent(reliefShare)} less ${words[resource].time}`] =
      `${gain >= 0 ? "+" : ""}${percent(gain)}`;
  }
  const server = nearest?.server;
  if (server?.gpuBusy != null) evidence["GPU busy"] = percent(server.gpuBusy);
  if (server?.meanBatch != null)
    evidence["mean batch"] = `${server.meanBatch.toFixed(1)} of ${variant.maxBatchSize}`;
  if (server?.queueMs != null && nearest !== null) {
    evidence["share of the response time in the queue"] = percent(server.queueMs / nearest.meanResponseMs);
  }
  const bytes = payloadBytesOf(variant.artefact.input);
  evidence["input at the SLO rate"] = `${((sloRate * bytes * 8) / 1e9).toFixed(2)} Gbit/s`;
  evidence["link into the node"] = Number.isFinite(law.ingressRequestsPerS)
    ? `at most ${rate(law.ingressRequestsPerS)}`
    : "no ceiling reached";
  evidence["fitted execution of b images"] =
    `host ${law.hostMsPerBatch ? `${law.hostMsPerBatch.toFixed(2)} + ` : ""}${law.hostMsPerImage.toFixed(3)} b ms, then ${facts.processor === "cpu" ? "CPU" : "GPU"} ${law.gpuMsPerBatch.toFixed(2)} + ${law.gpuMsPerImage.toFixed(3)} b ms`;
  if (fitted.notes.length > 0) evidence["assumed"] = fitted.notes.join(" ");
  return evidence;
}

function percent(value: number): string {
  const digits = Math.abs(value) < 0.0995 ? 1 : 0;
  return `${(100 * value).toFixed(digits)} %`;
}

function rate(value: number): string {
  return `${value.toFixed(value < 100 ? 1 : 0)} requests/s`;
}
