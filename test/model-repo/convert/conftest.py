"""Models small enough to convert in a moment, and a report that CI can count."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from convert.plan import Artefact, Model
from onnx import TensorProto, helper, numpy_helper

PROJECT = Path(__file__).resolve().parents[3]
SIZE = 16
CLASSES = 7
PHOTOS = sorted(path for path in (PROJECT / "model-repo" / "images").iterdir() if path.suffix != ".md")


class CountingReport:
    """Numbers of tests as vitest's JSON report names them; a test counts once, by its worst phase."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.outcomes: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed or (report.skipped and self.outcomes.get(report.nodeid) != "failed"):
            self.outcomes[report.nodeid] = report.outcome
        elif report.when == "call":
            self.outcomes.setdefault(report.nodeid, report.outcome)

    def pytest_sessionfinish(self) -> None:
        outcomes = list(self.outcomes.values())
        counts = {
            "numPassedTests": outcomes.count("passed"),
            "numFailedTests": outcomes.count("failed"),
            "numPendingTests": outcomes.count("skipped"),
        }
        self.path.write_text(json.dumps(counts))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--counts", help="file for the numbers of passed, failed and skipped tests")


def pytest_configure(config: pytest.Config) -> None:
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    if counts := config.getoption("--counts"):
        config.pluginmanager.register(CountingReport(Path(counts)))


def typescript(code: str) -> Any:
    """Runs TypeScript in the project and reads the JSON it prints."""
    tsx = PROJECT / "node_modules" / "tsx" / "dist" / "cli.mjs"
    done = subprocess.run(["node", str(tsx), "-e", code], cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def artefact(**changes: Any) -> Artefact:
    """An artefact of the small models."""
    fields: dict[str, Any] = {
        "name": "small",
        "platform": "onnxruntime_onnx",
        "precision": "fp32",
        "built_max_batch_size": None,
        "batch_sizes": (4,),
        "input_name": "input",
        "input_type": "FP32",
        "height": SIZE,
        "width": SIZE,
        "output_name": "probabilities",
        "classes": CLASSES,
    }
    return Artefact(**{**fields, **changes})


def plan_json(**changes: Any) -> dict[str, Any]:
    """A plan as the stack writes it, for one artefact of the small models."""
    entry = {
        "name": "small",
        "platform": "onnxruntime_onnx",
        "precision": "fp32",
        "builtMaxBatchSize": None,
        "input": {"name": "input", "type": "FP32", "dims": [SIZE, SIZE, 3], "format": "FORMAT_NHWC"},
        "output": {"name": "probabilities", "type": "FP32", "dims": [CLASSES], "format": None},
        "labelsFile": None,
        "batchSizes": [4],
    }
    entry.update(changes.pop("artefact", {}))
    return {
        "schemaVersion": 1,
        "image": "nvcr.io/x:25.02",
        "gpuType": "nvidia-tesla-t4",
        "artefacts": [entry],
        **changes,
    }


def small_network(
    *, batch: int | str = "N", layout: str = "NCHW", size: int | str = SIZE, softmax: bool = False, weight: float = 1.0
) -> onnx.ModelProto:
    """Convolution, ReLU, mean over the image, Reshape, Gemm: input `data`, output `scores`."""
    random = np.random.default_rng(1)

    def constant(name: str, value: np.ndarray[Any, Any]) -> onnx.TensorProto:
        return numpy_helper.from_array(value, name)

    nodes = [] if layout == "NCHW" else [helper.make_node("Transpose", ["data"], ["nchw"], perm=[0, 3, 1, 2])]
    first = "data" if layout == "NCHW" else "nchw"
    nodes += [
        helper.make_node("Conv", [first, "w", "b"], ["c"], name="conv", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"], name="relu"),
        helper.make_node("GlobalAveragePool", ["r"], ["p"], name="pool"),
        helper.make_node("Reshape", ["p", "flat"], ["f"], name="reshape"),
        helper.make_node("Gemm", ["f", "g", "h"], ["scores" if not softmax else "s"], name="gemm"),
    ]
    if softmax:
        nodes.append(helper.make_node("Softmax", ["s"], ["scores"], name="softmax", axis=1))
    flat = np.array([batch if isinstance(batch, int) else -1, 8], np.int64)
    shape: list[int | str] = [batch, 3, size, size] if layout == "NCHW" else [batch, size, size, 3]
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("data", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, [batch, CLASSES])],
        [
            constant("w", random.normal(0, 0.3, (8, 3, 3, 3)).astype(np.float32)),
            constant("b", random.normal(0, 0.3, 8).astype(np.float32)),
            constant("flat", flat),
            constant("g", (random.normal(0, weight, (8, CLASSES))).astype(np.float32)),
            constant("h", np.zeros(CLASSES, np.float32)),
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


#: How the small network wants its images.
SMALL = Model(
    source="",
    input_tensor="data",
    output_tensor="scores",
    layout="NCHW",
    mean=(127.0,),
    scale=(1 / 64,),
    scores="logits",
)


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Folder with the project's three photographs."""
    folder = tmp_path / "photos"
    folder.mkdir()
    for path in PHOTOS:
        shutil.copy(path, folder)
    return folder


@pytest.fixture
def save_onnx(tmp_path: Path) -> Callable[..., Path]:
    def save(model: onnx.ModelProto, name: str = "small.onnx") -> Path:
        onnx.save(model, tmp_path / name)
        return tmp_path / name

    return save
