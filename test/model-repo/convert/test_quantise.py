"""INT8 with explicit Q/DQ on real photographs."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from conftest import PHOTOS, SIZE, small_network
from convert.accuracy import agreement
from convert.errors import ConversionError
from convert.images import read_images
from convert.onnx_path.graph import run
from convert.onnx_path.quantise import as_feeds, quantise
from convert.onnx_path.serving import served_model
from onnx import TensorProto, helper, numpy_helper
from test_serving import NETWORK


@pytest.fixture(scope="module")
def pixels() -> Any:
    return read_images(PHOTOS, SIZE, SIZE)


def zero_points(model: onnx.ModelProto) -> list[Any]:
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    return [constants[node.input[2]] for node in model.graph.node if node.op_type == "QuantizeLinear"]


@pytest.mark.parametrize("served_type", ["FP32", "UINT8"])
@pytest.mark.parametrize("flavour", ["cpu", "tensorrt"])
def test_answers_stay_close(pixels: Any, served_type: Any, flavour: Any) -> None:
    model = served_model(small_network(), NETWORK, served_type)
    feeds = list(as_feeds(pixels, served_type))
    quantised = quantise(model, feeds, flavour)
    compared = agreement(run(model, feeds), run(quantised, feeds))
    assert compared.top1Agreement == 1
    assert 0 < compared.maxProbabilityDifference < 0.1
    kinds = [node.op_type for node in quantised.graph.node]
    assert kinds.count("QuantizeLinear") >= 2
    # The normalisation stays as it was: quantising pixels before it would waste the range.
    first = next(node for node in quantised.graph.node if node.op_type == "Sub")
    assert first.input[0] in ("input", "front/cast")


def test_tensorrt_flavour_is_signed_and_symmetric(pixels: Any) -> None:
    model = served_model(small_network(), NETWORK, "FP32")
    for points in zero_points(quantise(model, as_feeds(pixels, "FP32"), "tensorrt")):
        assert points.dtype == np.int8
        assert not points.any()


def test_tensorrt_gets_float_biases(pixels: Any) -> None:
    for flavour, integers in (("cpu", True), ("tensorrt", False)):
        model = served_model(small_network(), NETWORK, "FP32")
        quantised = quantise(model, as_feeds(pixels, "FP32"), flavour)  # type: ignore[arg-type]
        found = any(tensor.data_type == TensorProto.INT32 for tensor in quantised.graph.initializer)
        assert found == integers


def test_weights_are_quantised_per_channel(pixels: Any) -> None:
    quantised = quantise(served_model(small_network(), NETWORK, "FP32"), as_feeds(pixels, "FP32"), "cpu")
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in quantised.graph.initializer}
    scales = [constants[n.input[1]].shape for n in quantised.graph.node if n.op_type == "DequantizeLinear"]
    assert (8,) in scales


def test_batch_stays_open(pixels: Any) -> None:
    quantised = quantise(served_model(small_network(), NETWORK, "FP32"), as_feeds(pixels, "FP32"), "cpu")
    for batch in (1, 2, 5):
        assert run(quantised, [np.zeros((batch, SIZE, SIZE, 3), np.float32)]).shape[0] == batch


def test_nothing_to_quantise(pixels: Any) -> None:
    nodes = [helper.make_node("Exp", ["input"], ["y"])]
    shape: list[int | str] = ["N", SIZE, SIZE, 3]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("input", "y")]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    with pytest.raises(ConversionError, match="did not take"):
        quantise(model, as_feeds(pixels, "FP32"), "cpu")


def test_feeds_have_the_batch_asked_for() -> None:
    pixels = np.zeros((5, 2, 2, 3), np.uint8)
    assert [len(feed) for feed in as_feeds(pixels, "UINT8", 2)] == [2, 2, 1]
    assert next(as_feeds(pixels, "FP32")).dtype == np.float32
