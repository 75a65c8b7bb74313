import type { CompleteModelConfig, ModelConfig } from "../../model-repo/config-types";
import { withTritonDefaults } from "../../model-repo/config-defaults";
import { pollOffence } from "./config-check";
import { ConfigJsonError, parseConfigJson } from "./config-json";
import { type ModelFiles, PollError, type RepositoryFolder } from "./repository-folder";

/** What is to be loaded. */
export interface LoadPlan {
  readonly config: CompleteModelConfig;
  readonly files: ModelFiles;
  readonly labels: ReadonlyMap<string, readonly string[]>;
}

/** Parameters with this prefix describe the simulated artefact, not how it is served. */
const ARTEFACT_PARAMETER_PREFIX = "simulated_";

/**
 * Reads what a load asks for.
 * @param overrideJson RepositoryModelLoad's `config` parameter; it replaces the file's configuration, it is not merged with it
 * @throws PollError when the repository or the override is not usable
 */
export function planLoad(
  folder: RepositoryFolder,
  modelName: string,
  files: ModelFiles,
  overrideJson: string | undefined,
  gpuIds: readonly number[],
): LoadPlan {
  const asked =
    overrideJson === undefined ? files.config : autoComplete(parseOverride(overrideJson), files.config);
  const offence = pollOffence(modelName, asked);
  if (offence !== null) throw new PollError(offence);
  const config = withTritonDefaults({ ...asked, name: modelName }, gpuIds);
  const labels = new Map<string, readonly string[]>();
  for (const { name = "", label_filename = "" } of config.output) {
    if (label_filename !== "") labels.set(name, folder.readLabels(modelName, label_filename));
  }
  return { config, files, labels };
}

function parseOverride(json: string): ModelConfig {
  try {
    return parseConfigJson(json);
  } catch (error) {
    if (error instanceof ConfigJsonError) throw new PollError(`the config override: ${error.message}`);
    throw error;
  }
}

/**
 * Triton fills in what the model's files tell: backend, inputs and outputs. The simulated artefact tells it through the
 * repository's config.pbtxt; labels and image format are no part of a model file and stay lost.
 */
function autoComplete(asked: ModelConfig, file: ModelConfig): ModelConfig {
  const hasBackend = (asked.platform ?? "") !== "" || (asked.backend ?? "") !== "";
  const artefactParameters = Object.entries(file.parameters ?? {}).filter(([key]) =>
    key.startsWith(ARTEFACT_PARAMETER_PREFIX),
  );
  const tensors = (list: ModelConfig["input"] | ModelConfig["output"]) =>
    (list ?? []).map(({ name, data_type, dims }) => ({ name, data_type, dims }));
  return {
    ...(hasBackend ? {} : { platform: file.platform, backend: file.backend }),
    ...asked,
    input: (asked.input ?? []).length > 0 ? asked.input : tensors(file.input),
    output: (asked.output ?? []).length > 0 ? asked.output : tensors(file.output),
    parameters: { ...Object.fromEntries(artefactParameters), ...asked.parameters },
  };
}
