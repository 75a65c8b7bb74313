/** The key `model` and the keys of image folders, and the conversion plan that follows from them. */
import { describe, expect, it } from "vitest";
import { parseConfig, type RawConfig } from "../../stack/config";
import { ConfigError } from "../../stack/config-error";
import { conversionPlan, variantFiles } from "../../stack/variants";

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
    ['{"source": "gs://b/m", "imageSize": 0}', /^model imageSize:/],
    ['{"source": "gs://b/m", "imageSize": [299]}', /^model imageSize:/],
    ['{"source": "gs://b/m", "classes": 1.5}', /^model classes:/],
    ['{"source": "gs://b/m", "labels": ["a", "b\\nc"]}', /^model labels\.1: is empty or has a line break/],
    [
      '{"source": "gs://b/m", "classes": 20, "labels": ["a", "b"]}',
      /^model labels: has 2 names, but classes is 20; give one name a class$/,
    ],
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

describe("a model of one's own", () => {
  const source = "gs://mine/flowers";
  const of = (more: object) => config({ model: JSON.stringify({ source, ...more }) });
  const { served: documents } = config({}).variants;

  it("is served with its picture size, classes and labels, by every variant", () => {
    const { variants, sourceModel, bytesPerRequest } = of({
      imageSize: [299, 300],
      labels: ["rose", "tulip"],
    });
    for (const variant of [variants.served, ...variants.repository]) {
      expect(variant.artefact).toMatchObject({
        input: { name: "input", type: "FP32", dims: [299, 300, 3], format: "FORMAT_NHWC" },
        output: { name: "probabilities", dims: [2] },
        labelsFile: "labels.txt",
      });
      const files = variantFiles(variant, sourceModel);
      expect(files["labels.txt"]).toBe("rose\ntulip\n");
      expect(files["config.pbtxt"]).toMatch(
        /dims: \[ ?299, 300, 3 ?\][^]*dims: \[ ?2 ?\][^]*label_filename: "labels.txt"/,
      );
    }
    expect(bytesPerRequest).toBe(299 * 300 * 3 * 4);
    expect(variants.served.artefact.name).toBe(documents.artefact.name);
  });

  it("has no labels when another number of classes brings none, and ImageNet's for 1000", () => {
    const unnamed = of({ imageSize: 64, classes: 20 });
    expect(unnamed.variants.served.artefact).toMatchObject({
      input: { dims: [64, 64, 3] },
      output: { dims: [20] },
      labelsFile: null,
    });
    expect(Object.keys(variantFiles(unnamed.variants.served, unnamed.sourceModel))).toEqual(["config.pbtxt"]);
    const imagenet = of({});
    expect(imagenet.variants.served.artefact).toEqual(documents.artefact);
    expect(variantFiles(imagenet.variants.served, imagenet.sourceModel)).toEqual(
      variantFiles(documents, "resnet50"),
    );
  });

  it("is not compared with what was published about ResNet-50", () => {
    expect(documents.published).not.toBeNull();
    expect(of({}).variants.repository.every(({ published }) => published === null)).toBe(true);
  });

  it("is one whose plan has size and classes where the converter reads them", () => {
    const { variants, sourceModel } = of({ imageSize: 299, classes: 20, mean: 127.5 });
    const images = { source: "x", count: 1 };
    const settings = { image: "i:1", gpuType: "t", model: sourceModel, calibration: images, heldOut: images };
    const plan = JSON.parse(conversionPlan(variants.repository, settings)) as Record<string, unknown>;
    expect(plan["model"]).toEqual({ source, mean: 127.5 });
    expect(plan["artefacts"]).toContainEqual(
      expect.objectContaining({
        input: expect.objectContaining({ dims: [299, 299, 3] }) as unknown,
        output: expect.objectContaining({ dims: [20] }) as unknown,
      }),
    );
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
