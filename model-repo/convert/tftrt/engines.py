"""TF-TRT conversion. `build_engines` is the one function that needs a GPU and was not run by the authors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from ..errors import ConversionError
from ..plan import Artefact
from .saved_model import LAST_WITH_TFTRT, all_nodes, read_proto, release

Feed = dict[str, NDArray[Any]]
#: Scratch memory that TensorRT may use to time kernels, bytes; TF-TRT's own default of 1 GB is small for batch 64.
WORKSPACE_BYTES = 4 << 30
#: Smaller groups of operations stay in TensorFlow (TF-TRT's default).
MINIMUM_SEGMENT_SIZE = 3


@dataclass(frozen=True)
class EngineJob:
    """One conversion, complete: everything that `build_engines` needs."""

    source: Path
    target: Path
    precision: str
    #: Input batches whose shapes the engines are built for; the first has the largest batch.
    shapes: Sequence[Feed]
    #: Gives batches of real images, all of one shape; None unless INT8.
    calibration: Callable[[], Iterator[Feed]] | None


#: Replaced in tests, because there is no GPU there.
Builder = Callable[[EngineJob], None]


def build_engines(job: EngineJob) -> None:
    """Converts a SavedModel and builds its engines ahead (GPU only).

    TensorRT 10 has no implicit batch, so dynamic shapes are on; `Range+Optimal` makes one profile from the smallest to the
    largest batch and one exactly for each given batch. No engine is built while serving: a batch that does not fit would
    stall the server for minutes.
    """
    from tensorflow.python.compiler.tensorrt import trt_convert

    converter = trt_convert.TrtGraphConverterV2(
        input_saved_model_dir=str(job.source),
        input_saved_model_signature_key="serving_default",
        use_dynamic_shape=True,
        dynamic_shape_profile_strategy="Range+Optimal",
        max_workspace_size_bytes=WORKSPACE_BYTES,
        precision_mode=job.precision.upper(),
        minimum_segment_size=MINIMUM_SEGMENT_SIZE,
        maximum_cached_engines=len(job.shapes),
        use_calibration=job.calibration is not None,
        allow_build_at_runtime=False,
    )
    if job.calibration is None:
        converter.convert()
    else:
        converter.convert(calibration_input_fn=job.calibration)
    converter.build(input_fn=lambda: iter(job.shapes))
    converter.save(str(job.target))


def engine_job(
    source: Path, target: Path, artefact: Artefact, calibration: NDArray[np.uint8] | None, images: NDArray[np.uint8]
) -> EngineJob:
    """Batches for shapes and calibration.

    Shapes: the artefact's largest batch first, then the variants' other batch sizes and 1, because a batcher also sends
    batches that are not full. Calibration: batches of the largest size, filled up from the first images.
    """
    largest = artefact.built_max_batch_size
    if largest is None:
        raise ConversionError("plan", f"{artefact.name} has no builtMaxBatchSize", "Set it to the largest served batch")
    sizes = sorted({1, largest, *artefact.batch_sizes}, reverse=True)
    return EngineJob(
        source=source,
        target=target,
        precision=artefact.precision,
        shapes=[_feed(artefact, np.resize(images, (size, *images.shape[1:]))) for size in sizes],
        calibration=None if calibration is None else lambda: _calibration_feeds(artefact, calibration, largest),
    )


def _feed(artefact: Artefact, pixels: NDArray[Any]) -> Feed:
    return {artefact.input_name: pixels.astype(np.uint8 if artefact.input_type == "UINT8" else np.float32)}


def _calibration_feeds(artefact: Artefact, pixels: NDArray[np.uint8], size: int) -> Iterator[Feed]:
    from ..images import batches

    for batch in batches(pixels, size):
        yield _feed(artefact, batch)


@dataclass(frozen=True)
class EngineCount:
    """Nodes of a converted model."""

    engines: int
    #: Nodes outside engines that compute something.
    others: int


def check_converted(folder: Path) -> EngineCount:
    """Raises ConversionError (`not-converted`) if the model has no engine, or an engine that was not built ahead."""
    nodes = list(all_nodes(read_proto(folder)))
    engines = [node for node in nodes if node.op == "TRTEngineOp"]
    passive = {"Placeholder", "NoOp", "Identity", "Const", "TRTEngineOp"}
    if not engines:
        raise ConversionError(
            "not-converted",
            "the conversion did not take: the model has no TRTEngineOp node, so it would run at TensorFlow's speed",
            "See TF-TRT's messages above for the operations it refused; the ONNX path may take the model",
        )
    built = list((folder / "assets").glob("trt-serialized-engine*"))
    if len(built) < len({node.name for node in engines}):
        raise ConversionError(
            "not-converted",
            f"{len(engines)} TRTEngineOp nodes, but {len(built)} engines were built ahead; the first requests would wait",
            "See TF-TRT's messages above: an engine that does not fit the GPU's memory needs a smaller batch size",
        )
    return EngineCount(len(engines), sum(node.op not in passive for node in nodes))


def check_tensorflow() -> None:
    """Raises ConversionError (`tensorflow-version`) if this TensorFlow has no TF-TRT any more."""
    if release(tf.__version__) > LAST_WITH_TFTRT:
        raise ConversionError(
            "tensorflow-version",
            f"TensorFlow {tf.__version__} has no TF-TRT; 2.17 (container 25.02) is the last with it",
            "Set tritonVersion to 25.02 or older, or take the path onnx-tensorrt",
        )
