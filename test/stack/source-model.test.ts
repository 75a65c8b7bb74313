/** The key `model` and the keys of image folders, and the conversion plan that follows from them. */
import { describe, expect, it } from "vitest";
import { parseConfig, type RawConfig } from "../../stack/config";
import { ConfigError } from "../../stack/config-error";
import { conversionPlan } from "../../stack/variants";

const config = (raw: RawConfig) => parseConfig({ project: "my-project", ...raw });

function problems(raw: RawConfig): string[] {
  try {
    config(raw);
    return [];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.problems.map(({ key, message }) => `${key} ${message}`);
  }
}

/** ONNX path with one variant, so that other rules have nothing to say. */
const onnx = {
  artefactPath: "onnx-tensorrt",
  variant: JSON.stringify({
    artefact: "trt_fp16_bs64",
    maxBatchSize: 64,
    instanceCount: 1,
    queueDelayUs: 1000,
  }),
  repositoryVariants: "[]",
};

describe("model", () => {
  it("is the documents' ResNet-50 by default", () => {
    expect(config({}).sourceModel).toBe("resnet50");
    expect(config({}).converterRequirements).toBeNull();
  });

  it("is read as an object", () => {
    const model = {
      source: "gs://mine/model.zip",
      mean: [1, 2, 3],
      scale: 0.5,
      channels: "BGR",
      scores: "logits",
    };
    expect(config({ model: JSON.stringify(model) }).sourceModel).toEqual(model);
  });

  it.each([
    ["resnet51", /^model "resnet51" is no known model/],
    ["{}", /^model source:/],
    ['{"source": "/tmp/m"}', /^model source: use https:\/\/ or gs:\/\//],
    ['{"source": "gs://b/m", "inputName": "x"}', /^model model: .*inputName/],
    ['{"source": "gs://b/m", "mean": [1, 2]}', /^model mean:/],
    ['{"source": "gs://b/m", "checksum": "1"}', /^model checksum: use sha256/],
    ['{"source": "gs://b/m.onnx"}', /^model is ONNX, which TF-TRT does not take/],
    ['{"source": "https://e.org/w.h5"}', /^model is a file of Keras weights/],
  ])("%s is refused", (model, message) => {
    expect(problems({ model })).toEqual([expect.stringMatching(message)]);
  });

  it("decides what the container has to install", () => {
    expect(config({ ...onnx, model: '{"source": "gs://b/m.onnx"}' }).converterRequirements).toBe("local.txt");
    expect(config({ ...onnx, model: '{"source": "gs://b/m"}' }).converterRequirements).toBe("tensorflow.txt");
    expect(config(onnx).converterRequirements).toBe("tensorflow.txt");
  });
});

it("image folders are buckets' folders", () => {
  expect(problems({ calibrationImages: "gs://mine/imagenet/calibration" })).toEqual([]);
  expect(problems({ calibrationImages: "images", heldOutImages: "gs://a b" })).toEqual([
    expect.stringMatching(/^calibrationImages "images" is no bucket folder/),
    expect.stringMatching(/^heldOutImages "gs:\/\/a b" is no bucket folder/),
  ]);
});

it("the plan carries all of it", () => {
  const plan = JSON.parse(
    conversionPlan(config({}).variants.repository, {
      image: "i:1",
      gpuType: "nvidia-tesla-t4",
      model: "resnet50",
      calibration: { source: "calibration", count: 500 },
      heldOut: { source: "held-out", count: 100 },
    }),
  ) as Record<string, unknown>;
  expect(plan).toMatchObject({
    schemaVersion: 1,
    model: "resnet50",
    calibration: { source: "calibration", count: 500 },
    heldOut: { source: "held-out", count: 100 },
  });
});
