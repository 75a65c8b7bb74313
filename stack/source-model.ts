import { z } from "zod";
import type { ConfigValues } from "./config-keys";

/** One number, or three: one a channel in the model's channel order. */
const perChannel = z.union([z.number(), z.array(z.number()).length(3)]);

/** Pixels of a side. */
const side = z.number().int().min(1).max(4096);

/**
 * The model to convert. Everything but `source` has a default: that of the conversion plan (`model-repo/convert/plan.py`), and for what
 * is served the documents' ResNet-50.
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
  /** Size of the pictures that the model takes: one number for square ones, or [height, width]. Default 224. */
  imageSize: z.union([side, z.tuple([side, side])]).optional(),
  /** Number of classes that it answers. Default: as many as there are labels, else 1000. */
  classes: z.number().int().min(1).max(1_000_000).optional(),
  /** Names of the classes in their order. Default: ImageNet's for 1000 classes, none for another number. */
  labels: z
    .array(z.string().regex(/^[^\r\n]+$/, "is empty or has a line break"))
    .min(1)
    .optional(),
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
  if (parsed.success) {
    const { classes, labels } = parsed.data;
    if (classes === undefined || labels === undefined || classes === labels.length) return parsed.data;
    reject("model", `labels: has ${labels.length} names, but classes is ${classes}; give one name a class`);
    return "resnet50";
  }
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
