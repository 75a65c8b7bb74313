"""One artefact from plan to manifest, with stand-ins for the GPU, TF-TRT's builder and trtexec."""

from __future__ import annotations

import errno
import hashlib
import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from conftest import SIZE, plan_json, small_network
from convert import __main__ as command
from convert.errors import ConversionError
from convert.gpu import Gpu, check_gpu, query_gpu
from convert.job import Gear
from convert.onnx_path.graph import run as run_onnx
from convert.plan import Plan, parse_plan
from convert.run import convert
from convert.speed import measure

T4 = Gpu("Tesla T4", "7.5", "580.95")
MODEL = {
    "inputTensor": "data",
    "outputTensor": "scores",
    "layout": "NCHW",
    "mean": 127,
    "scale": 1 / 64,
    "scores": "logits",
}


class Trtexec:
    """Answers like trtexec: it keeps the ONNX file as the plan and runs it on the CPU."""

    def __init__(self, version: str = "v100800", failure: str | None = None, nan: bool = False) -> None:
        self.version, self.failure, self.nan = version, failure, nan
        self.calls: list[dict[str, str]] = []

    def __call__(self, arguments: Sequence[str]) -> tuple[int, str]:
        options = {name: value for name, _, value in (argument.partition("=") for argument in arguments)}
        self.calls.append(options)
        banner = f"&&&& RUNNING TensorRT.trtexec [TensorRT {self.version}]\n"
        if "--onnx" in options:
            if self.failure is not None:
                return 1, banner + self.failure
            shutil.copy(options["--onnx"], options["--saveEngine"])
        elif "--exportOutput" in options:
            name, file = options["--loadInputs"].split(":", 1)
            shape = [int(size) for size in options["--shapes"].split(":")[1].split("x")]
            element = np.uint8 if Path(file).stat().st_size == np.prod(shape) else np.float32
            answers = run_onnx(Path(options["--loadEngine"]), [np.fromfile(file, element).reshape(shape)])
            values = answers.ravel().tolist()
            if self.nan:
                values[0] = float("nan")
            tensor = {"name": "probabilities", "dimensions": "x".join(map(str, answers.shape)), "values": values}
            Path(options["--exportOutput"]).write_text(json.dumps([{"name": name, "values": []}, tensor]))
        elif "--shapes" in options:
            return 0, banner + "Throughput: 100 qps\nLatency: min = 1 ms, median = 2 ms, percentile(95%) = 3 ms\n"
        return 0, banner


@pytest.fixture
def gear() -> Gear:
    return Gear(query_gpu=lambda: T4, run_trtexec=Trtexec(), bench_seconds=0.01)


@pytest.fixture
def model_file(save_onnx: Callable[..., Path]) -> Path:
    return save_onnx(small_network())


def make_plan(model_file: Path, photos: Path, artefact: dict[str, Any] | None = None, **changes: Any) -> Plan:
    images = {"source": str(photos), "count": 3}
    raw: dict[str, Any] = {"model": {**MODEL, "source": str(model_file)}, "calibration": images, "heldOut": images}
    return parse_plan(plan_json(artefact=artefact or {}, **{**raw, **changes}))


ENGINE = {"platform": "tensorrt_plan", "precision": "int8", "builtMaxBatchSize": 4, "batchSizes": [2, 4]}


