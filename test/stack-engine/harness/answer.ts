/** What the stub answers to a registration, and which ones it refuses. */
import type { Operation } from "./compare";
import { computedOutputs, identityOf, previewOfUpdate, withSecrets, type OutputFixtures } from "./outputs";
import { unknownPaths, type PropertyMap } from "./property-value";
import { providerUrn, type Recording, type Registration } from "./recording";
import type { Asked } from "./registration";

/** How the stub answers. */
export interface AnswerOptions {
  readonly mode: "preview" | "up";
  /**
   * `nothing`: in a preview a resource that does not exist yet answers with nothing at all, so even its own inputs come
   * back unknown. `inputs` (as most providers do): it answers with its inputs.
   */
  readonly previewAnswers?: "nothing" | "inputs";
  readonly outputs?: OutputFixtures;
}

/** What the provider would answer in this mode for this step. */
export function answerTo(
  asked: Asked,
  operation: Operation,
  before: Registration | undefined,
  options: AnswerOptions,
): { id: string; outputs: PropertyMap } {
  if (operation === "same" && before !== undefined) return { id: before.id, outputs: before.outputs };
  const identity = identityOf(asked, operation === "replace" ? before?.id : undefined);
  const computed = computedOutputs(asked.type, asked.inputs, identity, options.outputs);
  const outputs = withSecrets({ ...asked.inputs, ...computed }, asked);
  if (options.mode === "up") return { id: identity.id, outputs };
  if (operation === "update" && before !== undefined)
    return { id: before.id, outputs: previewOfUpdate(asked.type, outputs) };
  return { id: "", outputs: options.previewAnswers === "inputs" ? asked.inputs : {} };
}

/**
 * Rules of the real engine whose violation a recording would hide.
 *
 * @throws for a second resource of one URN, a reference to what is not registered, and unknown inputs in an up
 */
export function refuse(asked: Asked, recording: Recording): void {
  if (recording.get(asked.urn) !== undefined) {
    throw new Error(`Duplicate resource URN '${asked.urn}'; try giving it a unique name`);
  }
  for (const urn of [...asked.dependencies, asked.parent, asked.deletedWith, providerUrn(asked.provider)]) {
    const read = recording.reads.some((item) => urn.endsWith(`${item.type}::${item.name}`));
    if (urn !== "" && recording.get(urn) === undefined && !read) {
      throw new Error(`${asked.urn} refers to ${urn}, which is not registered.`);
    }
  }
  const unknown = recording.mode === "up" ? unknownPaths(asked.inputs) : [];
  if (unknown.length > 0)
    throw new Error(`${asked.urn}: inputs are unknown in an up: ${unknown.join(", ")}.`);
}
