/** Completes variants of a file with artefacts that are known here, for servers that this program starts. Pure. */
import { InvalidVariantError, variantsProblems, type Problem } from "../model-repo/validate-variant";
import { defaultMaxBatchSize, defaultQueueDelayUs } from "../model-repo/artefacts";
import type { ModelArtefact, TensorSpec, Variant } from "../model-repo/variant";
import { settingsName } from "./settings-name";
import type { TensorRequest, VariantRequest } from "./variants-file";

/**
 * @param findArtefact what an entry's `model` names; throws an Error whose message lists what there is
 * @throws InvalidVariantError with all problems at once
 */
export function variantsOfArtefacts(
  requests: readonly VariantRequest[],
  findArtefact: (name: string) => ModelArtefact,
): Variant[] {
  const problems: Problem[] = [];
  const variants = requests.flatMap((request, index) => {
    const path = request.name ?? `variant ${index + 1} (model ${request.model})`;
    try {
      return [complete(request, findArtefact(request.model), path, problems)];
    } catch (error) {
      problems.push({ path, message: error instanceof Error ? error.message : String(error) });
      return [];
    }
  });
  problems.push(...variantsProblems(variants));
  if (problems.length > 0) throw new InvalidVariantError(problems);
  return variants;
}

function complete(
  request: VariantRequest,
  artefact: ModelArtefact,
  path: string,
  problems: Problem[],
): Variant {
  checkTensor(request.input, artefact.input, `${path}.input`, problems);
  checkTensor(request.output, artefact.output, `${path}.output`, problems);
  if (request.precision !== null && request.precision !== artefact.precision)
    problems.push({
      path: `${path}.precision`,
      message: `"${request.precision}" is not the precision of ${artefact.name} (${artefact.precision}); leave it out`,
    });
  const maxBatchSize = request.maxBatchSize ?? artefact.builtMaxBatchSize ?? defaultMaxBatchSize;
  const settings = {
    maxBatchSize,
    instanceCount: request.instanceCount ?? 1,
    queueDelayUs: request.queueDelayUs ?? defaultQueueDelayUs,
    preferredBatchSizes: request.preferredBatchSizes ?? [maxBatchSize],
  };
  return {
    name: request.name ?? settingsName(request.model, settings),
    artefact,
    ...settings,
    published: null,
  };
}

/** What the file says about a tensor must be what the artefact has. */
function checkTensor(request: TensorRequest, tensor: TensorSpec, path: string, problems: Problem[]): void {
  const differences: readonly (readonly [string, string | null, string])[] = [
    ["name", request.name, tensor.name],
    ["type", request.type, tensor.type],
    ["dims", request.dims?.join(", ") ?? null, tensor.dims.join(", ")],
  ];
  for (const [key, asked, own] of differences)
    if (asked !== null && asked !== own)
      problems.push({
        path: `${path}.${key}`,
        message: `is ${own} in the model, not ${asked}`,
      });
}
