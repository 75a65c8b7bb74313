"""The conversion plan: what to make of which model. The stack writes it (`stack/variants.ts`), `README.md` describes it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from .errors import ConversionError
from .files import read_json

Precision = Literal["original", "fp32", "fp16", "int8"]
Platform = Literal["tensorflow_savedmodel", "tensorrt_plan", "onnxruntime_onnx"]

PRECISIONS = ("original", "fp32", "fp16", "int8")
PLATFORMS = ("tensorflow_savedmodel", "tensorrt_plan", "onnxruntime_onnx")

#: Where Keras publishes its ResNet-50 weights, and the MD5 that Keras' own source gives for the file.
KERAS_RESNET50 = (
    "https://storage.googleapis.com/tensorflow/keras-applications/resnet/resnet50_weights_tf_dim_ordering_tf_kernels.h5"
)
KERAS_RESNET50_CHECKSUM = "md5:2cb95161c43110f7111970584f804107"


@dataclass(frozen=True)
class Model:
    """Where the model comes from and how it wants its images. Field names follow the plan's JSON in snake case."""

    #: SavedModel folder, .zip or .tar.gz of one, .onnx, or weights .h5 (with `architecture`); path, https:// or gs://.
    source: str
    #: `sha256:...` or `md5:...` of the fetched file; empty: not checked.
    checksum: str = ""
    #: `resnet50` when `source` is a file of Keras weights.
    architecture: str = ""
    signature: str = "serving_default"
    #: Names in the signature (SavedModel) or the graph (ONNX); empty: the only one there is.
    input_tensor: str = ""
    output_tensor: str = ""
    layout: Literal["NHWC", "NCHW"] = "NHWC"
    channels: Literal["RGB", "BGR"] = "RGB"
    #: Pixels 0..255 become (x - mean) * scale, one value or one a channel in the model's channel order.
    mean: tuple[float, ...] = (0.0,)
    scale: tuple[float, ...] = (1.0,)
    scores: Literal["probabilities", "logits"] = "probabilities"


#: The documents' model: caffe-style BGR with the ImageNet means (keras/src/applications/imagenet_utils.py, mode "caffe").
RESNET50 = Model(
    source=KERAS_RESNET50,
    checksum=KERAS_RESNET50_CHECKSUM,
    architecture="resnet50",
    channels="BGR",
    mean=(103.939, 116.779, 123.68),
)


@dataclass(frozen=True)
class Artefact:
    """One thing to make."""

    name: str
    platform: Platform
    precision: Precision
    #: Largest batch that engines are built for; None for the unconverted model.
    built_max_batch_size: int | None
    #: Batch sizes that variants serve, ascending.
    batch_sizes: tuple[int, ...]
    input_name: str
    input_type: Literal["FP32", "UINT8"]
    height: int
    width: int
    output_name: str
    classes: int


@dataclass(frozen=True)
class ImageSet:
    """A folder of images, path or gs://."""

    source: str
    count: int


@dataclass(frozen=True)
class Plan:
    #: Container image that the conversion is meant for, for the record.
    image: str
    #: Accelerator type that will serve, e.g. `nvidia-tesla-t4`; empty: not checked.
    gpu_type: str
    model: Model
    calibration: ImageSet | None
    held_out: ImageSet | None
    artefacts: tuple[Artefact, ...]

    def artefact(self, name: str) -> Artefact:
        """Raises ConversionError (`plan`) with the known names."""
        for artefact in self.artefacts:
            if artefact.name == name:
                return artefact
        known = ", ".join(artefact.name for artefact in self.artefacts)
        raise _bad(f'there is no artefact "{name}"; the plan has {known or "none"}')


def _bad(message: str) -> ConversionError:
    return ConversionError("plan", message, "Correct the plan, or run pulumi up to write it again")


def read_plan(path: Path) -> Plan:
    """Raises ConversionError (`plan` or `input`) that names the field."""
    return parse_plan(read_json(path, "the plan"))


def parse_plan(raw: Mapping[str, Any]) -> Plan:
    if raw.get("schemaVersion") != 1:
        raise _bad(f"schemaVersion is {raw.get('schemaVersion')!r}, not 1")
    artefacts = raw.get("artefacts")
    if not isinstance(artefacts, list):
        raise _bad("artefacts is not a list")
    return Plan(
        image=_text(raw, "image", ""),
        gpu_type=_text(raw, "gpuType", ""),
        model=_model(raw.get("model", "resnet50")),
        calibration=_images(raw, "calibration"),
        held_out=_images(raw, "heldOut"),
        artefacts=tuple(_artefact(entry, f"artefacts[{index}]") for index, entry in enumerate(artefacts)),
    )


def _text(raw: Mapping[str, Any], key: str, default: str | None = None, path: str = "") -> str:
    value = raw.get(key, default)
    if not isinstance(value, str):
        raise _bad(f"{path}{key} is {value!r}, not a text")
    return value


def _choice(raw: Mapping[str, Any], key: str, choices: tuple[str, ...], default: str | None, path: str) -> Any:
    value = raw.get(key, default)
    if value not in choices:
        raise _bad(f"{path}{key} is {value!r}, none of {', '.join(choices)}")
    return value


