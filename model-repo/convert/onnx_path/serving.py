"""Graph surgery: what clients send goes in, probabilities come out, and everything between is part of the model.

A client sends pixels 0..255, RGB, NHWC. In front of the network stand: a cast (when bytes are sent: a quarter of the wire traffic), the
channel order, (x - mean) * scale, and the layout; behind it a softmax when the network ends with scores.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import onnx
from onnx import TensorProto, compose, helper, numpy_helper

from ..errors import ConversionError

ServedType = Literal["FP32", "UINT8"]
_ELEMENT = {"FP32": TensorProto.FLOAT, "UINT8": TensorProto.UINT8}
#: Prefix of everything that was in the network, so that its names cannot collide with the served ones.
_NETWORK = "network/"


@dataclass(frozen=True)
class Network:
    """How a network wants its images and how it answers."""

    input_name: str
    output_name: str
    height: int
    width: int
    classes: int
    layout: Literal["NHWC", "NCHW"]
    #: One value, or one a channel in the network's channel order; pixels are (x - mean) * scale.
    mean: tuple[float, ...]
    scale: tuple[float, ...]
    channels: Literal["RGB", "BGR"] = "RGB"
    scores: Literal["probabilities", "logits"] = "probabilities"


def served_model(
    model: onnx.ModelProto,
    network: Network,
    served_type: ServedType,
    input_name: str = "input",
    output_name: str = "probabilities",
) -> onnx.ModelProto:
    """The model with input [N, height, width, 3] of pixels 0..255 and output [N, classes] of probabilities.

    Raises ConversionError (`tensor-name`) if the network has no such input or output; the message lists what it has.
    """
    check_tensor_names(model, network)
    inner = compose.add_prefix(model, _NETWORK)
    graph = inner.graph
    front, constants = _front(network, served_type, input_name)
    nodes = [*front, *graph.node, *_back(network, output_name)]
    served = helper.make_graph(
        nodes,
        graph.name or "model",
        [helper.make_tensor_value_info(input_name, _ELEMENT[served_type], ["N", network.height, network.width, 3])],
        [helper.make_tensor_value_info(output_name, TensorProto.FLOAT, ["N", network.classes])],
        [*graph.initializer, *constants],
    )
    served.sparse_initializer.extend(graph.sparse_initializer)
    result = helper.make_model(
        served,
        opset_imports=inner.opset_import,
        ir_version=inner.ir_version,
        producer_name="triton-slo-stack",
        functions=inner.functions,
    )
    onnx.checker.check_model(result)
    return result


def check_tensor_names(model: onnx.ModelProto, network: Network) -> None:
    """Raises ConversionError (`tensor-name`) with the real names if the network's input or output is not there."""
    weights = {tensor.name for tensor in model.graph.initializer}
    inputs = [tensor.name for tensor in model.graph.input if tensor.name not in weights]
    outputs = [tensor.name for tensor in model.graph.output]
    for wanted, real, kind in ((network.input_name, inputs, "input"), (network.output_name, outputs, "output")):
        if wanted not in real:
            raise ConversionError(
                "tensor-name",
                f'the model has no {kind} "{wanted}"; its {kind}s are {", ".join(real) or "none"}',
                f"Set model.{kind}Tensor to one of them",
            )
    extra = [name for name in inputs if name != network.input_name]
    if extra:
        raise ConversionError(
            "tensor-name",
            f"the model has further inputs: {', '.join(extra)}",
            "Export it with the image as its only input",
        )


def _per_channel(values: tuple[float, ...]) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return np.asarray(values, np.float32)


def _front(
    network: Network, served_type: ServedType, input_name: str
) -> tuple[list[onnx.NodeProto], list[onnx.TensorProto]]:
    nodes: list[onnx.NodeProto] = []
    constants: list[onnx.TensorProto] = []
    current = input_name

    def step(op: str, name: str, *further: str, **attributes: Any) -> None:
        nonlocal current
        nodes.append(helper.make_node(op, [current, *further], [name], name=name, **attributes))
        current = name

    def constant(name: str, value: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> str:
        constants.append(numpy_helper.from_array(value, name))
        return name

    if served_type == "UINT8":
        step("Cast", "front/cast", to=TensorProto.FLOAT)
    if network.channels == "BGR":
        step("Gather", "front/bgr", constant("front/order", np.array([2, 1, 0], np.int64)), axis=3)
    if any(network.mean):
        step("Sub", "front/centred", constant("front/mean", _per_channel(network.mean)))
    if any(value != 1 for value in network.scale):
        step("Mul", "front/scaled", constant("front/scale", _per_channel(network.scale)))
    if network.layout == "NCHW":
        step("Transpose", "front/nchw", perm=[0, 3, 1, 2])
    target = _NETWORK + network.input_name
    nodes.append(helper.make_node("Identity", [current], [target], name="front/identity"))
    return nodes, constants


def _back(network: Network, output_name: str) -> list[onnx.NodeProto]:
    flat = "back/flat"
    last = "Softmax" if network.scores == "logits" else "Identity"
    attributes: dict[str, Any] = {"axis": 1} if last == "Softmax" else {}
    return [
        # Some networks answer [N, classes, 1, 1].
        helper.make_node("Flatten", [_NETWORK + network.output_name], [flat], name=flat, axis=1),
        helper.make_node(last, [flat], [output_name], name="back/probabilities", **attributes),
    ]
