/** Completes requested variants with what the server says about its models: tensors, platform, and settings left open. */
import { KserveError, type KserveClient } from "../kserve/client";
import type { ModelConfig, ModelMetadataResponse, TensorMetadata } from "../kserve/messages";
import { namedVariants } from "../model-repo/catalogue";
import { platformBackends } from "../model-repo/config-defaults";
import { knownNames } from "../model-repo/nearest-name";
import { variantsProblems, type Problem } from "../model-repo/validate-variant";
import type { ModelArtefact, Platform, TensorSpec, TensorType, Variant } from "../model-repo/variant";
import { modelNameFor } from "../tuning/repository-control";
import { settingsName } from "./settings-name";
import { TargetError } from "./target-error";
import type { TensorRequest, VariantRequest } from "./variants-file";

/** What the server says about one model. */
export interface ServedModel {
  readonly metadata: ModelMetadataResponse;
  readonly config: ModelConfig;
}

/**
 * Completes all requests. A model that is not loaded is loaded for a moment, since Triton describes loaded models only.
 * @throws TargetError with all problems at once
 */
export async function completeVariants(
  requests: readonly VariantRequest[],
  client: KserveClient,
): Promise<Variant[]> {
  const models = new Map<string, ServedModel | string>();
  const index = [...new Set((await client.repositoryIndex()).map(({ name }) => name))];
  for (const name of new Set(requests.map(({ model }) => model))) {
    models.set(
      name,
      index.includes(name)
        ? await describe(client, name)
        : `is not in the repository of ${client.address}${knownNames(name, index, "models")}`,
    );
  }
  const problems: Problem[] = [];
  const variants = requests.flatMap((request, position) => {
    const path = request.name ?? `variant ${position + 1} (model ${request.model})`;
    const model = models.get(request.model)!;
    if (typeof model !== "string") return [complete(request, model, path, problems)];
    problems.push({ path, message: `its model ${request.model} ${model}` });
    return [];
  });
  // Triton's model names follow no rule of ours.
  problems.push(...variantsProblems(variants).filter(({ path }) => !path.endsWith(".artefact.name")));
  if (problems.length > 0)
    throw new TargetError(problems.map(({ path, message }) => `${path}: ${message}`).join("\n"));
  return variants;
}

/**
 * Variants of the catalogue that the server has a model for: one of the variant's name, or of its artefact's.
 * @param wanted null: all there are
 * @throws TargetError that names what is missing, or shows a variants file for the models that are there
 */
export async function catalogueVariantsOn(
  client: KserveClient,
  wanted: readonly Variant[] | null,
): Promise<readonly Variant[]> {
  const models = await client.repositoryIndex();
  const index = [...new Set(models.map(({ name }) => name))];
  const has = (variant: Variant): boolean => modelNameFor(variant, models) !== null;
  const there = `its repository has ${index.join(", ") || "no model"}`;
  if (wanted !== null) {
    const missing = wanted.filter((variant) => !has(variant)).map(({ name }) => name);
    if (missing.length === 0) return wanted;
    throw new TargetError(`${client.address} has no model for ${missing.join(", ")}: ${there}`);
  }
  const found = namedVariants.filter(has);
  if (found.length > 0) return found;
  throw new TargetError(
    `${client.address} has none of the catalogue's models (${there}).\n` +
      `Write a file with the variants to measure, and name it with --variants-file FILE:\n` +
      index
        .map((model) => `- { model: ${JSON.stringify(model)}, maxBatchSize: 8, instanceCount: 2 }`)
        .join("\n"),
  );
}

/** The model's own description, or the reason why there is none. */
export async function describe(client: KserveClient, name: string): Promise<ServedModel | string> {
  const isLoaded = await client.modelReady(name);
  try {
    if (!isLoaded) await client.repositoryLoad(name);
    return { metadata: await client.modelMetadata(name), config: await client.modelConfig(name) };
  } catch (error) {
    if (!(error instanceof KserveError)) throw error;
    return `cannot be loaded to read its description (${error.details.trim()})`;
  } finally {
    if (!isLoaded) await client.repositoryUnload(name).catch(() => undefined);
  }
}

