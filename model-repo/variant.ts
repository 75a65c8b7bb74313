/**
 * A variant is one way to serve the model: a model artefact (precision) and serving settings. It is the unit that the
 * stack deploys, the sweep measures and the report ranks.
 */

/** Numeric precision of an artefact's engines. `original` is the unconverted SavedModel (FP32 without TensorRT). */
export type Precision = "original" | "fp32" | "fp16" | "int8";

/**
 * `platform` of Triton's model configuration. `other`: a model that somebody else deployed on any other backend; it can be
 * measured, but no configuration is written for it.
 */
export type Platform = "tensorflow_savedmodel" | "tensorrt_plan" | "onnxruntime_onnx" | "other";

/** Element type of a tensor, in Triton's model-configuration spelling without the `TYPE_` prefix. */
export type TensorType = "FP32" | "UINT8";

/** A model file (or folder) made by one conversion: what several variants may share. */
export interface ModelArtefact {
  /** Unique name and folder in the model repository bucket, e.g. `tftrt_fp16_bs64`. */
  readonly name: string;
  readonly platform: Platform;
  readonly precision: Precision;
  /** Largest batch the artefact's engines were built for; null when any batch is served (no built engines). */
  readonly builtMaxBatchSize: number | null;
  readonly input: TensorSpec;
  readonly output: TensorSpec;
  /** File of labels beside config.pbtxt, one class a line; null if the output has none. */
  readonly labelsFile: string | null;
}

export interface TensorSpec {
  readonly name: string;
  readonly type: TensorType;
  /** Shape without the batch dimension, e.g. [224, 224, 3]. */
  readonly dims: readonly number[];
  /** Layout of an image input; null for other tensors. */
  readonly format: "FORMAT_NHWC" | "FORMAT_NCHW" | null;
}

export interface Variant {
  /** Unique, also the model's name in Triton; [a-z0-9_]+ */
  readonly name: string;
  readonly artefact: ModelArtefact;
  /** Triton's max_batch_size, >= 1. */
  readonly maxBatchSize: number;
  /** Instances on the one GPU, >= 1. */
  readonly instanceCount: number;
  /** dynamic_batching.max_queue_delay_microseconds, >= 0. */
  readonly queueDelayUs: number;
  /** dynamic_batching.preferred_batch_size; empty means none. */
  readonly preferredBatchSizes: readonly number[];
  /** Published figure of the documents for this variant, if any. */
  readonly published: PublishedFigure | null;
}

/** What a document says about a variant. */
export interface PublishedFigure {
  /** Requests per second. */
  readonly rps: number;
  /** `limit`: the highest rate that held the SLO. `reached`: a goal that was reached; the limit was not sought. */
  readonly kind: "limit" | "reached";
  /** GPU utilisation seen there, 0..1; null if not stated. */
  readonly gpuBusy: number | null;
  readonly source: string;
}
