"""How fast a prepared model is alone on this machine's CPU, with as many threads as the local server gives it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from ..images import Pixels
from ..onnx_path.serving import ServedType
from ..onnx_path.trtexec import Speed
from ..speed import measure

#: Batch sizes that are measured; on a CPU larger ones gain nothing.
BATCH_SIZES = (1, 2, 4)
#: Seconds that each batch size is measured.
BENCH_SECONDS = 1.0
#: A CPU has no clocks and caches of a GPU to warm up, and a batch takes long.
CALLS = 5


def cores() -> int:
    return len(os.sched_getaffinity(0))


def threads() -> int:
    """All cores but one, as `defaultCpuThreads` in local-triton/onnx/executor.ts."""
    return max(1, cores() - 1)


def cpu_model(cpuinfo: Path = Path("/proc/cpuinfo")) -> str | None:
    """The processor as Linux names it; None where it names none."""
    try:
        lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), None)


def machine() -> dict[str, Any]:
    """Where the speeds were measured, for the manifest."""
    return {"cpu": cpu_model(), "cores": cores(), "threads": threads()}


def bench(model: Path, pixels: Pixels, served_type: ServedType, seconds: float) -> list[Speed]:
    """Speeds by batch size, with the session settings of local-triton/onnx/instance-worker.ts."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = threads()
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    element = np.uint8 if served_type == "UINT8" else np.float32

    def predict(batch: NDArray[Any]) -> None:
        session.run(None, {name: batch})

    return measure(predict, pixels.astype(element), BATCH_SIZES, seconds, calls=CALLS)
