"""A SavedModel as ONNX, through tf2onnx; needs TensorFlow and tf2onnx (`requirements/test.txt` has both)."""

from __future__ import annotations

from pathlib import Path

import onnx

from ..errors import ConversionError, explained_os_errors
from ..plan import Artefact, Model

OPSET = 17


def to_onnx(source: Path, model: Model, artefact: Artefact, target: Path) -> None:
    """Writes the served form of the model (pixels in, probabilities out) as ONNX.

    Raises ConversionError (`unsupported-op`) if tf2onnx leaves a TensorFlow operation, naming the node.
    """
    try:
        import tensorflow as tf
        import tf2onnx
    except ImportError as error:
        raise ConversionError(
            "model",
            f"{source} is a SavedModel, but {error.name} is not installed here",
            "Run `python -m convert.to_onnx` where TensorFlow and tf2onnx are, and name the ONNX file as model.source",
        ) from error
    from ..tftrt.export import load_source, serving_function
    from .graph import check_operations

    loaded = load_source(source, model, artefact)
    function = serving_function(loaded, model, artefact)
    served_type = tf.uint8 if artefact.input_type == "UINT8" else tf.float32
    spec = tf.TensorSpec([None, artefact.height, artefact.width, 3], served_type, name=artefact.input_name)
    converted, _ = tf2onnx.convert.from_function(function, input_signature=[spec], opset=OPSET)
    check_operations(converted)
    with explained_os_errors(f"writing {target}"):
        target.parent.mkdir(parents=True, exist_ok=True)
        onnx.save(converted, target)
