import type { CompleteModelConfig } from "../../model-repo/config-types";
import type { Platform, Precision, TensorSpec, TensorType, Variant } from "../../model-repo/variant";
import type { ServiceLaw } from "../../serving-model/service-law";
import { payloadBytesOf, serviceLawFor } from "../../serving-model/t4";
import { ModelLoadError } from "../executor";
import type { ConversionDefect } from "./answer";

/** What the simulation has to know of a served model. */
export interface SimulatedModel {
  readonly law: ServiceLaw;
  readonly precision: Precision;
  /** Mistake of the conversion; null: none. */
  readonly defect: ConversionDefect | null;
  readonly inputType: TensorType;
  /** Bytes of one image. */
  readonly imageBytes: number;
  readonly classes: number;
  readonly instanceCount: number;
}

const PRECISIONS: readonly Precision[] = ["original", "fp32", "fp16", "int8"];
/** Model configuration parameter that names the precision; without it the model's name must. */
export const PRECISION_PARAMETER = "simulated_precision";

/** Model configuration parameter that plants a wrong conversion, to see it caught. */
export const DEFECT_PARAMETER = "simulated_defect";

/**
 * Parameters that replace figures of the T4's service law, e.g. to simulate another GPU. All four together need no published
 * figures, so any platform and backend will do. (TensorRT has no host time per batch.)
 */
export const LAW_PARAMETERS: Readonly<Record<Exclude<keyof ServiceLaw, "hostMsPerBatch">, string>> = {
  hostMsPerImage: "simulated_host_ms_per_image",
  gpuMsPerBatch: "simulated_gpu_ms_per_batch",
  gpuMsPerImage: "simulated_gpu_ms_per_image",
  ingressRequestsPerS: "simulated_ingress_requests_per_s",
};

/**
 * Derives the simulation of a model from its configuration.
 * @throws ModelLoadError when the configuration is none of an image classifier on the GPU, or its service times are not known
 */
export function simulatedModel(config: CompleteModelConfig): SimulatedModel {
  const { name } = config;
  const [input, ...otherInputs] = config.input;
  const [output, ...otherOutputs] = config.output;
  if (input === undefined || output === undefined || otherInputs.length > 0 || otherOutputs.length > 0) {
    throw invalid(`the simulated T4 serves models of one input and one output; '${name}' has others`);
  }
  const inputType = input.data_type?.replace("TYPE_", "");
  if (inputType !== "FP32" && inputType !== "UINT8") {
    throw invalid(
      `the simulated T4 takes TYPE_FP32 and TYPE_UINT8 images; input '${input.name}' is ${input.data_type}`,
    );
  }
  const dims = input.dims ?? [];
  if (dims.some((dim) => dim < 1)) {
    throw invalid(`the simulated T4 needs fixed input dims; input '${input.name}' has [${dims.join(",")}]`);
  }
  const [classes, ...otherDims] = output.dims ?? [];
  if (output.data_type !== "TYPE_FP32" || classes === undefined || classes < 1 || otherDims.length > 0) {
    throw invalid(
      `the simulated T4 answers with one TYPE_FP32 score per class; output '${output.name}' is different`,
    );
  }
  const precision = precisionOf(config);
  const spec = { name: input.name ?? "", type: inputType, dims, format: null } as const;
  return {
    law: lawOf(config, precision, spec),
    precision,
    defect: defectOf(config, dims),
    inputType,
    imageBytes: payloadBytesOf(spec),
    classes,
    instanceCount: config.instance_group.reduce((sum, group) => sum + (group.count ?? 1), 0),
  };
}

function defectOf(config: CompleteModelConfig, dims: readonly number[]): ConversionDefect | null {
  const stated = config.parameters[DEFECT_PARAMETER]?.string_value;
  if (stated === undefined) return null;
  if (stated !== "swapped-channels")
    throw invalid(`parameter ${DEFECT_PARAMETER} is '${stated}', not swapped-channels`);
  if (dims.at(-1) !== 3)
    throw invalid(`parameter ${DEFECT_PARAMETER} needs images of 3 channels, not [${dims.join(",")}]`);
  return stated;
}

function precisionOf(config: CompleteModelConfig): Precision {
  const stated = config.parameters[PRECISION_PARAMETER]?.string_value;
  const known = `${PRECISIONS.slice(0, -1).join(", ")} or ${PRECISIONS.at(-1)}`;
  if (stated !== undefined) {
    const precision = PRECISIONS.find((candidate) => candidate === stated);
    if (precision === undefined)
      throw invalid(`parameter ${PRECISION_PARAMETER} is '${stated}', not ${known}`);
    return precision;
  }
  const words = config.name.split("_");
  const named = PRECISIONS.filter((candidate) => words.includes(candidate));
  if (named.length === 1) return named[0]!;
  throw invalid(
    `the precision of '${config.name}' is not known: its name must contain one of ${known}, ` +
      `or its configuration parameters { key: "${PRECISION_PARAMETER}" value { string_value: "fp16" } }`,
  );
}

function lawOf(config: CompleteModelConfig, precision: Precision, input: TensorSpec): ServiceLaw {
  const stated: Partial<Record<keyof typeof LAW_PARAMETERS, number>> = {};
  for (const key of Object.keys(LAW_PARAMETERS) as (keyof typeof LAW_PARAMETERS)[]) {
    const parameter = LAW_PARAMETERS[key];
    const text = config.parameters[parameter]?.string_value;
    if (text === undefined) continue;
    const value = Number(text);
    if (text.trim() === "" || !(value >= 0))
      throw invalid(`parameter ${parameter} is '${text}', not a number >= 0`);
    stated[key] = value;
  }
  if (Object.keys(stated).length === Object.keys(LAW_PARAMETERS).length) return stated as ServiceLaw;
  try {
    return { ...serviceLawFor(variantOf(config, precision, input)), ...stated };
  } catch (error) {
    throw invalid(error instanceof Error ? error.message : String(error));
  }
}

/** The part of a variant that decides the service law. */
function variantOf(
  config: CompleteModelConfig,
  precision: Precision,
  input: TensorSpec,
): Pick<Variant, "name" | "artefact"> {
  const output = config.output[0]!;
  return {
    name: config.name,
    artefact: {
      name: config.name,
      platform: config.platform as Platform,
      precision,
      builtMaxBatchSize: null,
      input,
      output: { name: output.name ?? "", type: "FP32", dims: output.dims ?? [], format: null },
      labelsFile: null,
    },
  };
}

function invalid(reason: string): ModelLoadError {
  return new ModelLoadError(`Invalid argument: ${reason}`);
}