function complete(request: VariantRequest, model: ServedModel, path: string, problems: Problem[]): Variant {
  const { metadata, config } = model;
  const complain = (message: string): void => void problems.push({ path, message });
  if (config.max_batch_size < 1)
    complain(`its model ${request.model} does not batch (max_batch_size 0): there is nothing to tune in it`);
  if (metadata.inputs.length !== 1)
    complain(`its model has ${metadata.inputs.length} inputs; the load generator sends one image a request`);
  const batching = config.dynamic_batching;
  const maxBatchSize = request.maxBatchSize ?? Math.max(1, config.max_batch_size);
  const settings = {
    maxBatchSize,
    instanceCount: request.instanceCount ?? config.instance_group.reduce((sum, { count }) => sum + count, 0),
    queueDelayUs: request.queueDelayUs ?? batching?.max_queue_delay_microseconds ?? 0,
    preferredBatchSizes:
      request.preferredBatchSizes ?? preferredWithin(batching?.preferred_batch_size ?? [], maxBatchSize),
  };
  const artefact: ModelArtefact = {
    name: request.model,
    platform: platformOf(config.platform),
    precision: request.precision ?? "original",
    builtMaxBatchSize: null,
    input: tensorOf(request.input, metadata.inputs, config.input, "input", complain),
    output: tensorOf(request.output, metadata.outputs, config.output, "output", complain),
    labelsFile: config.output[0]?.label_filename || null,
  };
  return {
    name: request.name ?? settingsName(request.model, settings),
    artefact,
    ...settings,
    published: null,
  };
}

/** Sizes that Triton filled in, or that are too large now, are no wish. */
function preferredWithin(sizes: readonly number[], maxBatchSize: number): readonly number[] {
  return sizes.filter((size) => size < maxBatchSize);
}

function platformOf(platform: string): Platform {
  return Object.hasOwn(platformBackends, platform) ? (platform as Platform) : "other";
}

function tensorOf(
  request: TensorRequest,
  tensors: readonly TensorMetadata[],
  configs: ModelConfig["input"] | ModelConfig["output"],
  kind: "input" | "output",
  complain: (message: string) => void,
): TensorSpec {
  const names = tensors.map(({ name }) => name);
  const served = request.name === null ? tensors[0] : tensors.find(({ name }) => name === request.name);
  if (served === undefined) {
    const { name } = request;
    complain(
      `its model has no ${kind} ${name === null ? "" : `"${name}"${knownNames(name, names, `${kind}s`)}`}`,
    );
    return { name: name ?? "", type: "FP32", dims: [1], format: null };
  }
  const said = { type: request.type, dims: request.dims };
  const type = tensorType(served.datatype);
  if (type === null || (kind === "output" && type !== "FP32"))
    complain(
      kind === "input"
        ? `input "${served.name}" is ${served.datatype}; images can be sent as FP32 or UINT8`
        : `output "${served.name}" is ${served.datatype}; a classification needs FP32 scores`,
    );
  else if (said.type !== null && said.type !== type)
    complain(`${kind} "${served.name}" is ${type} on the server, not ${said.type}`);
  const own = served.shape.slice(1);
  const dims = said.dims ?? own;
  if (dims.some((dim) => dim < 1))
    complain(`${kind} "${served.name}" has the open shape [${own.join(", ")}]; give ${kind}.dims`);
  else if (dims.length !== own.length || own.some((dim, axis) => dim >= 1 && dim !== dims[axis]))
    complain(`${kind} "${served.name}" is [${own.join(", ")}] on the server, not [${dims.join(", ")}]`);
  const format = configs.find(({ name }) => name === served.name);
  const layout = format && "format" in format ? format.format : null;
  return {
    name: served.name,
    type: type ?? "FP32",
    dims: dims.map((dim) => Math.max(1, dim)),
    format: layout === "FORMAT_NHWC" || layout === "FORMAT_NCHW" ? layout : null,
  };
}

function tensorType(datatype: string): TensorType | null {
  return datatype === "FP32" || datatype === "UINT8" ? datatype : null;
}
