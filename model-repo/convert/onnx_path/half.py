"""FP16 in the graph itself, for TensorRT 11, which has no precision flags any more."""

from __future__ import annotations

import onnx

from ..errors import ConversionError


def half(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy that computes in FP16 and keeps the types of its input and output.

    The normalisation and the softmax stay in FP32: pixels minus a mean lose nothing there, and probabilities must add up.
    """
    from onnxruntime.transformers import float16

    kept = [node.name for node in model.graph.node if node.name.startswith(("front/", "back/"))]
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    result: onnx.ModelProto = float16.convert_float_to_float16(copy, keep_io_types=True, node_block_list=kept)
    if not any(tensor.data_type == onnx.TensorProto.FLOAT16 for tensor in result.graph.initializer):
        raise ConversionError(
            "not-converted", "the conversion to FP16 did not take: no weight is FP16", "Use INT8, or FP32"
        )
    return result
