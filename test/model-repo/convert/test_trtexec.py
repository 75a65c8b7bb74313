"""Command lines of trtexec for TensorRT 10 and 11, and what its output means."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from conftest import artefact
from convert.errors import ConversionError
from convert.onnx_path import trtexec

PLAN = artefact(
    name="trt",
    platform="tensorrt_plan",
    precision="int8",
    built_max_batch_size=16,
    batch_sizes=(8, 16),
    input_type="UINT8",
    height=224,
    width=224,
)


def test_int8_for_tensorrt_10() -> None:
    assert trtexec.build_arguments(PLAN, Path("m.onnx"), Path("m.plan"), 10) == [
        "--onnx=m.onnx",
        "--saveEngine=m.plan",
        "--minShapes=input:1x224x224x3",
        "--optShapes=input:16x224x224x3",
        "--maxShapes=input:16x224x224x3",
        "--memPoolSize=workspace:4096M",
        "--int8",
        "--fp16",
        "--skipInference",
    ]


@pytest.mark.parametrize(
    ("precision", "major", "flags"),
    [
        ("fp32", 10, {"--noTF32"}),
        ("fp16", 10, {"--fp16"}),
        ("fp32", 11, {"--noTF32"}),
        ("fp16", 11, set()),
        ("int8", 11, set()),
    ],
)
def test_precision_flags(precision: str, major: int, flags: set[str]) -> None:
    spec = artefact(platform="tensorrt_plan", precision=precision, built_max_batch_size=4)
    built = trtexec.build_arguments(spec, Path("m"), Path("p"), major)
    assert {flag for flag in built if "=" not in flag} == flags | {"--skipInference"}


def test_unconverted_model_is_no_plan() -> None:
    spec = artefact(platform="tensorrt_plan", precision="original", built_max_batch_size=4)
    with pytest.raises(ConversionError, match="no precision original"):
        trtexec.build_arguments(spec, Path("m"), Path("p"), 10)


@pytest.mark.parametrize(
    ("banner", "version"),
    [("v101000", (10, 10, 0)), ("v100800", (10, 8, 0)), ("v8601", (8, 6, 1)), ("v110001", (11, 0, 1))],
)
def test_version(banner: str, version: tuple[int, int, int]) -> None:
    text = f"&&&& RUNNING TensorRT.trtexec [TensorRT {banner}] [b43] # trtexec --help\n"
    assert trtexec.tensorrt_version(lambda _: (0, text)) == version


def test_no_version() -> None:
    with pytest.raises(ConversionError, match="does not say its version"):
        trtexec.tensorrt_version(lambda _: (0, "hello"))


OUTPUT = """[03/01/2025-10:00:00] [I] === Performance summary ===
[03/01/2025-10:00:00] [I] Throughput: 312.5 qps
[03/01/2025-10:00:00] [I] Latency: min = 3.1 ms, max = 9.4 ms, mean = 3.4 ms, median = 3.25 ms, percentile(95%) = 4.5 ms
[03/01/2025-10:00:00] [I] Enqueue Time: min = 0.2 ms, max = 1 ms, mean = 0.3 ms, median = 0.3 ms, percentile(95%) = 0.5 ms
"""


def test_speed_counts_images() -> None:
    assert trtexec.parse_speed(OUTPUT, 8).as_json() == {
        "batchSize": 8,
        "imagesPerS": 2500.0,
        "latencyP50Ms": 3.25,
        "latencyP95Ms": 4.5,
    }
    with pytest.raises(ConversionError, match="no throughput"):
        trtexec.parse_speed("[E] nothing", 8)


@pytest.mark.parametrize(
    ("output", "kind", "message"),
    [
        (
            '[E] While parsing node number 12 [Rleu -> "relu_out"]:\n[E] [TRT] No importer registered for op: Rleu.',
            "unsupported-op",
            r"operation Rleu \(node 12, output relu_out\)",
        ),
        ("[E] getPluginCreator could not find plugin: MyOp version: 1", "unsupported-op", "operation MyOp"),
        ("[E] Error Code 2: OutOfMemory (no further information)", "gpu-memory", "memory is full"),
        ("[I] fine\n[E] Error Code 4: odd\n[I] bye", "trtexec", r"exit code 1: \[E\] Error Code 4: odd"),
        ("[E] Saving engine to file failed: No space left on device", "disk-full", "disk is full while trtexec writes"),
        ("Segmentation fault", "trtexec", "exit code 1: Segmentation fault"),
        ("", "trtexec", "no output"),
    ],
)
def test_failures(output: str, kind: str, message: str) -> None:
    error = trtexec.explain_failure(output, 1)
    assert error.kind == kind
    with pytest.raises(ConversionError, match=message):
        raise error


def test_runs_the_program_on_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "trtexec"
    program.write_text(
        f"#!{sys.executable}\nimport sys\nprint(sys.argv[1:])\nprint('bad', file=sys.stderr)\nsys.exit(3)\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    code, output = trtexec.run_trtexec(["--a", "--b"])
    assert code == 3
    assert "['--a', '--b']" in output
    assert "bad" in output
    assert capsys.readouterr().out == output


def test_missing_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConversionError, match="trtexec is not there"):
        trtexec.run_trtexec([])
