"""SavedModels with real TensorFlow: reading, re-export, and everything of TF-TRT but the engines themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from conftest import CLASSES, PHOTOS, SIZE, artefact
from convert.errors import ConversionError
from convert.images import read_images
from convert.onnx_path.from_tensorflow import to_onnx
from convert.onnx_path.graph import load, run
from convert.plan import Model
from convert.tftrt import engines, saved_model
from convert.tftrt.export import export, predictor
from tensorflow.core.protobuf import saved_model_pb2


def write_model(folder: Path, shape: list[int | None], name: str = "image", two: bool = False) -> Path:
    """A small SavedModel that answers logits."""
    random = np.random.default_rng(2)
    module = tf.Module()
    module.kernel = tf.Variable(random.normal(0, 0.1, (3, 3, 3, 8)).astype(np.float32))
    module.dense = tf.Variable(random.normal(0, 1, (8, CLASSES)).astype(np.float32))
    specs = {name: tf.TensorSpec(shape, tf.float32, name=name)}
    if two:
        specs["other"] = tf.TensorSpec([None], tf.float32, name="other")

    def call(**inputs: Any) -> Any:
        features = tf.nn.relu(tf.nn.conv2d(inputs[name], module.kernel, 1, "SAME"))
        logits = tf.matmul(tf.reduce_mean(features, [1, 2]), module.dense)
        return {"logits": logits, "features": features} if two else {"logits": logits}

    signature = tf.function(call).get_concrete_function(**specs)
    tf.saved_model.save(module, str(folder), signatures={"serving_default": signature, "other_use": signature})
    return folder


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("source") / "m", [None, SIZE, SIZE, 3])


MODEL = Model(source="", mean=(127.0,), scale=(1 / 64,), scores="logits")
SAVED = artefact(platform="tensorflow_savedmodel", precision="original")
PIXELS = read_images(PHOTOS, SIZE, SIZE)


def by_hand(source: Path, images: Any) -> Any:
    loaded = tf.saved_model.load(str(source))
    logits = loaded.signatures["serving_default"](image=tf.constant(images, tf.float32))["logits"]
    return tf.nn.softmax(logits).numpy()


@pytest.mark.parametrize("input_type", ["FP32", "UINT8"])
@pytest.mark.parametrize("channels", ["RGB", "BGR"])
def test_re_export_has_the_documents_names_and_any_batch(
    source: Path, tmp_path: Path, input_type: str, channels: Any
) -> None:
    spec = artefact(platform="tensorflow_savedmodel", precision="original", input_type=input_type)
    model = Model(source="", mean=(127.0,), scale=(1 / 64,), scores="logits", channels=channels)
    export(source, model, spec, tmp_path / "out")
    signature = tf.saved_model.load(str(tmp_path / "out")).signatures["serving_default"]
    ((name, tensor),) = signature.structured_input_signature[1].items()
    assert (name, tensor.shape.as_list(), tensor.dtype) == (
        "input",
        [None, SIZE, SIZE, 3],
        tf.uint8 if input_type == "UINT8" else tf.float32,
    )
    assert {key: value.shape.as_list() for key, value in signature.structured_outputs.items()} == {
        "probabilities": [None, CLASSES]
    }
    images = (PIXELS[..., :: -1 if channels == "BGR" else 1].astype(np.float32) - 127) / 64
    predict = predictor(tmp_path / "out", spec)
    np.testing.assert_allclose(predict(PIXELS), by_hand(source, images), atol=1e-5)
    np.testing.assert_allclose(predict(PIXELS[:1]), by_hand(source, images[:1]), atol=1e-5)


def test_channels_first(tmp_path: Path) -> None:
    """Convolutions of that layout have no CPU kernel, so the model only averages."""
    module = tf.Module()
    spec = tf.TensorSpec([None, 3, SIZE, SIZE], tf.float32, name="x")
    mean = tf.function(lambda x: {"y": tf.reduce_mean(x, [2, 3])}, input_signature=[spec])
    tf.saved_model.save(module, str(tmp_path / "m"), signatures={"serving_default": mean.get_concrete_function()})
    wanted = artefact(platform="tensorflow_savedmodel", precision="original", classes=3)
    export(tmp_path / "m", Model(source="", layout="NCHW", scores="logits"), wanted, tmp_path / "out")
    means = PIXELS.astype(np.float32).mean(axis=(1, 2))
    np.testing.assert_allclose(predictor(tmp_path / "out", wanted)(PIXELS), tf.nn.softmax(means).numpy(), atol=1e-4)


def test_open_image_size_takes_the_served_one(tmp_path: Path) -> None:
    open_size = write_model(tmp_path / "m", [None, None, None, 3])
    export(open_size, MODEL, SAVED, tmp_path / "out")
    assert predictor(tmp_path / "out", SAVED)(PIXELS).shape == (3, CLASSES)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ([1, SIZE, SIZE, 3], r"the input is \[1, 16, 16, 3\]; \[any, 16, 16, 3\] \(NHWC\) is needed"),
        ([None, 8, 8, 3], r"the input is \[any, 8, 8, 3\]"),
    ],
)
def test_other_shapes(tmp_path: Path, shape: list[int | None], message: str) -> None:
    with pytest.raises(ConversionError, match=message) as caught:
        export(write_model(tmp_path / "m", shape), MODEL, SAVED, tmp_path / "out")
    assert caught.value.kind == "shape"


def test_wrong_names_list_the_real_ones(source: Path, tmp_path: Path) -> None:
    def refuse(message: str, folder: Path = source, **names: str) -> None:
        with pytest.raises(ConversionError, match=message):
            saved_model.load_model(folder, Model(source="", **names), SAVED)  # type: ignore[arg-type]

    refuse('no input "x"; its inputs are image', input_tensor="x")
    refuse('no output "y"; its outputs are logits', output_tensor="y")
    refuse('no signature "s"; it has other_use, serving_default', signature="s")
    two = write_model(tmp_path / "two", [None, SIZE, SIZE, 3], two=True)
    refuse("has 2 inputs; its inputs are image, other", two)
    refuse("has 2 outputs; its outputs are features, logits", two, input_tensor="image")
    refuse("further inputs: other", two, input_tensor="image", output_tensor="logits")


def edited(source: Path, target: Path, edit: Any) -> Path:
    """A copy of a SavedModel whose protocol buffer was changed."""
    tf.io.gfile.makedirs(str(target))
    proto = saved_model_pb2.SavedModel()
    proto.ParseFromString((source / "saved_model.pb").read_bytes())
    edit(proto)
    (target / "saved_model.pb").write_bytes(proto.SerializeToString())
    return target


def test_newer_tensorflow_is_refused(source: Path, tmp_path: Path) -> None:
    def newer(proto: Any) -> None:
        proto.meta_graphs[0].meta_info_def.tensorflow_version = "2.19.1"

    with pytest.raises(
        ConversionError, match=r"written by TensorFlow 2\.19\.1; converter and server have 2\.17"
    ) as caught:
        saved_model.load_model(edited(source, tmp_path / "m", newer), MODEL, SAVED)
    assert caught.value.kind == "tensorflow-version"


def test_patch_releases_and_odd_versions_pass() -> None:
    assert saved_model.release("2.17.9") == (2, 17)
    assert saved_model.release("2.9.0") < saved_model.release("2.17.0")
    assert saved_model.release("unknown") == (0, 0)


def test_unsupported_operation_names_the_node(source: Path, tmp_path: Path) -> None:
    def custom(proto: Any) -> None:
        node = proto.meta_graphs[0].graph_def.library.function[0].node_def.add()
        node.name, node.op = "tokenise", "SentencepieceOp"

    with pytest.raises(ConversionError, match=r"no operation SentencepieceOp \(node tokenise\)") as caught:
        saved_model.load_model(edited(source, tmp_path / "m", custom), MODEL, SAVED)
    assert caught.value.kind == "unsupported-op"


def test_no_saved_model(tmp_path: Path) -> None:
    with pytest.raises(ConversionError, match=r"it has no saved_model\.pb"):
        saved_model.read_proto(tmp_path)
    (tmp_path / "saved_model.pb").write_bytes(b"\xff\xff text")
    with pytest.raises(ConversionError, match="is broken"):
        saved_model.read_proto(tmp_path)


def test_wrong_keras_weights(tmp_path: Path) -> None:
    (tmp_path / "w.h5").write_bytes(b"no weights")
    small = artefact(platform="tensorflow_savedmodel", precision="original", height=32, width=32)
    with pytest.raises(ConversionError, match="does not hold weights of ResNet-50"):
        export(tmp_path / "w.h5", Model(source="", architecture="resnet50"), small, tmp_path / "out")


TFTRT = artefact(
    name="tftrt_int8_bs8",
    platform="tensorflow_savedmodel",
    precision="int8",
    built_max_batch_size=8,
    batch_sizes=(4, 8),
)


def test_engine_job_has_every_batch_size_and_full_calibration_batches(tmp_path: Path) -> None:
    job = engines.engine_job(tmp_path, tmp_path / "t", TFTRT, np.repeat(PIXELS, 4, axis=0), PIXELS)
    assert [feed["input"].shape for feed in job.shapes] == [(size, SIZE, SIZE, 3) for size in (8, 4, 1)]
    assert job.calibration is not None
    assert [(len(feed["input"]), feed["input"].dtype.name) for feed in job.calibration()] == [(8, "float32")] * 2
    assert job.precision == "int8"


def test_converter_is_called_as_this_tensorflow_declares_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The converter itself needs a GPU; its constructor and methods are checked against the real signatures."""
    from unittest.mock import create_autospec

    from tensorflow.python.compiler.tensorrt import trt_convert

    double = create_autospec(trt_convert.TrtGraphConverterV2)
    monkeypatch.setattr(trt_convert, "TrtGraphConverterV2", double)
    job = engines.engine_job(tmp_path, tmp_path / "t", TFTRT, PIXELS, PIXELS)
    engines.build_engines(job)
    settings = double.call_args.kwargs
    assert settings["precision_mode"] in trt_convert.TrtPrecisionMode.supported_precision_modes()
    assert settings["dynamic_shape_profile_strategy"] in trt_convert.supported_profile_strategies()
    assert (settings["use_calibration"], settings["allow_build_at_runtime"]) == (True, False)
    assert settings["maximum_cached_engines"] == 3
    called = [call[0] for call in double.return_value.method_calls]
    assert called == ["convert", "build", "save"]
    feeds = list(double.return_value.convert.call_args.kwargs["calibration_input_fn"]())
    assert [feed["input"].shape[0] for feed in feeds] == [8]


