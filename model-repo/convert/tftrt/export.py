"""The original, exported again: pixels 0..255 in, probabilities out, with the names that clients use."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import tensorflow as tf

from ..errors import ConversionError, explained_os_errors
from ..plan import Artefact, Model
from .saved_model import LoadedModel, load_model


def load_source(source: Path, model: Model, artefact: Artefact) -> LoadedModel:
    """The model behind a fetched source: a SavedModel folder, or a file of Keras weights."""
    if model.architecture == "resnet50":
        return _keras_resnet50(source, artefact)
    return load_model(source, model, artefact)


def _keras_resnet50(weights: Path, artefact: Artefact) -> LoadedModel:
    network = tf.keras.applications.ResNet50(
        weights=None, classes=artefact.classes, input_shape=(artefact.height, artefact.width, 3)
    )
    try:
        network.load_weights(str(weights))
    except (ValueError, OSError, KeyError) as error:
        raise ConversionError(
            "model",
            f"{weights} does not hold weights of ResNet-50: {str(error).splitlines()[0]}",
            "Name Keras' resnet50_weights_tf_dim_ordering_tf_kernels.h5, or a SavedModel without model.architecture",
        ) from error

    def call(images: Any) -> dict[str, Any]:
        return {"predictions": network(images, training=False)}

    return LoadedModel(network, call, "images", tf.float32, "predictions")


def serving_function(loaded: LoadedModel, model: Model, artefact: Artefact) -> Callable[[Any], Any]:
    """Function from served pixels to probabilities, as a graph with fixed image size and open batch."""
    served_type = tf.uint8 if artefact.input_type == "UINT8" else tf.float32

    def probabilities(pixels: Any) -> Any:
        images = tf.cast(pixels, tf.float32)
        if model.channels == "BGR":
            images = tf.reverse(images, axis=[-1])
        images = (images - tf.constant(model.mean, tf.float32)) * tf.constant(model.scale, tf.float32)
        if model.layout == "NCHW":
            images = tf.transpose(images, [0, 3, 1, 2])
        scores = loaded.call(**{loaded.input_name: tf.cast(images, loaded.input_type)})[loaded.output_name]
        scores = tf.reshape(tf.cast(scores, tf.float32), [-1, artefact.classes])
        if model.scores == "logits":
            scores = tf.nn.softmax(scores)
        return {artefact.output_name: scores}

    spec = tf.TensorSpec([None, artefact.height, artefact.width, 3], served_type, name=artefact.input_name)
    return tf.function(probabilities, input_signature=[spec])  # type: ignore[no-any-return]


def export(source: Path, model: Model, artefact: Artefact, target: Path) -> None:
    """Writes the SavedModel that is served as `original` and that TF-TRT converts."""
    loaded = load_source(source, model, artefact)
    module = tf.Module()
    module.model = loaded.holder
    module.serve = serving_function(loaded, model, artefact)
    concrete = module.serve.get_concrete_function()
    with explained_os_errors(f"writing {target}"):
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            tf.saved_model.save(module, str(target), signatures={"serving_default": concrete})
        except (tf.errors.ResourceExhaustedError, tf.errors.PermissionDeniedError) as error:
            full = isinstance(error, tf.errors.ResourceExhaustedError)
            raise ConversionError(
                "disk-full" if full else "permission",
                f"{'the disk is full' if full else 'permission denied'} while writing {target}",
                "Free some space, or name another folder",
            ) from error


def predictor(folder: Path, artefact: Artefact) -> Callable[[Any], Any]:
    """Probabilities of an exported or converted SavedModel for an array of pixels."""
    loaded = tf.saved_model.load(str(folder))
    call = loaded.signatures["serving_default"]
    served_type = tf.uint8 if artefact.input_type == "UINT8" else tf.float32

    def predict(pixels: Any) -> Any:
        # `loaded` must live as long as the function: it owns the variables.
        answers = call(**{artefact.input_name: tf.constant(pixels, served_type)}) if loaded is not None else {}
        return answers[artefact.output_name].numpy()

    return predict
