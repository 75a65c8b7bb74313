import type { ConfigRule } from "../config-rules";

/** Rules of what is converted, and with which images. */
export const conversionRules: readonly ConfigRule[] = [
  folder("calibrationImages"),
  folder("heldOutImages"),
  {
    keys: ["model", "artefactPath"],
    problem: ({ sourceModel, artefactPath }) =>
      artefactPath === "tf-trt" && sourceModel !== "resnet50" && sourceModel.source.endsWith(".onnx")
        ? "is ONNX, which TF-TRT does not take; set artefactPath to onnx-tensorrt, or name a SavedModel"
        : null,
  },
  {
    keys: ["model"],
    problem: ({ sourceModel }) =>
      sourceModel !== "resnet50" && /\.h5$/.test(sourceModel.source) && sourceModel.architecture === undefined
        ? "is a file of Keras weights without model.architecture; set that to resnet50, or name a SavedModel"
        : null,
  },
];

function folder(key: "calibrationImages" | "heldOutImages"): ConfigRule {
  return {
    keys: [key],
    problem: (config) =>
      config[key] === "" || /^gs:\/\/[a-z0-9][A-Za-z0-9._/@:+-]*$/.test(config[key])
        ? null
        : `"${config[key]}" is no bucket folder; use gs://BUCKET/FOLDER without spaces, or leave it empty`,
  };
}
