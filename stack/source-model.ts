import { z } from "zod";
import type { ConfigValues } from "./config-keys";

/** One number, or three: one a channel in the model's channel order. */
const perChannel = z.union([z.number(), z.array(z.number()).length(3)]);

/**
 * The model to convert, as the conversion plan names it and `model-repo/convert/plan.py` reads it. Everything but `source` has
 * a default there.
 */
const sourceModelSchema = z.strictObject({
  /** SavedModel folder, .zip or .tar.gz of one, .onnx, or Keras weights .h5 (with architecture): https:// or gs://. */
  source: z
    .string()
    .regex(/^(https|gs):\/\/[A-Za-z0-9][A-Za-z0-9._/@:+-]*$/, "use https:// or gs:// and no spaces"),
  /** Checked after the download. */
  checksum: z
    .string()
    .regex(/^(sha256:[0-9a-f]{64}|md5:[0-9a-f]{32})$/, "use sha256: or md5: and hexadecimal digits")
    .optional(),
  architecture: z.literal("resnet50").optional(),
  signature: z.string().min(1).optional(),
  inputTensor: z.string().min(1).optional(),
  outputTensor: z.string().min(1).optional(),
  layout: z.enum(["NHWC", "NCHW"]).optional(),
  channels: z.enum(["RGB", "BGR"]).optional(),
  /** Pixels 0..255 become (x - mean) * scale. */
  mean: perChannel.optional(),
  scale: perChannel.optional(),
  scores: z.enum(["probabilities", "logits"]).optional(),
});

/** `resnet50`: Keras' ResNet-50 with ImageNet weights, the documents' model. */
export type SourceModel = "resnet50" | z.infer<typeof sourceModelSchema>;

/** Reads the key `model`; a broken one is reported and replaced by the default. */
export function readSourceModel(
  { model }: Pick<ConfigValues, "model">,
  reject: (key: string, message: string) => void,
): SourceModel {
  if (model === "resnet50") return model;
  const parsed = sourceModelSchema.safeParse(model);
  if (parsed.success) return parsed.data;
  const problems =
    typeof model === "string"
      ? [`"${model}" is no known model; use resnet50, or an object with at least source`]
      : parsed.error.issues.map((issue) => `${issue.path.join(".") || "model"}: ${issue.message}`);
  for (const problem of problems) reject("model", problem);
  return "resnet50";
}

/**
 * What the container needs beyond what it brings, a file of `model-repo/convert/requirements`: nothing on the path TF-TRT; ONNX
 * tools on the other, with TensorFlow if the model is not ONNX yet.
 */
export function converterRequirements(
  path: ConfigValues["artefactPath"],
  model: SourceModel,
): "local.txt" | "tensorflow.txt" | null {
  if (path === "tf-trt") return null;
  return model !== "resnet50" && model.source.endsWith(".onnx") ? "local.txt" : "tensorflow.txt";
}
