"""One artefact from plan to manifest."""

from __future__ import annotations

import platform
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Literal

from . import __version__
from .accuracy import agreement, check_probabilities
from .errors import ConversionError, explained_os_errors
from .files import canonical_hash, read_json, sha256_file, sha256_tree, write_json
from .gpu import Gpu, check_gpu
from .job import Built, Gear, Images, Job, image_set
from .plan import Artefact, ImageSet, Plan
from .sources import check_checksum, local_copy, model_files

Outcome = Literal["converted", "unchanged"]


def convert(
    plan: Plan, name: str, previous: Path | None, output: Path, downloads: Path, gear: Gear | None = None
) -> Outcome:
    """Makes the artefact in `output` (`1/` and `manifest.json`), or leaves it empty if its inputs have not changed.

    Raises ConversionError; then `output` holds `failure.json` and nothing else.
    """
    gear = gear or Gear()
    check_empty(output)
    try:
        with explained_os_errors(f"making {name}"), tempfile.TemporaryDirectory(prefix="convert-") as scratch:
            return _convert(plan, name, previous, output, downloads, Path(scratch), gear)
    except BaseException as error:
        shutil.rmtree(output / "1", ignore_errors=True)
        if isinstance(error, Exception):
            write_failure(output, name, error)
        raise


def check_empty(output: Path) -> None:
    """Nothing is overwritten. Raises ConversionError (`output-exists`)."""
    with explained_os_errors(f"making {output}"):
        output.mkdir(parents=True, exist_ok=True)
        if any(output.iterdir()):
            raise ConversionError("output-exists", f"{output} is not empty", "Name an empty folder")


def _convert(
    plan: Plan, name: str, previous: Path | None, output: Path, downloads: Path, scratch: Path, gear: Gear
) -> Outcome:
    artefact = plan.artefact(name)
    gpu = gear.query_gpu()
    if artefact.platform == "tensorrt_plan" or (
        artefact.platform == "tensorflow_savedmodel" and artefact.precision != "original"
    ):
        check_gpu(gpu, plan.gpu_type)
    fetched = local_copy(plan.model.source, downloads, "the model")
    check_checksum(fetched, plan.model.checksum)
    needs_calibration = artefact.precision == "int8"
    calibration = _images(plan.calibration, downloads, "calibration") if needs_calibration else None
    held_out = None if plan.held_out is None else _images(plan.held_out, downloads, "held-out")
    source_hash = sha256_tree(fetched)
    key = inputs_hash(plan, artefact, source_hash, calibration, held_out, gpu)
    if _is_current(previous, key):
        return "unchanged"
    kind, source = model_files(fetched, plan.model, scratch)
    target = output / "1"
    job = Job(plan, artefact, kind, source, calibration, held_out, target, scratch, gear)
    built = _builder(artefact)(job)
    check_probabilities(built.reference, artefact.classes, "the original model")
    check_probabilities(built.answers, artefact.classes, artefact.name)
    write_json(output / "manifest.json", _manifest(job, built, key, source_hash, gpu))
    return "converted"


def _builder(artefact: Artefact) -> Callable[[Job], Built]:
    # Imported late: NVIDIA's TensorFlow container has no ONNX Runtime, and the TensorRT container no TensorFlow.
    if artefact.platform == "tensorflow_savedmodel":
        from . import build_tensorflow

        return build_tensorflow.build
    from . import build_onnx

    return build_onnx.build


def _images(wanted: ImageSet | None, downloads: Path, purpose: str) -> Images:
    if wanted is None:
        raise ConversionError(
            "images",
            f"INT8 needs {purpose} images and the plan names none",
            f"Set {purpose} in the plan to a folder of photographs like those the model will be asked about",
        )
    return image_set(wanted, local_copy(wanted.source, downloads, f"{purpose} images"), purpose)


def inputs_hash(
    plan: Plan,
    artefact: Artefact,
    source_hash: str,
    calibration: Images | None,
    held_out: Images | None,
    gpu: Gpu | None,
) -> str:
    """Everything that the artefact and its figures depend on. Where a model lies does not count, what it is does."""
    return canonical_hash(
        {
            "convert": __version__,
            "image": plan.image,
            "artefact": asdict(artefact),
            "model": asdict(replace(plan.model, source="", checksum="")),
            "source": source_hash,
            "calibration": None if calibration is None else calibration.as_json(),
            "heldOut": None if held_out is None else held_out.as_json(),
            "gpu": None if gpu is None else [gpu.name, gpu.compute_capability],
        }
    )


def _is_current(previous: Path | None, key: str) -> bool:
    path = None if previous is None else previous / "manifest.json"
    return path is not None and path.is_file() and read_json(path, "the previous manifest").get("inputsHash") == key


def _manifest(job: Job, built: Built, key: str, source_hash: str, gpu: Gpu | None) -> dict[str, Any]:
    files = sorted(path for path in job.target.rglob("*") if path.is_file())
    compared = agreement(built.reference, built.answers).as_json() if job.held_out is not None else None
    return {
        "schemaVersion": 1,
        "artefact": job.artefact.name,
        "platform": job.artefact.platform,
        "precision": job.artefact.precision,
        "builtMaxBatchSize": job.artefact.built_max_batch_size,
        "inputsHash": key,
        "model": {"source": job.plan.model.source, "sha256": source_hash},
        "image": job.plan.image,
        "gpu": None if gpu is None else gpu.as_json(),
        "calibration": None if job.calibration is None else job.calibration.as_json(),
        "heldOut": None if job.held_out is None else job.held_out.as_json(),
        "accuracy": compared,
        # One caller, one batch after the other, copies to and from the GPU included.
        "standAloneSpeed": [speed.as_json() for speed in built.speeds],
        **built.details,
        "versions": {"convert": __version__, "python": platform.python_version(), **built.versions},
        "files": [
            {
                "path": path.relative_to(job.target.parent).as_posix(),
                "bytes": path.stat().st_size,
                "sha256": sha256_file(path),
            }
            for path in files
        ],
        "at": _now(),
    }


def write_failure(output: Path, name: str, error: Exception) -> None:
    """`failure.json`: why an artefact was not made. A failure to write it must not hide the failure itself."""
    known = isinstance(error, ConversionError)
    failure = {
        "schemaVersion": 1,
        "artefact": name,
        "kind": error.kind if isinstance(error, ConversionError) else "unexpected",
        "message": error.message if isinstance(error, ConversionError) else f"{type(error).__name__}: {error}",
        "fix": error.fix if isinstance(error, ConversionError) else "See the log; this is not foreseen",
        "expected": known,
        "at": _now(),
    }
    try:
        write_json(output / "failure.json", failure)
    except (ConversionError, OSError) as unwritten:
        print(f"the failure could not be written either: {unwritten}", flush=True)


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds").replace("+00:00", "Z")
