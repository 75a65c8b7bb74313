/** A variant's served rate against its artefact's own speed, in words. Pure. */
import type { ResultVariant } from "../results/result-schema";
import { formatMs, formatRate, formatShare } from "./format";

/** Shown in the place of a speed that nobody measured. */
export const notKnown = "not known";

/** One line: the share where there is one, the artefact's own speed, and how that came about. */
export function standAloneText({ standAlone, sloRate }: ResultVariant): string {
  if (standAlone === null) return `${notKnown}: there is no conversion manifest of this artefact`;
  const { imagesPerS, batchSize, basis, on, latencyP95Ms, servedShare } = standAlone;
  const speed = `${formatRate(imagesPerS)} images/s at batch ${batchSize}`;
  const own =
    basis === "measured" ? `the artefact's own ${speed}` : `the ${speed} of the simulated GPU phase alone`;
  const served =
    sloRate === null || servedShare === null
      ? own
      : `served ${formatRate(sloRate.estimate)}/s = ${formatShare(servedShare)} of ${own}`;
  return basis === "measured"
    ? `${served} (${formatMs(latencyP95Ms)} a batch at p95${on === null ? "" : `, ${on}`}, one caller)`
    : `${served} (no copies, nothing measured)`;
}

/** Whether any variant's own speed is known. */
export function anyStandAlone(variants: readonly ResultVariant[]): boolean {
  return variants.some(({ standAlone }) => standAlone !== null);
}