def _whole(value: Any, what: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise _bad(f"{what} is {value!r}, not a whole number above 0")
    return value


def _numbers(raw: Mapping[str, Any], key: str, default: list[float]) -> tuple[float, ...]:
    value = raw.get(key, default)
    value = [value] if isinstance(value, (int, float)) else value
    if (
        not isinstance(value, list)
        or len(value) not in (1, 3)
        or not all(isinstance(item, (int, float)) and not isinstance(item, bool) for item in value)
    ):
        raise _bad(f"model.{key} is {value!r}, not one number or three (one a channel)")
    return tuple(float(item) for item in value)


_MODEL_KEYS = (
    *("source", "checksum", "architecture", "signature", "inputTensor", "outputTensor"),
    *("layout", "channels", "mean", "scale", "scores"),
)


def _model(raw: Any) -> Model:
    if raw == "resnet50":
        return RESNET50
    if not isinstance(raw, Mapping):
        raise _bad(f'model is {raw!r}, neither "resnet50" nor an object')
    unknown = [key for key in raw if key not in _MODEL_KEYS]
    if unknown:
        raise _bad(f"model has unknown keys {', '.join(unknown)}; known are {', '.join(_MODEL_KEYS)}")
    checksum = _text(raw, "checksum", "", "model.")
    if checksum and not re.fullmatch(r"sha256:[0-9a-f]{64}|md5:[0-9a-f]{32}", checksum):
        raise _bad(f'model.checksum is "{checksum}", not sha256: or md5: with its hexadecimal digits')
    scale = _numbers(raw, "scale", [1.0])
    if 0 in scale:
        raise _bad("model.scale is 0, which makes every image the same")
    return Model(
        source=_text(raw, "source", None, "model."),
        checksum=checksum,
        architecture=_choice(raw, "architecture", ("", "resnet50"), "", "model."),
        signature=_text(raw, "signature", "serving_default", "model."),
        input_tensor=_text(raw, "inputTensor", "", "model."),
        output_tensor=_text(raw, "outputTensor", "", "model."),
        layout=_choice(raw, "layout", ("NHWC", "NCHW"), "NHWC", "model."),
        channels=_choice(raw, "channels", ("RGB", "BGR"), "RGB", "model."),
        mean=_numbers(raw, "mean", [0.0]),
        scale=scale,
        scores=_choice(raw, "scores", ("probabilities", "logits"), "probabilities", "model."),
    )


def _images(raw: Mapping[str, Any], key: str) -> ImageSet | None:
    value = raw.get(key)
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise _bad(f"{key} is {value!r}, not an object")
    return ImageSet(_text(value, "source", None, f"{key}."), _whole(value.get("count"), f"{key}.count"))


def _artefact(raw: Any, path: str) -> Artefact:
    if not isinstance(raw, Mapping):
        raise _bad(f"{path} is not an object")
    name = _text(raw, "name", None, f"{path}.")
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", name):
        raise _bad(f'{path}.name is "{name}"; use letters, digits and _.-')
    source, target = raw.get("input"), raw.get("output")
    if not isinstance(source, Mapping) or not isinstance(target, Mapping):
        raise _bad(f"{path} has no input or no output")
    dims = source.get("dims")
    if source.get("format") != "FORMAT_NHWC" or not isinstance(dims, list) or len(dims) != 3 or dims[2] != 3:
        raise _bad(f"{path}.input is {dims!r} {source.get('format')}, not FORMAT_NHWC [height, width, 3]")
    classes = target.get("dims")
    if not isinstance(classes, list) or len(classes) != 1:
        raise _bad(f"{path}.output.dims is {classes!r}, not [classes]")
    largest = raw.get("builtMaxBatchSize")
    precision = cast(Precision, _choice(raw, "precision", PRECISIONS, None, f"{path}."))
    platform = cast(Platform, _choice(raw, "platform", PLATFORMS, None, f"{path}."))
    if largest is None and platform != "onnxruntime_onnx" and precision != "original":
        raise _bad(f"{path}.builtMaxBatchSize is missing, but {precision} engines are built for a batch size")
    sizes = raw.get("batchSizes", [1])
    if not isinstance(sizes, list) or not sizes:
        raise _bad(f"{path}.batchSizes is {sizes!r}, not a list of batch sizes")
    batch_sizes = tuple(sorted({_whole(size, f"{path}.batchSizes") for size in sizes}))
    built = None if largest is None else _whole(largest, f"{path}.builtMaxBatchSize")
    if built is not None and batch_sizes[-1] > built:
        raise _bad(f"{path}: a variant serves batches of {batch_sizes[-1]}, but engines are built for {built}")
    return Artefact(
        name=name,
        platform=platform,
        precision=precision,
        built_max_batch_size=built,
        batch_sizes=batch_sizes,
        input_name=_text(source, "name", None, f"{path}.input."),
        input_type=_choice(source, "type", ("FP32", "UINT8"), None, f"{path}.input."),
        height=_whole(dims[0], f"{path}.input.dims"),
        width=_whole(dims[1], f"{path}.input.dims"),
        output_name=_text(target, "name", None, f"{path}.output."),
        classes=_whole(classes[0], f"{path}.output.dims"),
    )
