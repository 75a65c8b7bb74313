import { describe, expect, it } from "vitest";
import { catalogue, findVariant, originalArtefact } from "../../model-repo/catalogue";
import { withTritonDefaults } from "../../model-repo/config-defaults";
import { declaredModelConfig, toConfigOverrideJson, toModelConfig } from "../../model-repo/model-config";
import { parseConfigPbtxt } from "../../model-repo/parse-pbtxt";
import type { Variant } from "../../model-repo/variant";

describe("Triton's defaults", () => {
  it("are those that Triton 2.51 answered for this file, in its order", () => {
    const file = `
      name: "sim" backend: "sim" max_batch_size: 64
      input [ { name: "input" data_type: TYPE_FP32 format: FORMAT_NHWC dims: [ 224, 224, 3 ] } ]
      output [ { name: "probabilities" data_type: TYPE_FP32 dims: [ 1000 ] label_filename: "labels.txt" } ]
      instance_group [ { count: 2 kind: KIND_CPU } ]
      dynamic_batching { preferred_batch_size: [ 64 ] max_queue_delay_microseconds: 20000 }
      parameters [ { key: "sim_base_us" value { string_value: "4000" } }, { key: "sim_per_item_us" value { string_value: "600" } } ]`;
    // Body of GET /v2/models/sim/config.
    const answered =
      '{"name":"sim","platform":"","backend":"sim","runtime":"","version_policy":{"latest":{"num_versions":1}},"max_batch_size":64,' +
      '"input":[{"name":"input","data_type":"TYPE_FP32","format":"FORMAT_NHWC","dims":[224,224,3],"is_shape_tensor":false,' +
      '"allow_ragged_batch":false,"optional":false,"is_non_linear_format_io":false}],"output":[{"name":"probabilities",' +
      '"data_type":"TYPE_FP32","dims":[1000],"label_filename":"labels.txt","is_shape_tensor":false,"is_non_linear_format_io":false}],' +
      '"batch_input":[],"batch_output":[],"optimization":{"priority":"PRIORITY_DEFAULT","input_pinned_memory":{"enable":true},' +
      '"output_pinned_memory":{"enable":true},"gather_kernel_buffer_threshold":0,"eager_batching":false},"dynamic_batching":' +
      '{"preferred_batch_size":[64],"max_queue_delay_microseconds":20000,"preserve_ordering":false,"priority_levels":0,' +
      '"default_priority_level":0,"priority_queue_policy":{}},"instance_group":[{"name":"sim_0","kind":"KIND_CPU","count":2,' +
      '"gpus":[],"secondary_devices":[],"profile":[],"passive":false,"host_policy":""}],"default_model_filename":"",' +
      '"cc_model_filenames":{},"metric_tags":{},"parameters":{"sim_base_us":{"string_value":"4000"},"sim_per_item_us":' +
      '{"string_value":"600"}},"model_warmup":[]}';
    expect(JSON.stringify(withTritonDefaults(parseConfigPbtxt(file)))).toBe(answered);
  });

  it("leave alone what is set, and are stable", () => {
    for (const variant of catalogue) {
      const complete = toModelConfig(variant);
      expect(complete).toMatchObject(declaredModelConfig(variant));
      expect(withTritonDefaults(complete)).toEqual(complete);
    }
    const set = { instance_group: [{ name: "own", kind: "KIND_GPU", count: 3, gpus: [1] }] } as const;
    expect(withTritonDefaults({ ...set, backend: "b", platform: "tensorrt_plan" })).toMatchObject({
      ...set,
      backend: "b",
    });
  });

  it("choose a kind by the devices there are", () => {
    const kinds = (gpus: number[]) => withTritonDefaults({ name: "m" }, gpus).instance_group;
    expect(kinds([0, 1])).toMatchObject([{ name: "m", kind: "KIND_GPU", count: 1, gpus: [0, 1] }]);
    expect(kinds([])).toMatchObject([{ kind: "KIND_CPU", gpus: [] }]);
  });
});

describe("a variant's configuration", () => {
  it("says what the documents' file says", () => {
    expect(toModelConfig(findVariant("tftrt_int8_bs16_count4"))).toMatchObject({
      name: "tftrt_int8_bs16_count4",
      platform: "tensorflow_savedmodel",
      backend: "tensorflow",
      max_batch_size: 16,
      default_model_filename: "model",
      dynamic_batching: { preferred_batch_size: [16], max_queue_delay_microseconds: 20_000 },
      instance_group: [{ kind: "KIND_GPU", count: 4, gpus: [0] }],
      output: [{ name: "probabilities", dims: [1000], label_filename: "imagenet1k_labels.txt" }],
    });
  });

  it("warms up engines at the largest batch and at one, and nothing else", () => {
    const sizes = (variant: Variant, warmup?: boolean) =>
      toModelConfig(variant, { warmup }).model_warmup.map(({ batch_size: size, inputs }) => [
        size,
        inputs["input"]?.zero_data,
      ]);
    const fp16 = findVariant("tftrt_fp16_bs8_count4");
    expect(sizes(fp16)).toEqual([
      [8, true],
      [1, true],
    ]);
    expect(sizes({ ...fp16, maxBatchSize: 1 })).toEqual([[1, true]]);
    expect(sizes(fp16, false)).toEqual([]);
    expect(sizes(findVariant("original"))).toEqual([]);
    expect(sizes(findVariant("original"), true)).toHaveLength(2);
  });

  it("follows the platform and the device", () => {
    const original = findVariant("original");
    const onnx = {
      ...original,
      artefact: {
        ...originalArtefact,
        platform: "onnxruntime_onnx" as const,
        precision: "fp16" as const,
        labelsFile: null,
      },
    };
    expect(toModelConfig(onnx)).toMatchObject({
      backend: "onnxruntime",
      default_model_filename: "model.onnx",
      optimization: {
        execution_accelerators: {
          gpu_execution_accelerator: [{ name: "tensorrt", parameters: { precision_mode: "FP16" } }],
        },
      },
      output: [{ label_filename: "" }],
    });
    const plan = {
      ...original,
      artefact: { ...originalArtefact, platform: "tensorrt_plan" as const },
      preferredBatchSizes: [],
    };
    expect(toModelConfig(plan, { instanceKind: "KIND_CPU" })).toMatchObject({
      backend: "tensorrt",
      default_model_filename: "model.plan",
      instance_group: [{ kind: "KIND_CPU", gpus: [] }],
      dynamic_batching: { preferred_batch_size: [64] },
    });
    expect(declaredModelConfig(plan).dynamic_batching).not.toHaveProperty("preferred_batch_size");
  });

  it("is whole in the override, because Triton replaces and does not merge", () => {
    for (const variant of catalogue)
      expect(JSON.parse(toConfigOverrideJson(variant))).toEqual(toModelConfig(variant));
  });
});
