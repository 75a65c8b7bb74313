"""What a SavedModel is: its TensorFlow version, operations and signature, checked before anything long starts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tensorflow as tf

from ..errors import ConversionError
from ..plan import Artefact, Model

#: TF-TRT left TensorFlow in 2.18; NVIDIA's 25.02 container carries 2.17 and is the last with it.
LAST_WITH_TFTRT = (2, 17)


def release(version: str) -> tuple[int, int]:
    """Major and minor number; (0, 0) for a text that is no version."""
    parts = version.split(".")
    try:
        return int(parts[0]), int(parts[1])
    except (ValueError, IndexError):
        return 0, 0


def read_proto(folder: Path) -> Any:
    """The SavedModel's protocol buffer. Raises ConversionError (`model`) if it is none."""
    from tensorflow.core.protobuf import saved_model_pb2

    path = folder / "saved_model.pb"
    proto = saved_model_pb2.SavedModel()
    try:
        proto.ParseFromString(path.read_bytes())
    except FileNotFoundError as error:
        raise ConversionError(
            "model", f"{folder} is no SavedModel: it has no saved_model.pb", "Name the folder that holds saved_model.pb"
        ) from error
    except Exception as error:
        raise ConversionError(
            "model", f"{path} is broken: {error}", "Export the model again, or copy it again"
        ) from error
    return proto


def all_nodes(proto: Any) -> Iterator[Any]:
    """Nodes of all graphs and of the functions in them."""
    for meta_graph in proto.meta_graphs:
        yield from meta_graph.graph_def.node
        for function in meta_graph.graph_def.library.function:
            yield from function.node_def


def check_version(proto: Any, folder: Path) -> str:
    """The TensorFlow version that wrote the model.

    Raises ConversionError (`tensorflow-version`) if it is newer than the running one: it may use operations that this and
    the serving TensorFlow do not have.
    """
    written_by = next((graph.meta_info_def.tensorflow_version for graph in proto.meta_graphs), "")
    if release(written_by) > release(tf.__version__):
        raise ConversionError(
            "tensorflow-version",
            f"{folder} was written by TensorFlow {written_by}; converter and server have {tf.__version__}",
            f"Export it with TensorFlow {tf.__version__} or older, or export ONNX and take the path onnx-tensorrt",
        )
    return str(written_by)


def check_operations(proto: Any) -> None:
    """Raises ConversionError (`unsupported-op`) naming the nodes whose operation this TensorFlow does not have."""
    from tensorflow.python.framework import op_def_registry

    functions = {f.signature.name for graph in proto.meta_graphs for f in graph.graph_def.library.function}
    unknown = sorted(
        {
            (node.op, node.name)
            for node in all_nodes(proto)
            if node.op not in functions and op_def_registry.get(node.op) is None
        }
    )
    if unknown:
        shown = ", ".join(f"{op} (node {name})" for op, name in unknown[:5])
        raise ConversionError(
            "unsupported-op",
            f"TensorFlow {tf.__version__} has no operation {shown}",
            "Export the model without custom operations",
        )


@dataclass(frozen=True)
class LoadedModel:
    """A signature that takes one batch of images."""

    #: Keeps the variables alive.
    holder: Any
    call: Callable[..., dict[str, Any]]
    input_name: str
    input_type: Any
    output_name: str


def load_model(folder: Path, model: Model, artefact: Artefact) -> LoadedModel:
    """Loads the SavedModel and finds input and output.

    Raises ConversionError: `model`, `tensorflow-version`, `unsupported-op`, `signature`, `tensor-name`, `shape`.
    """
    proto = read_proto(folder)
    check_version(proto, folder)
    check_operations(proto)
    loaded = tf.saved_model.load(str(folder))
    signatures = sorted(loaded.signatures)
    if model.signature not in signatures:
        raise ConversionError(
            "signature",
            f'{folder} has no signature "{model.signature}"; it has {", ".join(signatures) or "none"}',
            "Set model.signature to one of them",
        )
    call = loaded.signatures[model.signature]
    inputs = call.structured_input_signature[1]
    input_name = _chosen(model.input_tensor, list(inputs), "input")
    output_name = _chosen(model.output_tensor, list(call.structured_outputs), "output")
    if len(inputs) > 1:
        raise ConversionError(
            "tensor-name",
            f"the signature has further inputs: {', '.join(name for name in inputs if name != input_name)}",
            "Export a signature with the image as its only input",
        )
    _check_shape(inputs[input_name], model, artefact)
    return LoadedModel(loaded, call, input_name, inputs[input_name].dtype, output_name)


def _chosen(wanted: str, real: list[str], kind: str) -> str:
    if wanted in real:
        return wanted
    if not wanted and len(real) == 1:
        return real[0]
    message = f'the model has no {kind} "{wanted}"' if wanted else f"the model has {len(real)} {kind}s"
    raise ConversionError(
        "tensor-name",
        f"{message}; its {kind}s are {', '.join(sorted(real)) or 'none'}",
        f"Set model.{kind}Tensor to one of them",
    )


def _check_shape(spec: Any, model: Model, artefact: Artefact) -> None:
    shape = None if spec.shape.rank is None else list(spec.shape)
    size = [artefact.height, artefact.width]
    wanted = [None, *size, 3] if model.layout == "NHWC" else [None, 3, *size]
    # A dimension left open takes the served size; a batch of one size cannot be batched by the server.
    fits = shape is not None and len(shape) == 4 and all(s in (None, w) for s, w in zip(shape, wanted))
    if fits and shape is not None and shape[0] is None:
        return
    described = "of unknown rank" if shape is None else str(shape).replace("None", "any")
    raise ConversionError(
        "shape",
        f"the input is {described}; {str(wanted).replace('None', 'any')} ({model.layout}) is needed",
        "Export the model with an open batch dimension, and say its size and layout in the artefact's input and model.layout",
    )
