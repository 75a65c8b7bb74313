"""The TF-TRT path: export, convert, check, measure."""

from __future__ import annotations

import shutil
from pathlib import Path

import tensorflow as tf

from .errors import ConversionError
from .images import Pixels
from .job import Built, Job
from .speed import measure
from .tftrt import engines
from .tftrt.export import export, predictor

#: Triton's `default_model_filename` in the generated configurations.
MODEL_FOLDER = "model"


def build(job: Job) -> Built:
    """Makes a SavedModel artefact. Raises ConversionError."""
    if job.kind == "onnx":
        raise ConversionError(
            "model",
            f"{job.source.name} is ONNX, but {job.artefact.name} is a SavedModel",
            "Name a SavedModel, or take variants of the path onnx-tensorrt",
        )
    original = job.scratch / "original"
    export(job.source, job.plan.model, job.artefact, original)
    pixels = job.check_pixels()
    reference = predictor(original, job.artefact)(pixels)
    target = job.target / MODEL_FOLDER
    details: dict[str, object] = {}
    if job.artefact.precision == "original":
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(original, target)
    else:
        details = _convert(job, original, pixels)
    predict = predictor(target, job.artefact)
    largest = job.artefact.built_max_batch_size or len(pixels)
    answers = [predict(pixels[start : start + largest]) for start in range(0, len(pixels), largest)]
    return Built(
        reference=reference,
        answers=tf.concat(answers, axis=0).numpy(),
        speeds=measure(predict, pixels, job.bench_sizes, job.gear.bench_seconds),
        details=details,
        versions={"tensorflow": tf.__version__},
    )


def _convert(job: Job, original: Path, pixels: Pixels) -> dict[str, object]:
    engines.check_tensorflow()
    calibration = None if job.calibration is None else job.calibration.pixels(job.artefact)
    target = job.target / MODEL_FOLDER
    request = engines.engine_job(original, target, job.artefact, calibration, pixels)
    target.parent.mkdir(parents=True, exist_ok=True)
    (job.gear.build_engines or engines.build_engines)(request)
    count = engines.check_converted(target)
    print(f"{count.engines} TensorRT engines; {count.others} operations stay in TensorFlow", flush=True)
    return {
        "trtEngineOps": count.engines,
        "otherOps": count.others,
        "engineBatchSizes": sorted(len(next(iter(feed.values()))) for feed in request.shapes),
    }
