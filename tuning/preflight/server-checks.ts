/** What a sweep needs of a running server. Nothing is loaded, unloaded or put under load here. */
import { KserveError, type KserveClient } from "../../kserve/client";
import type { ModelConfig, TensorMetadata } from "../../kserve/messages";
import { tritonMetrics } from "../../kserve/triton-metrics";
import { knownNames } from "../../model-repo/nearest-name";
import type { TensorSpec, Variant } from "../../model-repo/variant";
import { sumOf, type MetricSample } from "../prometheus-text";
import { modelNameFor } from "../repository-control";
import { failed, ok, warning, type Check } from "./check";

/** Triton 25.02 is version 2.55: the last container with the TensorFlow backend. */
const lastTensorFlowMinor = 55;
const PINGS = 5;
/** A model that cannot exist: asking to unload it changes nothing, but only explicit control allows to ask. */
const NO_MODEL = "preflight_no_such_model";

/** Name, version, and how far away it is. */
export async function checkServer(client: KserveClient, variants: readonly Variant[]): Promise<Check> {
  const name = "server";
  const { name: server, version } = await client.serverMetadata();
  const times: number[] = [];
  for (let i = 0; i < PINGS; i++) {
    const from = performance.now();
    await client.serverLive();
    times.push(performance.now() - from);
  }
  const found = `${server} ${version} at ${client.address}, ${median(times).toFixed(1)} ms away`;
  const savedModel = variants.find(({ artefact }) => artefact.platform === "tensorflow_savedmodel");
  const [major = 0, minor = 0] = version.split(".").map(Number);
  if (savedModel && (major > 2 || minor > lastTensorFlowMinor) && !(await isReady(client, savedModel)))
    return failed(
      name,
      `${found}; it has no TensorFlow backend for ${savedModel.name}`,
      `serve SavedModels with Triton 25.02 (2.${lastTensorFlowMinor}) or older, or convert the model to ONNX or a TensorRT plan`,
    );
  return ok(name, found);
}

async function isReady(client: KserveClient, variant: Variant): Promise<boolean> {
  const name = modelNameFor(variant, await client.repositoryIndex());
  return name !== null && client.modelReady(name);
}

/** Models can be loaded, or else just what is served can be measured. */
export async function checkControl(client: KserveClient): Promise<Check> {
  const name = "model control";
  try {
    await client.repositoryUnload(NO_MODEL);
    return ok(
      name,
      "explicit: the sweep loads one variant after the other, and at the end what is served now",
    );
  } catch (error) {
    if (!(error instanceof KserveError)) throw error;
    return warning(
      name,
      `not allowed (${error.details.trim()}): only what is served now can be measured`,
      "start Triton with --model-control-mode=explicit to measure other settings",
    );
  }
}

/** Every variant has its model, and a loaded one the tensors that are sent and asked for. */
export async function checkModels(client: KserveClient, variants: readonly Variant[]): Promise<Check[]> {
  const index = await client.repositoryIndex();
  const names = [...new Set(index.map(({ name }) => name))];
  const checks: Check[] = [];
  for (const variant of variants) {
    const check = `model of ${variant.name}`;
    const model = modelNameFor(variant, index);
    if (model === null) {
      const missing = `not in the repository${knownNames(variant.artefact.name, names, "models")}`;
      checks.push(
        failed(
          check,
          missing,
          `upload ${variant.name}/ or ${variant.artefact.name}/, or leave the variant out`,
        ),
      );
    } else if (!(await client.modelReady(model))) {
      checks.push(ok(check, `${model}, not loaded now: its tensors are checked when it is`));
    } else {
      checks.push(await checkLoaded(client, check, model, variant));
    }
  }
  return checks;
}

async function checkLoaded(
  client: KserveClient,
  check: string,
  model: string,
  { artefact }: Variant,
): Promise<Check> {
  const { inputs, outputs } = await client.modelMetadata(model);
  const problems = [
    ...tensorProblems("input", artefact.input, inputs),
    ...tensorProblems("output", artefact.output, outputs),
  ];
  if (problems.length > 0)
    return failed(
      check,
      `${model}: ${problems.join("; ")}`,
      "put the variant's tensors right, or serve the model that it means",
    );
  const kinds = kindsOf(await client.modelConfig(model));
  const found = `${model}, loaded, ${artefact.input.type} [${artefact.input.dims.join(", ")}]`;
  return kinds.includes("KIND_CPU")
    ? warning(check, `${found}, on the CPU`, "ask for KIND_GPU in instance_group if a GPU is meant")
    : ok(check, found);
}

function kindsOf(config: ModelConfig): string[] {
  return config.instance_group.map(({ kind }) => kind);
}

function tensorProblems(
  kind: "input" | "output",
  wanted: TensorSpec,
  served: readonly TensorMetadata[],
): string[] {
  const found = served.find(({ name }) => name === wanted.name);
  if (!found)
    return [
      `${kind} "${wanted.name}" does not exist${knownNames(
        wanted.name,
        served.map(({ name }) => name),
        `${kind}s`,
      )}`,
    ];
  const dims = found.shape.slice(1);
  const fits =
    dims.length === wanted.dims.length && dims.every((dim, axis) => dim < 1 || dim === wanted.dims[axis]);
  return [
    ...(found.datatype === wanted.type
      ? []
      : [`${kind} "${wanted.name}" is ${found.datatype}, not ${wanted.type}`]),
    ...(fits ? [] : [`${kind} "${wanted.name}" is [${dims.join(", ")}], not [${wanted.dims.join(", ")}]`]),
  ];
}

/**
 * Metrics and GPUs.
 * @param missing why there are no metrics; null when there are
 */
export function checkMetrics(
  samples: readonly MetricSample[],
  urls: readonly string[],
  missing: string | null,
): Check[] {
  if (missing !== null)
    return [
      warning(
        "metrics",
        missing,
        "without them there is no batch size, queue time and GPU share in the result",
      ),
    ];
  const metrics = ok("metrics", urls.join(", "));
  const gpus = samples.filter(({ name }) => name === tritonMetrics.gpuUtilization).length;
  if (gpus === 0) {
    const fix =
      "on a machine with a GPU: start Triton with --allow-gpu-metrics=true and the NVIDIA driver visible";
    return [metrics, warning("GPU", "GPU metrics absent", fix)];
  }
  const bytes = sumOf(samples, tritonMetrics.gpuMemoryTotalBytes);
  const memory = bytes === null ? "" : `, ${(bytes / 1e9).toFixed(1)} GB`;
  return [metrics, ok("GPU", `${gpus}${memory}`)];
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)]!;
}
