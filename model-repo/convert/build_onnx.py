"""The ONNX path: served graph, quantised or halved where the precision asks for it, and a TensorRT plan made of it."""

from __future__ import annotations

import json
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray

from .errors import ConversionError, explained_os_errors
from .images import Pixels
from .job import Built, Job
from .onnx_path import graph, trtexec
from .onnx_path.half import half
from .onnx_path.quantise import as_feeds, quantise
from .onnx_path.serving import Network, served_model
from .speed import measure

Array = NDArray[Any]


def served_original(job: Job) -> onnx.ModelProto:
    """The unconverted model with the served input and output. Raises ConversionError."""
    artefact, model = job.artefact, job.plan.model
    if job.kind != "onnx":
        from .onnx_path.from_tensorflow import to_onnx

        target = job.scratch / "original.onnx"
        to_onnx(job.source, model, artefact, target)
        return graph.load(target)
    given = graph.load(job.source)
    input_name, output_name = graph.names_of(given, model.input_tensor, model.output_tensor)
    network = Network(
        input_name=input_name,
        output_name=output_name,
        height=artefact.height,
        width=artefact.width,
        classes=artefact.classes,
        layout=model.layout,
        mean=model.mean,
        scale=model.scale,
        channels=model.channels,
        scores=model.scores,
    )
    opened = graph.with_open_batch(given, network)
    served = served_model(opened, network, artefact.input_type, artefact.input_name, artefact.output_name)
    graph.check_batching(served, network)
    return served


def build(job: Job) -> Built:
    """Makes a TensorRT plan or an ONNX artefact. Raises ConversionError."""
    artefact = job.artefact
    pixels = job.check_pixels()
    original = served_original(job)
    reference = graph.run(original, as_feeds(pixels, artefact.input_type, 8))
    versions = {name: metadata.version(name) for name in ("onnx", "onnxruntime")}
    if artefact.platform == "onnxruntime_onnx":
        return _onnx_artefact(job, original, pixels, reference, versions)
    version = trtexec.tensorrt_version(job.gear.run_trtexec)
    versions["tensorrt"] = ".".join(str(part) for part in version)
    model = _with_precision(job, original, in_graph=version[0] > 10)
    onnx_file, plan_file = job.scratch / "model.onnx", job.target / "model.plan"
    with explained_os_errors(f"writing {plan_file}"):
        job.target.mkdir(parents=True, exist_ok=True)
        onnx.save(model, onnx_file)
    _trtexec(job, trtexec.build_arguments(artefact, onnx_file, plan_file, version[0]))
    if not plan_file.is_file():
        raise ConversionError("trtexec", "trtexec wrote no plan", "See its messages above")
    speeds = [
        trtexec.parse_speed(
            _trtexec(job, trtexec.bench_arguments(artefact, plan_file, size, round(job.gear.bench_seconds))), size
        )
        for size in job.bench_sizes
    ]
    return Built(reference, _plan_answers(job, plan_file, pixels), speeds, {}, versions)


def _onnx_artefact(
    job: Job, original: onnx.ModelProto, pixels: Pixels, reference: Array, versions: dict[str, str]
) -> Built:
    model = _with_precision(job, original, in_graph=True)
    path = job.target / "model.onnx"
    with explained_os_errors(f"writing {path}"):
        path.parent.mkdir(parents=True, exist_ok=True)
        onnx.save(model, path)
    session = onnxruntime.InferenceSession(str(path), providers=onnxruntime.get_available_providers())
    element = np.uint8 if job.artefact.input_type == "UINT8" else np.float32

    def predict(batch: Array) -> Array:
        return np.asarray(session.run(None, {job.artefact.input_name: batch.astype(element)})[0])

    answers = graph.run(path, as_feeds(pixels, job.artefact.input_type, 8))
    speeds = measure(predict, pixels, job.bench_sizes, job.gear.bench_seconds)
    return Built(reference, answers, speeds, {"provider": session.get_providers()[0]}, versions)


def _with_precision(job: Job, original: onnx.ModelProto, in_graph: bool) -> onnx.ModelProto:
    """`in_graph`: FP16 has to be written into the graph, because nothing behind it takes a precision."""
    if job.artefact.precision == "int8":
        if job.calibration is None:
            raise ConversionError("images", "INT8 needs calibration images", "Set calibration in the plan")
        feeds = as_feeds(job.calibration.pixels(job.artefact), job.artefact.input_type)
        return quantise(original, feeds, "tensorrt")
    if job.artefact.precision == "fp16" and in_graph:
        return half(original)
    return original


def _trtexec(job: Job, arguments: list[str]) -> str:
    print(f"trtexec {' '.join(arguments)}", flush=True)
    code, output = job.gear.run_trtexec(arguments)
    if code != 0:
        raise trtexec.explain_failure(output, code)
    return output


def _plan_answers(job: Job, plan_file: Path, pixels: Pixels) -> Array:
    """Answers of the plan on the GPU, a batch at a time; the last batch is filled up and the filling dropped."""
    size = min(job.artefact.built_max_batch_size or 1, len(pixels))
    input_file, answer_file = job.scratch / "input.raw", job.scratch / "answers.json"
    rows = []
    for start in range(0, len(pixels), size):
        batch = np.take(pixels, range(start, start + size), axis=0, mode="clip")
        next(as_feeds(batch, job.artefact.input_type, size)).tofile(input_file)
        _trtexec(job, trtexec.answer_arguments(job.artefact, plan_file, size, input_file, answer_file))
        rows.append(_read_answers(answer_file, job.artefact.output_name, size, job.artefact.classes))
    return np.concatenate(rows)[: len(pixels)]


def _read_answers(path: Path, name: str, batch: int, classes: int) -> Array:
    """trtexec writes a list of {name, dimensions, values}."""
    try:
        tensors = json.loads(path.read_text(encoding="utf-8"))
        values = next(tensor["values"] for tensor in tensors if tensor["name"] == name)
        return np.asarray(values, np.float32).reshape(batch, classes)
    except (OSError, ValueError, KeyError, StopIteration) as error:
        raise ConversionError(
            "trtexec", f"trtexec's answers cannot be read: {error!r}", "See its messages above"
        ) from error