def test_manifest_of_an_onnx_artefact(model_file: Path, photos: Path, tmp_path: Path, gear: Gear) -> None:
    out = tmp_path / "out"
    plan = make_plan(model_file, photos, {"precision": "int8"})
    assert convert(plan, "small", None, out, tmp_path, gear) == "converted"
    manifest = json.loads((out / "manifest.json").read_text())
    content = (out / "1" / "model.onnx").read_bytes()
    assert manifest["files"] == [
        {"path": "1/model.onnx", "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    ]
    assert manifest["gpu"] == {"name": "Tesla T4", "computeCapability": "7.5", "driver": "580.95"}
    assert manifest["calibration"]["images"] == 3
    assert manifest["accuracy"]["top1Agreement"] == 1
    assert 0 < manifest["accuracy"]["maxProbabilityDifference"] < 0.1
    assert [entry["batchSize"] for entry in manifest["standAloneSpeed"]] == [1, 2, 4]
    assert all(entry["imagesPerS"] > 0 for entry in manifest["standAloneSpeed"])
    assert manifest["model"]["sha256"] == hashlib.sha256(model_file.read_bytes()).hexdigest()
    assert set(manifest["versions"]) == {"convert", "python", "onnx", "onnxruntime"}
    assert manifest["image"] == "nvcr.io/x:25.02"


@pytest.mark.parametrize("precision", ["fp32", "fp16", "int8"])
@pytest.mark.parametrize("version", ["v100800", "v110000"])
@pytest.mark.parametrize("input_type", ["FP32", "UINT8"])
def test_tensorrt_plan(
    model_file: Path, photos: Path, tmp_path: Path, gear: Gear, precision: str, version: str, input_type: str
) -> None:
    trtexec = Trtexec(version)
    entry = {**ENGINE, "precision": precision}
    entry["input"] = {"name": "input", "type": input_type, "dims": [SIZE, SIZE, 3], "format": "FORMAT_NHWC"}
    out = tmp_path / "out"
    convert(make_plan(model_file, photos, entry), "small", None, out, tmp_path, replace(gear, run_trtexec=trtexec))
    manifest = json.loads((out / "manifest.json").read_text())
    assert [file["path"] for file in manifest["files"]] == ["1/model.plan"]
    assert manifest["standAloneSpeed"][-1] == {"batchSize": 4, "imagesPerS": 400, "latencyP50Ms": 2, "latencyP95Ms": 3}
    assert manifest["accuracy"]["top1Agreement"] == 1
    model = onnx.load(out / "1" / "model.plan")
    kinds = {node.op_type for node in model.graph.node}
    assert ("QuantizeLinear" in kinds) == (precision == "int8")
    halves = any(tensor.data_type == onnx.TensorProto.FLOAT16 for tensor in model.graph.initializer)
    # TensorRT 10 is told by a flag, TensorRT 11 by the graph.
    assert halves == (precision == "fp16" and version == "v110000")
    build = next(call for call in trtexec.calls if "--onnx" in call)
    assert build["--maxShapes"] == f"input:4x{SIZE}x{SIZE}x3"
    assert ("--fp16" in build) == (precision != "fp32" and version == "v100800")


def test_unchanged_inputs_are_skipped_and_changed_ones_are_not(
    model_file: Path, photos: Path, tmp_path: Path, gear: Gear
) -> None:
    def again(number: int, plan: Plan, used: Gear = gear) -> str:
        outcome = convert(plan, "small", tmp_path / "first", tmp_path / str(number), tmp_path, used)
        assert any((tmp_path / str(number)).iterdir()) == (outcome == "converted")
        return outcome

    int8 = {"precision": "int8"}
    plan = make_plan(model_file, photos, int8)
    convert(plan, "small", None, tmp_path / "first", tmp_path, gear)
    assert again(1, plan) == "unchanged"
    moved = shutil.copy(model_file, tmp_path / "moved.onnx")
    assert again(2, make_plan(Path(moved), photos, int8)) == "unchanged"
    assert again(3, make_plan(model_file, photos, {**int8, "batchSizes": [8]})) == "converted"
    other_gpu = replace(gear, query_gpu=lambda: Gpu("NVIDIA L4", "8.9", "580.95"))
    assert again(4, plan, other_gpu) == "converted"
    shutil.copy(photos / "cat.jpg", photos / "coffee.png")
    assert again(5, make_plan(model_file, photos, int8)) == "converted"


def failure(out: Path) -> dict[str, Any]:
    assert [path.name for path in out.iterdir()] == ["failure.json"]
    content: dict[str, Any] = json.loads((out / "failure.json").read_text())
    return content


@pytest.mark.parametrize(
    ("change", "artefact", "kind", "message"),
    [
        ({"calibration": None}, {"precision": "int8"}, "images", "INT8 needs calibration images"),
        (
            {"calibration": {"source": "PHOTOS", "count": 9}},
            {"precision": "int8"},
            "images",
            "9 calibration images were asked for, but there are 3",
        ),
        ({"model": {**MODEL, "source": "MODEL", "inputTensor": "x"}}, {}, "tensor-name", "inputs are data"),
        (
            {"model": {**MODEL, "source": "MODEL", "scores": "probabilities"}},
            {},
            "output",
            "not answer with probabilities",
        ),
        ({"model": {**MODEL, "source": "MODEL", "scale": 1e38}}, {}, "nan", "original model answers .* with NaN"),
        ({"model": {**MODEL, "source": "MODEL", "checksum": "md5:" + "0" * 32}}, {}, "checksum", "has md5"),
        ({"gpuType": "nvidia-l4"}, ENGINE, "gpu", r"Tesla T4 has compute capability 7\.5, but nvidia-l4 \(8\.9\)"),
        (
            {},
            {"platform": "tensorflow_savedmodel", "precision": "original"},
            "model",
            "is ONNX, but small is a SavedModel",
        ),
    ],
)
def test_refusals_leave_an_explanation(
    model_file: Path,
    photos: Path,
    tmp_path: Path,
    gear: Gear,
    change: dict[str, Any],
    artefact: dict[str, Any],
    kind: str,
    message: str,
) -> None:
    text = json.dumps(change).replace("PHOTOS", str(photos)).replace('"MODEL"', json.dumps(str(model_file)))
    plan = make_plan(model_file, photos, artefact, **json.loads(text))
    with pytest.raises(ConversionError, match=message):
        convert(plan, "small", None, tmp_path / "out", tmp_path, gear)
    written = failure(tmp_path / "out")
    assert (written["kind"], written["artefact"], written["expected"]) == (kind, "small", True)
    assert written["fix"]


def test_nan_of_the_converted_model(model_file: Path, photos: Path, tmp_path: Path, gear: Gear) -> None:
    used = replace(gear, run_trtexec=Trtexec(nan=True))
    with pytest.raises(ConversionError, match="small answers 1 of 3 images with NaN"):
        convert(make_plan(model_file, photos, ENGINE), "small", None, tmp_path / "out", tmp_path, used)
    assert failure(tmp_path / "out")["kind"] == "nan"


def test_operation_that_tensorrt_refuses(model_file: Path, photos: Path, tmp_path: Path, gear: Gear) -> None:
    output = '[E] While parsing node number 3 [Gemm -> "scores"]:\n[E] No importer registered for op: Gemm\n'
    used = replace(gear, run_trtexec=Trtexec(failure=output))
    with pytest.raises(ConversionError, match=r"operation Gemm \(node 3, output scores\)"):
        convert(make_plan(model_file, photos, ENGINE), "small", None, tmp_path / "out", tmp_path, used)


@pytest.mark.parametrize(("number", "kind"), [(errno.ENOSPC, "disk-full"), (errno.EACCES, "permission")])
def test_disk_trouble(
    model_file: Path, photos: Path, tmp_path: Path, gear: Gear, monkeypatch: pytest.MonkeyPatch, number: int, kind: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(number, "no", "/somewhere")

    monkeypatch.setattr(onnx, "save", fail)
    with pytest.raises(ConversionError):
        convert(make_plan(model_file, photos), "small", None, tmp_path / "out", tmp_path, gear)
    assert failure(tmp_path / "out")["kind"] == kind


def test_defects_are_told_apart_from_refusals(
    model_file: Path, photos: Path, tmp_path: Path, gear: Gear, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("convert.build_onnx.served_original", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        convert(make_plan(model_file, photos), "small", None, tmp_path / "out", tmp_path, gear)
    written = failure(tmp_path / "out")
    assert (written["kind"], written["expected"]) == ("unexpected", False)


def test_nothing_is_overwritten(model_file: Path, photos: Path, tmp_path: Path, gear: Gear) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "mine").write_text("keep")
    with pytest.raises(ConversionError, match="is not empty"):
        convert(make_plan(model_file, photos), "small", None, out, tmp_path, gear)
    assert [path.name for path in out.iterdir()] == ["mine"]


def test_without_held_out_images_answers_are_checked_and_accuracy_is_unknown(
    model_file: Path, photos: Path, tmp_path: Path, gear: Gear
) -> None:
    convert(make_plan(model_file, photos, heldOut=None), "small", None, tmp_path / "out", tmp_path, gear)
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["accuracy"] is None


def test_tftrt_artefacts(photos: Path, tmp_path: Path, gear: Gear) -> None:
    import tensorflow as tf
    from test_tensorflow import write_model

    source = write_model(tmp_path / "source", [None, SIZE, SIZE, 3])
    jobs = []

    def builder(job: Any) -> None:
        """Copies the model; the real one would put engines into it."""
        jobs.append(job)
        shutil.copytree(job.source, job.target)

    saved = {"platform": "tensorflow_savedmodel", "precision": "int8", "builtMaxBatchSize": 4}
    model = {"source": str(source), "mean": 127, "scale": 1 / 64, "scores": "logits"}
    plan = make_plan(source, photos, saved, model=model)
    used = replace(gear, build_engines=builder)
    with pytest.raises(ConversionError, match="the conversion did not take"):
        convert(plan, "small", None, tmp_path / "refused", tmp_path, used)
    assert [feed["input"].shape[0] for feed in jobs[0].shapes] == [4, 1]

    original = make_plan(source, photos, {**saved, "precision": "original", "builtMaxBatchSize": None}, model=model)
    convert(original, "small", None, tmp_path / "original", tmp_path, used)
    manifest = json.loads((tmp_path / "original" / "manifest.json").read_text())
    assert {file["path"] for file in manifest["files"]} >= {"1/model/saved_model.pb"}
    assert manifest["accuracy"]["maxProbabilityDifference"] == 0
    assert manifest["versions"]["tensorflow"] == tf.__version__
    assert [speed["batchSize"] for speed in manifest["standAloneSpeed"]] == [1, 2, 4]
    assert all(speed["imagesPerS"] > 0 for speed in manifest["standAloneSpeed"])

    def full_disk(job: Any) -> None:
        with tf.io.gfile.GFile("/dev/full", "w") as file:
            file.write("no room for this")

    with pytest.raises(ConversionError, match="the disk is full while making small"):
        convert(plan, "small", None, tmp_path / "full", tmp_path, replace(gear, build_engines=full_disk))
    assert failure(tmp_path / "full")["kind"] == "disk-full"


def test_gpu_query_and_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "nvidia-smi"
    monkeypatch.setenv("PATH", str(tmp_path))
    assert query_gpu() is None
    for body, expected in (("echo 'Tesla T4, 7.5, 580.95'", T4), ("echo broken", None), ("exit 9", None)):
        program.write_text(f"#!/bin/sh\n{body}\n")
        program.chmod(0o755)
        assert query_gpu() == expected
    check_gpu(T4, "nvidia-tesla-t4")
    check_gpu(T4, "")
    with pytest.raises(ConversionError, match="there is no GPU"):
        check_gpu(None, "nvidia-tesla-t4")


def test_speed_by_a_clock_of_its_own() -> None:
    now = [0.0]

    def predict(batch: Any) -> None:
        now[0] += 0.001 * len(batch)

    speeds = measure(predict, np.zeros((3, 2, 2, 3), np.uint8), [1, 8], 0.5, lambda: now[0])
    assert [speed.as_json() for speed in speeds] == [
        {"batchSize": 1, "imagesPerS": 1000.0, "latencyP50Ms": 1.0, "latencyP95Ms": 1.0},
        {"batchSize": 8, "imagesPerS": 1000.0, "latencyP50Ms": 8.0, "latencyP95Ms": 8.0},
    ]


def test_speed_by_as_many_calls_as_are_asked_for() -> None:
    calls: list[int] = []
    speeds = measure(lambda batch: calls.append(len(batch)), np.zeros((1, 2, 2, 3), np.uint8), [2], 0, calls=3)
    assert (calls, [speed.batch_size for speed in speeds]) == ([2] * 6, [2])


def arguments(tmp_path: Path, *more: str) -> list[str]:
    words = ("--plan", tmp_path / "plan.json", "--artefact", "small", "--output", tmp_path / "out", *more)
    return [str(word) for word in words]


def test_command_line(
    model_file: Path, photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "Gear", lambda bench_seconds: Gear(lambda: T4, bench_seconds=bench_seconds))
    gone = {"source": "gs://nowhere/images", "count": 2}
    raw = plan_json(model={**MODEL, "source": "gs://nowhere/m.onnx"}, heldOut=gone, calibration=gone)
    (tmp_path / "plan.json").write_text(json.dumps(raw))
    copies = ("--model", str(model_file), "--held-out", str(photos), "--calibration", str(photos))
    assert command.main(arguments(tmp_path, *copies, "--bench-seconds", "0.01")) == 0
    assert "small: converted" in capsys.readouterr().out
    previous = tmp_path / "previous"
    shutil.move(tmp_path / "out", previous)
    assert command.main(arguments(tmp_path, *copies, "--previous", str(previous))) == 0
    assert "small: unchanged" in capsys.readouterr().out
    assert list((tmp_path / "out").iterdir()) == []


def test_command_line_explains_a_bad_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "plan.json").write_text('{"schemaVersion": 3}')
    assert command.main(arguments(tmp_path)) == 2
    assert "schemaVersion is 3" in capsys.readouterr().err
    assert failure(tmp_path / "out")["kind"] == "plan"
