/** Model repository of the GPU example: one folder a precision and input type, all with examples/gpu/model.py. */
import { copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { writeConfigPbtxt } from "../../model-repo/config-pbtxt";
import { labelsFolder } from "../../model-repo/repository";

const labelsFile = "imagenet1k_labels.txt";

interface GpuModel {
  readonly name: string;
  readonly precision: "fp32" | "tf32" | "fp16";
  readonly input: "TYPE_FP32" | "TYPE_UINT8";
  readonly untuned: boolean;
}

/** `untuned` is the first version that one would write, for comparison; the others differ in precision and in bytes on the wire. */
export const gpuModels: readonly GpuModel[] = [
  { name: "untuned_fp16", precision: "fp16", input: "TYPE_FP32", untuned: true },
  ...(["fp32", "tf32", "fp16"] as const).flatMap((precision) => [
    { name: `${precision}_in32`, precision, input: "TYPE_FP32" as const, untuned: false },
    { name: `${precision}_in8`, precision, input: "TYPE_UINT8" as const, untuned: false },
  ]),
];

/** What the repository is for. */
export interface RepositoryKind {
  /** Python file of all models. */
  readonly modelFile: string;
  readonly instanceKind: "KIND_GPU" | "KIND_CPU";
  /** Default 64. */
  readonly maxBatchSize?: number;
}

const forGpu: RepositoryKind = { modelFile: join(__dirname, "model.py"), instanceKind: "KIND_GPU" };

/** Writes the repository; settings here are only a start, a sweep overrides them. */
export function makeGpuRepository(folder: string, kind: RepositoryKind = forGpu): void {
  for (const model of gpuModels) {
    mkdirSync(join(folder, model.name, "1"), { recursive: true });
    copyFileSync(kind.modelFile, join(folder, model.name, "1", "model.py"));
    copyFileSync(join(labelsFolder, labelsFile), join(folder, model.name, labelsFile));
    writeFileSync(
      join(folder, model.name, "config.pbtxt"),
      writeConfigPbtxt({
        name: model.name,
        backend: "python",
        max_batch_size: kind.maxBatchSize ?? 64,
        input: [{ name: "input", data_type: model.input, dims: [224, 224, 3] }],
        output: [{ name: "probabilities", data_type: "TYPE_FP32", dims: [1000], label_filename: labelsFile }],
        instance_group: [{ kind: kind.instanceKind, count: 1 }],
        dynamic_batching: { max_queue_delay_microseconds: 2000 },
        parameters: {
          FORCE_CPU_ONLY_INPUT_TENSORS: { string_value: "yes" },
          precision: { string_value: model.precision },
          untuned: { string_value: model.untuned ? "yes" : "no" },
        },
      }),
    );
  }
}
