/** Checks a reply against the known answer of its image: a server that answers fast and wrong must not pass. */
import { decodeClassifications, decodeInferResponse } from "../kserve/wire";
import type { KnownAnswer } from "./load-spec";

/**
 * What is wrong with a reply, in words; undefined when it is the known answer.
 * @param reply serialized ModelInferResponse with one classification of `outputName`
 * @param scoreTolerance allowed absolute difference of the score
 */
export function findWrongAnswer(
  reply: Buffer,
  outputName: string,
  known: KnownAnswer,
  scoreTolerance: number,
): string | undefined {
  let top;
  try {
    const response = decodeInferResponse(reply);
    const position = response.outputs.findIndex(({ name }) => name === outputName);
    const raw = response.raw[position];
    if (raw === undefined) return `the reply has no output "${outputName}"`;
    top = decodeClassifications(raw)[0];
  } catch (error) {
    return `the reply cannot be decoded: ${error instanceof Error ? error.message : String(error)}`;
  }
  if (top === undefined) return `output "${outputName}" of the reply is empty`;
  if (top.classIndex !== known.classIndex)
    return `class ${top.classIndex} (${top.label ?? "no label"}) instead of ${known.classIndex} (${known.label})`;
  if ((top.label ?? "") !== known.label)
    return `label "${top.label ?? ""}" instead of "${known.label}" for class ${known.classIndex}`;
  if (!(Math.abs(top.score - known.score) <= scoreTolerance))
    return `score ${top.score} instead of ${known.score} for class ${known.classIndex}`;
  return undefined;
}
