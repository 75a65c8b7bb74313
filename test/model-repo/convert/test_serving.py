"""Graph surgery: served input and output around any network."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from conftest import CLASSES, SIZE, small_network
from convert.errors import ConversionError
from convert.onnx_path.graph import check_batching, load, names_of, run, with_open_batch
from convert.onnx_path.half import half
from convert.onnx_path.serving import Network, served_model
from onnx import TensorProto, helper

NETWORK = Network("data", "scores", SIZE, SIZE, CLASSES, "NCHW", (127.0,), (1 / 64,), scores="logits")
PIXELS = np.random.default_rng(3).integers(0, 256, (5, SIZE, SIZE, 3), np.uint8)


def softmax(scores: Any) -> Any:
    exponents = np.exp(scores - scores.max(axis=1, keepdims=True))
    return exponents / exponents.sum(axis=1, keepdims=True)


def raw(model: onnx.ModelProto, images: Any) -> Any:
    return run(model, [images.astype(np.float32)])


def close(a: Any, b: Any) -> None:
    np.testing.assert_allclose(a, b, atol=1e-5)


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("channels", ["RGB", "BGR"])
@pytest.mark.parametrize(
    ("mean", "scale"), [((127.0,), (1 / 64,)), ((120.0, 110.0, 100.0), (0.01, 0.02, 0.03)), ((0.0,), (1.0,))]
)
def test_front_equals_preparation_by_hand(
    layout: Any, channels: Any, mean: tuple[float, ...], scale: tuple[float, ...]
) -> None:
    model = small_network(layout=layout)
    network = replace(NETWORK, layout=layout, channels=channels, mean=mean, scale=scale)
    images = PIXELS.astype(np.float32)[..., :: -1 if channels == "BGR" else 1]
    images = (images - np.array(mean)) * np.array(scale)
    expected = softmax(raw(model, images if layout == "NHWC" else images.transpose(0, 3, 1, 2)))
    for served_type in ("FP32", "UINT8"):
        served = served_model(model, network, served_type)
        element = np.uint8 if served_type == "UINT8" else np.float32
        close(run(served, [PIXELS.astype(element)]), expected)
        image, answer = served.graph.input[0], served.graph.output[0]
        assert (image.name, answer.name) == ("input", "probabilities")
        assert image.type.tensor_type.elem_type == (TensorProto.UINT8 if served_type == "UINT8" else TensorProto.FLOAT)


def test_uint8_is_cast_first_as_tensorrt_demands() -> None:
    served = served_model(small_network(), NETWORK, "UINT8")
    users = [node.op_type for node in served.graph.node if "input" in node.input]
    assert users == ["Cast"]


def test_probabilities_are_passed_on() -> None:
    model = small_network(softmax=True)
    served = served_model(model, replace(NETWORK, scores="probabilities"), "FP32")
    assert [node.op_type for node in served.graph.node].count("Softmax") == 1
    check_batching(served, NETWORK)


def test_own_names_do_not_collide_with_the_served_ones() -> None:
    model = small_network()
    for node in model.graph.node:
        for names in (node.input, node.output):
            for index, name in enumerate(names):
                names[index] = {"data": "probabilities", "scores": "input"}.get(name, name)
    model.graph.input[0].name, model.graph.output[0].name = "probabilities", "input"
    network = replace(NETWORK, input_name="probabilities", output_name="input")
    close(run(served_model(model, network, "FP32"), [PIXELS.astype(np.float32)]).sum(axis=1), 1)


def test_wrong_names_list_the_real_ones() -> None:
    with pytest.raises(ConversionError, match='no input "image"; its inputs are data') as caught:
        served_model(small_network(), replace(NETWORK, input_name="image"), "FP32")
    assert caught.value.kind == "tensor-name"
    with pytest.raises(ConversionError, match='no output "prob"; its outputs are scores'):
        served_model(small_network(), replace(NETWORK, output_name="prob"), "FP32")


def test_second_input_is_refused() -> None:
    model = small_network()
    model.graph.input.append(helper.make_tensor_value_info("training", TensorProto.BOOL, []))
    with pytest.raises(ConversionError, match="further inputs: training"):
        served_model(model, NETWORK, "FP32")


def test_the_only_names_need_not_be_given() -> None:
    assert names_of(small_network(), "", "") == ("data", "scores")
    model = small_network()
    model.graph.output.append(helper.make_tensor_value_info("p", TensorProto.FLOAT, ["N", 8, 1, 1]))
    assert names_of(model, "x", "") == ("x", "")


def test_batch_of_one_is_opened_in_input_and_reshape() -> None:
    model = small_network(batch=1)
    with pytest.raises(ConversionError, match="does not run with a batch of 3"):
        check_batching(served_model(model, NETWORK, "FP32"), NETWORK)
    served = served_model(with_open_batch(model, NETWORK), NETWORK, "FP32")
    check_batching(served, NETWORK)
    one_by_one = [run(served, [PIXELS[index : index + 1].astype(np.float32)]) for index in range(5)]
    close(run(served, [PIXELS.astype(np.float32)]), np.concatenate(one_by_one))


def test_open_image_size_takes_the_served_one() -> None:
    model = with_open_batch(small_network(size="S"), NETWORK)
    dimensions = model.graph.input[0].type.tensor_type.shape.dim
    assert [d.dim_param or d.dim_value for d in dimensions] == ["N", 3, SIZE, SIZE]


@pytest.mark.parametrize(
    ("model", "network", "message"),
    [
        (small_network(size=8), NETWORK, r"the input is \[any, 3, 8, 8\]; \[any, 3, 16, 16\] \(NCHW\) is needed"),
        (small_network(), replace(NETWORK, layout="NHWC"), r"\[any, 16, 16, 3\] \(NHWC\) is needed"),
    ],
)
def test_other_shapes(model: onnx.ModelProto, network: Network, message: str) -> None:
    with pytest.raises(ConversionError, match=message) as caught:
        with_open_batch(model, network)
    assert caught.value.kind == "shape"


def test_unknown_rank() -> None:
    model = small_network()
    model.graph.input[0].type.tensor_type.ClearField("shape")
    with pytest.raises(ConversionError, match="of unknown rank"):
        with_open_batch(model, NETWORK)


def test_wrong_number_of_classes() -> None:
    network = replace(NETWORK, classes=3)
    with pytest.raises(ConversionError, match=r"shape \[1, 7\], not \[1, 3\]"):
        check_batching(served_model(small_network(), network, "FP32"), network)


def test_unsupported_operation_names_the_node(save_onnx: Callable[..., Path]) -> None:
    model = small_network()
    model.graph.node[1].op_type = "Rleu"
    with pytest.raises(ConversionError, match=r"Rleu \(node relu, domain ai\.onnx\)") as caught:
        load(save_onnx(model))
    assert caught.value.kind == "unsupported-op"


def test_custom_domain_names_the_node(save_onnx: Callable[..., Path]) -> None:
    model = small_network()
    model.graph.node[1].domain = "my.ops"
    model.opset_import.append(helper.make_opsetid("my.ops", 1))
    with pytest.raises(ConversionError, match=r"Relu \(node relu, domain my\.ops\)"):
        load(save_onnx(model))


@pytest.mark.parametrize("content", [b"", b"text", b"\x08\x07"])
def test_no_onnx_file(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(content)
    with pytest.raises(ConversionError, match="is no ONNX model"):
        load(path)


def test_inconsistent_graph(save_onnx: Callable[..., Path]) -> None:
    model = small_network()
    model.graph.node[2].input[0] = "nothing"
    with pytest.raises(ConversionError, match="is no valid ONNX model.*nothing"):
        load(save_onnx(model))


def test_half_keeps_types_and_answers() -> None:
    served = served_model(small_network(), NETWORK, "UINT8")
    halved = half(served)
    assert halved.graph.input[0].type.tensor_type.elem_type == TensorProto.UINT8
    assert halved.graph.output[0].type.tensor_type.elem_type == TensorProto.FLOAT
    close_to = np.abs(run(halved, [PIXELS]) - run(served, [PIXELS])).max()
    assert 0 < close_to < 0.01


def test_half_of_a_network_without_weights_did_not_take() -> None:
    model = small_network()
    served = served_model(model, NETWORK, "FP32")
    del served.graph.initializer[:]
    with pytest.raises(ConversionError, match="did not take"):
        half(served)
