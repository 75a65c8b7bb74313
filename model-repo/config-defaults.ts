/** Defaults of a model configuration: protobuf's, and those that Triton fills in when it loads a model. */
import { configEnums, configMessages, configOneofs } from "./config-schema";
import {
  fieldKind,
  type CompleteMessage,
  type CompleteModelConfig,
  type ConfigMessage,
  type ConfigMessageName,
  type ModelConfig,
} from "./config-types";
import type { Platform } from "./variant";

/** Backend of each platform, and the model file's name that the backend looks for by default. */
export const platformBackends: Readonly<
  Record<Exclude<Platform, "other">, { backend: string; defaultModelFilename: string }>
> = {
  tensorflow_savedmodel: { backend: "tensorflow", defaultModelFilename: "model.savedmodel" },
  tensorrt_plan: { backend: "tensorrt", defaultModelFilename: "model.plan" },
  onnxruntime_onnx: { backend: "onnxruntime", defaultModelFilename: "model.onnx" },
};

type Message = Readonly<Record<string, unknown>>;
const messages: Readonly<Record<string, Readonly<Record<string, string>>>> = configMessages;
const enums: Readonly<Record<string, readonly string[]>> = configEnums;

function scalarDefault(type: string): unknown {
  if (type === "string") return "";
  if (type === "bool") return false;
  return enums[type]?.[0] ?? 0;
}

function completeValue(type: string, value: unknown): unknown {
  return Object.hasOwn(messages, type) ? completeFields(type, value as Message) : value;
}

function completeFields(type: string, message: Message): Message {
  const inOneof = new Set((configOneofs[type] ?? []).flat());
  const entries: [string, unknown][] = [];
  for (const [name, spelling] of Object.entries(messages[type] as Readonly<Record<string, string>>)) {
    const value = message[name];
    const kind = fieldKind(spelling);
    if (kind.form === "repeated")
      entries.push([name, ((value ?? []) as unknown[]).map((element) => completeValue(kind.type, element))]);
    else if (kind.form === "map")
      entries.push([
        name,
        Object.fromEntries(
          Object.entries((value ?? {}) as Message).map(([key, v]) => [key, completeValue(kind.type, v)]),
        ),
      ]);
    else if (value !== undefined) entries.push([name, completeValue(kind.type, value)]);
    else if (!Object.hasOwn(messages, kind.type) && !inOneof.has(name))
      entries.push([name, scalarDefault(kind.type)]);
  }
  return Object.fromEntries(entries);
}

/** The message with protobuf's default in every field that has one, in the order of the schema: as Triton's HTTP API prints it. */
export function completeMessage<Name extends ConfigMessageName>(
  type: Name,
  message: ConfigMessage<Name>,
): CompleteMessage<Name> {
  return completeFields(type, message) as CompleteMessage<Name>;
}

/** Dynamic batching without preferred batch sizes prefers the largest batch. */
function withPreferredBatchSize(config: ModelConfig): Pick<ModelConfig, "dynamic_batching"> {
  const { dynamic_batching: batching, max_batch_size: largest = 0 } = config;
  if (batching === undefined || batching.preferred_batch_size?.length || largest < 1) return {};
  return { dynamic_batching: { ...batching, preferred_batch_size: [largest] } };
}

/**
 * Fills in what Triton fills in when it loads a model (observed in the ModelConfig answer of Triton 2.51): backend and file
 * name of the platform, version policy, preferred batch size, pinned memory, names, counts and GPUs of the instance groups.
 * @param gpus devices that the server has; a KIND_GPU group without its own list gets all of them
 */
export function withTritonDefaults(config: ModelConfig, gpus: readonly number[] = [0]): CompleteModelConfig {
  const name = config.name ?? "";
  const platforms: Readonly<Record<string, { backend: string; defaultModelFilename: string } | undefined>> =
    platformBackends;
  const known = platforms[config.platform ?? ""];
  const groups = config.instance_group?.length ? config.instance_group : [{}];
  const complete = completeMessage("ModelConfig", {
    ...config,
    backend: config.backend || known?.backend,
    version_policy: config.version_policy ?? { latest: { num_versions: 1 } },
    ...withPreferredBatchSize(config),
    optimization: {
      ...config.optimization,
      input_pinned_memory: config.optimization?.input_pinned_memory ?? { enable: true },
      output_pinned_memory: config.optimization?.output_pinned_memory ?? { enable: true },
    },
    instance_group: groups.map((group, index) => {
      const auto = gpus.length > 0 ? "KIND_GPU" : "KIND_CPU";
      const kind = group.kind === undefined || group.kind === "KIND_AUTO" ? auto : group.kind;
      return {
        ...group,
        // A group that nobody wrote has the model's name.
        name: group.name || (config.instance_group?.length ? `${name}_${index}` : name),
        kind,
        count: group.count || 1,
        gpus: kind === "KIND_GPU" && !group.gpus?.length ? gpus : group.gpus,
      };
    }),
    default_model_filename: config.default_model_filename || known?.defaultModelFilename,
  });
  return complete as CompleteModelConfig;
}
