import type { CompleteModelConfig } from "../../model-repo/config-types";

/** Bytes of an element, by KServe's spelling of the type; 0 for BYTES, whose elements have their own lengths. */
const ELEMENT_BYTES: Readonly<Record<string, number>> = {
  BOOL: 1,
  UINT8: 1,
  UINT16: 2,
  UINT32: 4,
  UINT64: 8,
  INT8: 1,
  INT16: 2,
  INT32: 4,
  INT64: 8,
  FP16: 2,
  FP32: 4,
  FP64: 8,
  BF16: 2,
  BYTES: 0,
};

/** An input or output of a model as requests name it. */
export interface TensorRule {
  readonly name: string;
  /** KServe's spelling, e.g. "FP32". */
  readonly datatype: string;
  /** Shape with the batch dimension, if the model batches, as -1. */
  readonly shape: readonly number[];
  readonly elementBytes: number;
}

/** What requests to a model must look like. */
export interface IoRules {
  readonly inputs: readonly TensorRule[];
  readonly outputs: readonly TensorRule[];
  /** Triton's max_batch_size; 0: the model has no batch dimension. */
  readonly maxBatchSize: number;
}

export function ioRulesOf(config: CompleteModelConfig): IoRules {
  const rule = (tensor: { name: string; data_type: string; dims: readonly number[] }): TensorRule => {
    const datatype = datatypeOf(tensor.data_type);
    return {
      name: tensor.name,
      datatype,
      shape: config.max_batch_size > 0 ? [-1, ...tensor.dims] : tensor.dims,
      elementBytes: ELEMENT_BYTES[datatype] ?? 0,
    };
  };
  return {
    inputs: config.input.map(rule),
    outputs: config.output.map(rule),
    maxBatchSize: config.max_batch_size,
  };
}

/** KServe's spelling of a model configuration's type: TYPE_FP32 is FP32, TYPE_STRING is BYTES. */
export function datatypeOf(dataType: string): string {
  return dataType === "TYPE_STRING" ? "BYTES" : dataType.replace("TYPE_", "");
}

export function isKnownDatatype(datatype: string): boolean {
  return Object.hasOwn(ELEMENT_BYTES, datatype);
}
