"""Static INT8 quantisation with explicit QuantizeLinear/DequantizeLinear nodes, calibrated on real images."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
import onnx
from numpy.typing import NDArray

from ..errors import ConversionError

Array = NDArray[Any]
#: `cpu`: unsigned activations, which ONNX Runtime's integer kernels want. `tensorrt`: signed and symmetric, which TensorRT demands
#: of explicit quantisation (zero points must be 0), and biases left in FP32.
Flavour = Literal["cpu", "tensorrt"]

_QUANTISED_OPS = ("Conv", "Gemm", "MatMul", "Add", "GlobalAveragePool", "AveragePool", "MaxPool", "Clip", "Relu")


class _Reader:
    """Calibration batches as ONNX Runtime asks for them."""

    def __init__(self, input_name: str, feeds: Iterable[Array]) -> None:
        self._input_name = input_name
        self._feeds = iter(feeds)

    def get_next(self) -> dict[str, Array] | None:
        feed = next(self._feeds, None)
        return None if feed is None else {self._input_name: feed}


def quantise(model: onnx.ModelProto, feeds: Iterable[Array], flavour: Flavour) -> onnx.ModelProto:
    """Quantises convolutions and matrix products, weights per channel.

    `feeds` are arrays for the model's one input. Raises ConversionError (`quantisation`) if nothing was quantised.
    """
    from onnxruntime import quantization as ort

    with tempfile.TemporaryDirectory(prefix="quantise-") as folder:
        source, prepared, target = (Path(folder) / f"{name}.onnx" for name in ("source", "prepared", "target"))
        onnx.save(model, source)
        ort.shape_inference.quant_pre_process(str(source), str(prepared), skip_symbolic_shape=True)
        ort.quantize_static(
            str(prepared),
            str(target),
            _Reader(model.graph.input[0].name, feeds),
            quant_format=ort.QuantFormat.QDQ,
            op_types_to_quantize=list(_QUANTISED_OPS),
            per_channel=True,
            activation_type=ort.QuantType.QUInt8 if flavour == "cpu" else ort.QuantType.QInt8,
            weight_type=ort.QuantType.QInt8,
            calibrate_method=ort.CalibrationMethod.MinMax,
            extra_options={
                "ActivationSymmetric": flavour == "tensorrt",
                "WeightSymmetric": True,
                "QuantizeBias": flavour == "cpu",
            },
        )
        quantised = onnx.load(target)
    count = sum(node.op_type == "QuantizeLinear" for node in quantised.graph.node)
    if count == 0:
        raise ConversionError(
            "quantisation",
            "the quantisation did not take: the graph has no QuantizeLinear node",
            f"Only these operations are quantised: {', '.join(_QUANTISED_OPS)}",
        )
    return quantised


def as_feeds(pixels: NDArray[np.uint8], served_type: str, batch: int = 1) -> Iterator[Array]:
    """Pixels [images, height, width, 3] as feeds of the served input type, one at a time: floats take four times the memory."""
    element = np.uint8 if served_type == "UINT8" else np.float32
    for start in range(0, len(pixels), batch):
        yield pixels[start : start + batch].astype(element)
