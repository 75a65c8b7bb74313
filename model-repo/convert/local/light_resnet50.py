"""The full-size ResNet-50 graph that the onnx package brings for its own tests: 8.2 GFLOP an image, but no trained weights.

Every weight is a constant made by a ConstantOfShape node, so the file is a few kilobytes and runtimes unfold it when they load it.
"""

from __future__ import annotations

from pathlib import Path

import onnx
from onnx import helper

from ..errors import ConversionError
from ..onnx_path.graph import with_open_batch
from ..onnx_path.serving import Network
from .efficientnet_lite0 import IR_VERSION

NETWORK = Network(
    input_name="gpu_0/data_0",
    output_name="gpu_0/softmax_1",
    height=224,
    width=224,
    classes=1000,
    layout="NCHW",
    mean=(127.0,),
    scale=(1 / 128,),
)


def light_resnet50() -> onnx.ModelProto:
    """The graph with an open batch. Raises ConversionError (`model`) if the package has none."""
    path = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light" / "light_resnet50.onnx"
    if not path.is_file():
        raise ConversionError("model", f"this onnx package has no {path.name}", "Install onnx 1.18.0")
    model = onnx.load(path)
    _keep_only_used_inputs(model.graph)
    model.ir_version = IR_VERSION
    return with_open_batch(model, NETWORK)


def _keep_only_used_inputs(graph: onnx.GraphProto) -> None:
    """The old format lists weights as inputs too, and this file keeps some that nothing reads."""
    used = {name for node in graph.node for name in node.input}
    constants = [tensor for tensor in graph.initializer if tensor.name in used]
    image = next(tensor for tensor in graph.input if tensor.name == NETWORK.input_name)
    del graph.initializer[:], graph.input[:]
    graph.initializer.extend(constants)
    graph.input.append(helper.make_tensor_value_info(image.name, onnx.TensorProto.FLOAT, [1, 3, 224, 224]))
