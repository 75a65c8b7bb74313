/** The exploration in words. */
import type { Result } from "../results/result-schema";
import { formatGain, formatRate } from "./format";

export function explorationText({ proposals, simulated, ended }: NonNullable<Result["exploration"]>): string {
  const measured = proposals.map(({ variant, predictedSloRate, sloRate }) =>
    sloRate === null
      ? `${variant} was predicted to hold ${formatRate(predictedSloRate)}/s and has no rate`
      : `${variant} holds ${formatRate(sloRate)}/s (predicted: ${formatRate(predictedSloRate)}/s, ${formatGain(predictedSloRate / sloRate - 1)})`,
  );
  const looked = `${simulated} configurations were looked at in simulation`;
  return measured.length === 0 ? `${looked}. ${ended}` : `${looked}; ${measured.join("; ")}. ${ended}`;
}
