/** A served rate against what the artefact does without a server: the documents' first step, and where to look for what is lost. Pure. */
import type { StandAloneSpeed } from "../../model-repo/stand-alone-speed";
import type { Diagnosis, VariantOutcome } from "../outcome";
import type { Cause } from "../trial";
import type { ResultVariant } from "./result-schema";

/** Below this share of its own speed, and this busy, an artefact is not what limits the rate. */
const lowShare = 0.6;
const idleBelow = 0.6;

/** Causes that lie outside the model; an SLO that is tight for the model itself leaves a GPU idle, too. */
const outsideTheModel: ReadonlySet<Cause> = new Set<Cause>([
  "host-bound",
  "wire-bound",
  "client-bound",
  "queue-delay",
]);

/** For result.json. */
export function describeStandAlone(
  speed: StandAloneSpeed | null,
  { sloRate }: Pick<VariantOutcome, "sloRate">,
): ResultVariant["standAlone"] {
  if (speed === null) return null;
  return { ...speed, servedShare: sloRate === null ? null : sloRate.estimate / speed.imagesPerS };
}

/** The diagnosis, with a sentence more where the artefact alone is much faster and the GPU waits. */
export function withStandAlone(
  diagnosis: Diagnosis,
  standAlone: ResultVariant["standAlone"],
  gpuBusy: number | null,
): Diagnosis {
  const share = standAlone?.servedShare ?? null;
  if (standAlone === null || share === null || gpuBusy === null) return diagnosis;
  if (share >= lowShare || gpuBusy >= idleBelow || !outsideTheModel.has(diagnosis.cause)) return diagnosis;
  const own =
    standAlone.basis === "measured" ? "the artefact does alone" : "the simulated GPU phase would pass alone";
  const sentence =
    `Served is ${percent(share)} of what ${own} (${Math.round(standAlone.imagesPerS).toLocaleString("en-US")} images/s at batch ${standAlone.batchSize}), and the ` +
    `GPU is idle for ${percent(1 - gpuBusy)} of the time: most of what is missing is lost outside the model, not in the conversion.`;
  return { ...diagnosis, summary: `${diagnosis.summary} ${sentence}` };
}

function percent(share: number): string {
  return `${(100 * share).toFixed(0)} %`;
}
