/** A model that takes a request's bytes and does next to nothing with them: what limits it is the way to the server. */
import { WireWriter } from "../kserve/wire-writer";
import type { TensorSpec } from "../model-repo/variant";

/** Numbers of onnx.proto's TensorProto.DataType and AttributeProto.AttributeType. */
const dataTypes = { FP32: 1, UINT8: 2 } as const;
const attributeTypes = { int: 2, ints: 7 } as const;

export const noOpModelName = "preflight_wire_probe";
const outputName = "least";
/** Batches of a few requests, so that the server's own work per request stays small. */
const maxBatchSize = 16;

/** Configuration as Triton's repository API takes it: on the CPU, so that nothing is copied to a GPU. */
export function noOpConfig({ name, type, dims }: TensorSpec): string {
  return JSON.stringify({
    name: noOpModelName,
    platform: "onnxruntime_onnx",
    max_batch_size: maxBatchSize,
    input: [{ name, data_type: `TYPE_${type}`, dims }],
    output: [{ name: outputName, data_type: "TYPE_FP32", dims: [dims[0]] }],
    instance_group: [{ kind: "KIND_CPU", count: 2 }],
    dynamic_batching: { max_queue_delay_microseconds: 0 },
  });
}

/** Output tensor of the model: the least value of each row of the image. */
export function noOpOutput({ dims }: TensorSpec): TensorSpec {
  return { name: outputName, type: "FP32", dims: dims.slice(0, 1), format: null };
}

/** ONNX (IR version 8, opset 13): input [N, a, b, c] -> ReduceMin over b and c -> cast to FP32 -> [N, a]. */
export function noOpOnnx({ name, type, dims }: TensorSpec): Buffer {
  const axes = dims.slice(1).map((_dim, index) => index + 2);
  return new WireWriter()
    .integer(1, 8)
    .message(7, (graph) => {
      graph.message(1, (node) => {
        node.text(1, name).text(2, "rows").text(4, "ReduceMin");
        node.message(5, (attribute) => {
          attribute.text(1, "axes");
          for (const axis of axes) attribute.integer(8, axis);
          attribute.integer(20, attributeTypes.ints);
        });
        node.message(5, (attribute) =>
          attribute.text(1, "keepdims").integer(3, 0).integer(20, attributeTypes.int),
        );
      });
      graph.message(1, (node) => {
        node.text(1, "rows").text(2, outputName).text(4, "Cast");
        node.message(5, (attribute) =>
          attribute.text(1, "to").integer(3, dataTypes.FP32).integer(20, attributeTypes.int),
        );
      });
      graph.text(2, "no_op");
      valueInfo(graph, 11, name, dataTypes[type], dims);
      valueInfo(graph, 12, outputName, dataTypes.FP32, dims.slice(0, 1));
    })
    .message(8, (opset) => opset.text(1, "").integer(2, 13))
    .finish();
}

/** A tensor with an open batch dimension. */
function valueInfo(
  graph: WireWriter,
  field: number,
  name: string,
  type: number,
  dims: readonly number[],
): void {
  graph.message(field, (value) =>
    value.text(1, name).message(2, (typeProto) =>
      typeProto.message(1, (tensor) =>
        tensor.integer(1, type).message(2, (shape) => {
          shape.message(1, (dim) => dim.text(2, "N"));
          for (const size of dims) shape.message(1, (dim) => dim.integer(1, size));
        }),
      ),
    ),
  );
}
