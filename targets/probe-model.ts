/** A model on the simulated T4 that takes almost no time: what limits its throughput is this machine. */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { writeConfigPbtxt } from "../model-repo/config-pbtxt";
import { declaredModelConfig } from "../model-repo/model-config";
import { modelVersion } from "../model-repo/repository";
import type { Variant } from "../model-repo/variant";
import { payloadBytesOf } from "../serving-model/t4";

/** Batches of a few requests form, as at a variant's own limit; larger ones would wait for company. */
const settings = { maxBatchSize: 16, instanceCount: 1, queueDelayUs: 0, preferredBatchSizes: [] } as const;
const law = {
  simulated_host_ms_per_image: "0",
  simulated_gpu_ms_per_batch: "1",
  simulated_gpu_ms_per_image: "0",
  simulated_ingress_requests_per_s: "Infinity",
};

/** Writes a model that takes the variant's input into a model repository, and returns it as a variant. */
export async function writeProbeModel(folder: string, { artefact }: Variant): Promise<Variant> {
  const probe: Variant = {
    ...settings,
    name: `host_probe_${payloadBytesOf(artefact.input)}`,
    artefact: { ...artefact, precision: "fp32", labelsFile: null },
    published: null,
  };
  const parameters = Object.fromEntries(
    Object.entries({ simulated_precision: "fp32", ...law }).map(([key, text]) => [
      key,
      { string_value: text },
    ]),
  );
  const config = { ...declaredModelConfig(probe, { warmup: false }), parameters };
  await mkdir(join(folder, probe.name, modelVersion), { recursive: true });
  await writeFile(join(folder, probe.name, "config.pbtxt"), writeConfigPbtxt(config));
  return probe;
}
