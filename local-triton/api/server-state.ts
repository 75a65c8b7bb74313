import type { ModelMetadataResponse, ServerMetadataResponse } from "../../kserve/messages";
import type { ServedModel } from "../models/served-model";

/** Triton's release whose answers this server gives. */
const TRITON_VERSION = "2.51.0";

/** As Triton lists them, less what this server does not have (sequences, shared memory, tracing, logging settings). */
export const serverMetadata: ServerMetadataResponse = {
  name: "triton",
  version: TRITON_VERSION,
  extensions: [
    "classification",
    "model_repository",
    "model_repository(unload_dependents)",
    "schedule_policy",
    "model_configuration",
    "binary_tensor_data",
    "parameters",
    "statistics",
  ],
};

export function modelMetadata(model: ServedModel): ModelMetadataResponse {
  const { config, io } = model;
  return {
    name: model.name,
    versions: [model.version],
    platform: config.platform === "" ? config.backend : config.platform,
    inputs: io.inputs.map(({ name, datatype, shape }) => ({ name, datatype, shape: [...shape] })),
    outputs: io.outputs.map(({ name, datatype, shape }) => ({ name, datatype, shape: [...shape] })),
  };
}