def engine_nodes(proto: Any) -> None:
    for name in ("a", "b"):
        node = proto.meta_graphs[0].graph_def.library.function[0].node_def.add()
        node.name, node.op = name, "TRTEngineOp"


def test_conversion_that_did_not_take(source: Path, tmp_path: Path) -> None:
    with pytest.raises(ConversionError, match="the conversion did not take: the model has no TRTEngineOp"):
        engines.check_converted(source)
    converted = edited(source, tmp_path / "m", engine_nodes)
    with pytest.raises(ConversionError, match="2 TRTEngineOp nodes, but 0 engines were built ahead"):
        engines.check_converted(converted)
    (converted / "assets").mkdir()
    for name in ("a", "b"):
        (converted / "assets" / f"trt-serialized-engine.{name}").write_bytes(b"engine")
    count = engines.check_converted(converted)
    assert count.engines == 2
    assert count.others > 0


def test_tensorflow_without_tftrt(monkeypatch: pytest.MonkeyPatch) -> None:
    engines.check_tensorflow()
    monkeypatch.setattr(tf, "__version__", "2.18.0")
    with pytest.raises(ConversionError, match=r"2\.18\.0 has no TF-TRT"):
        engines.check_tensorflow()


def test_tf2onnx_gives_the_same_answers(source: Path, tmp_path: Path) -> None:
    spec = artefact(input_type="UINT8")
    to_onnx(source, MODEL, spec, tmp_path / "m.onnx")
    images = (PIXELS.astype(np.float32) - 127) / 64
    np.testing.assert_allclose(run(load(tmp_path / "m.onnx"), [PIXELS]), by_hand(source, images), atol=1e-4)


def test_the_documents_resnet50_from_keras_weights(tmp_path: Path) -> None:
    """Keras' published file has the old format; its preparation of images is part of the exported graph."""
    import h5py
    from convert.plan import RESNET50
    from keras.src.legacy.saving import legacy_h5_format

    network = tf.keras.applications.ResNet50(weights=None, input_shape=(32, 32, 3))
    with h5py.File(tmp_path / "weights.h5", "w") as file:
        legacy_h5_format.save_weights_to_hdf5_group(file, network)
    spec = artefact(platform="tensorflow_savedmodel", precision="original", height=32, width=32, classes=1000)
    export(tmp_path / "weights.h5", RESNET50, spec, tmp_path / "out")
    images = read_images(PHOTOS, 32, 32)
    prepared = tf.keras.applications.resnet50.preprocess_input(images.astype(np.float32))
    expected = network(prepared, training=False).numpy()
    np.testing.assert_allclose(predictor(tmp_path / "out", spec)(images), expected, atol=1e-6)
