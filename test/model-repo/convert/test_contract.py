"""What the TypeScript half writes is what this package reads: the stack's plan, and the VM's startup script around the package."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import PHOTOS, PROJECT, plan_json, small_network, typescript
from convert.plan import RESNET50, parse_plan
from test_run import MODEL


@pytest.mark.parametrize(
    ("raw", "platforms"),
    [
        ({}, {"tensorflow_savedmodel"}),
        (
            {
                "artefactPath": "onnx-tensorrt",
                "variant": "trt_int8_bs16",
                "model": '{"source":"gs://b/m.onnx","mean":127,"scale":[1,2,3],"layout":"NCHW","imageSize":[96,64],"labels":["a","b"]}',
            },
            {"tensorrt_plan"},
        ),
    ],
)
def test_the_stacks_plan_is_read_whole(raw: dict[str, str], platforms: set[str]) -> None:
    if "variant" in raw:
        settings = {"maxBatchSize": 16, "instanceCount": 1, "queueDelayUs": 1000}
        raw = {**raw, "variant": json.dumps({"artefact": raw["variant"], **settings}), "repositoryVariants": "[]"}
    config = json.dumps({"project": "my-project", **raw})
    written = typescript(
        f"""import {{ parseConfig }} from "./stack/config"; import {{ conversionPlan }} from "./stack/variants";
        const config = parseConfig({config});
        console.log(conversionPlan(config.variants.repository, {{ image: config.converter, gpuType: config.gpuType,
          model: config.sourceModel, calibration: {{ source: "calibration", count: config.calibrationCount }},
          heldOut: {{ source: "held-out", count: config.heldOutCount }} }}));"""
    )
    plan = parse_plan(written)
    assert {artefact.platform for artefact in plan.artefacts} == platforms
    assert len(plan.artefacts) == len(written["artefacts"])
    assert all(artefact.input_name == "input" for artefact in plan.artefacts)
    assert (plan.model == RESNET50) == ("model" not in raw)
    served = (224, 224, 1000) if "model" not in raw else (96, 64, 2)
    assert {(artefact.height, artefact.width, artefact.classes) for artefact in plan.artefacts} == {served}
    assert plan.calibration is not None
    assert plan.calibration.count == 500


GCLOUD = """
place() { case "$1" in gs://*) echo "$BUCKETS/${1#gs://}" ;; *) echo "$1" ;; esac; }
words=(); for word; do case "$word" in --*) ;; *) words+=("$word") ;; esac; done
from=${words[2]} to=$(place "${words[3]}")
case "${words[1]}" in
  cp) mkdir -p "$(dirname "$to")"
    if [ "$from" = - ]; then cat > "$to"; else cp -r "$(place "$from")" "$to" 2> /dev/null || exit 1; fi ;;
  rsync) from=$(place "$from"); [ -d "$from" ] || { echo "matched no objects" >&2; exit 1; }
    rm -rf "$to"; mkdir -p "$(dirname "$to")"; cp -r "$from" "$to" ;;
esac"""

DOCKER = """
[ "$1" = run ] || exit 0
shift
while [ "$1" != image:1 ]; do
  case "$1" in --env) export "${2//\\/work/$WORK}"; shift ;; --volume | --shm-size | --gpus) shift ;; esac
  shift
done
shift 2
exec "$PYTHON" "${@//\\/work/$WORK}" --bench-seconds 0.01
"""


def tool(folder: Path, name: str, body: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/bash\n{body}\n")
    path.chmod(0o755)


@pytest.fixture
def machine(tmp_path: Path, save_onnx: Callable[..., Path]) -> Callable[[], str]:
    """The VM with a bucket that holds plan, package, model and photographs; call it to boot."""
    bucket = tmp_path / "buckets" / "models"
    (bucket / "conversion").mkdir(parents=True)
    with zipfile.ZipFile(bucket / "conversion" / "package.zip", "w") as package:
        for path in sorted((PROJECT / "model-repo" / "convert").rglob("*.py")):
            package.write(path, path.relative_to(PROJECT / "model-repo"))
    for folder in ("calibration", "held-out"):
        (bucket / folder).mkdir()
        for photo in PHOTOS:
            (bucket / folder / photo.name).write_bytes(photo.read_bytes())
    save_onnx(small_network(), "m.onnx").rename(bucket / "m.onnx")
    images = {"source": "calibration", "count": 3}
    plan = plan_json(model={**MODEL, "source": "gs://models/m.onnx"}, calibration=images, heldOut=images)
    small = plan["artefacts"][0]
    plan["artefacts"] = [
        {**small, "precision": "int8"},
        {**small, "name": "impossible", "platform": "tensorrt_plan", "builtMaxBatchSize": 4},
    ]
    (bucket / "conversion" / "plan.json").write_text(json.dumps(plan))
    work = tmp_path / "work"
    script = typescript(
        """import { conversionScript } from "./components/conversion-vm-script";
        console.log(JSON.stringify(conversionScript({ bucket: "models", repositoryPrefix: "models", image: "image:1",
          planObject: "conversion/plan.json", packageObject: "conversion/package.zip", artefacts: ["impossible", "small"],
          variants: [{ name: "a", artefact: "small" }, { name: "b", artefact: "impossible" }], requirements: null,
          modelSource: "gs://models/m.onnx", calibrationImages: "calibration", heldOutImages: "held-out", driverWaitS: 1 })));"""
    ).replace("/var/lib/conversion", str(work))
    programs = tmp_path / "bin"
    programs.mkdir()
    tool(programs, "gcloud", GCLOUD)
    tool(programs, "docker", DOCKER)
    for name in ("nvidia-smi", "shutdown", "sleep"):
        tool(programs, name, "")
    environment = {
        **os.environ,
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "BUCKETS": str(tmp_path / "buckets"),
        "WORK": str(work),
        "PYTHON": sys.executable,
    }

    def boot() -> str:
        done = subprocess.run(["bash", "-c", script], env=environment, capture_output=True, text=True, check=False)
        return done.stdout

    return boot


def test_a_boot_of_the_vm_fills_the_bucket_and_the_next_one_changes_nothing(
    machine: Callable[[], str], tmp_path: Path
) -> None:
    said = machine()
    bucket = tmp_path / "buckets" / "models"
    status = json.loads((bucket / "conversion" / "status.json").read_text())
    assert (status["state"], status["failed"]) == ("failed", ["impossible"]), said
    manifest = json.loads((bucket / "artefacts" / "small" / "manifest.json").read_text())
    assert manifest["accuracy"]["images"] == 3
    model = bucket / "artefacts" / "small" / "1" / "model.onnx"
    published = bucket / "models" / "a" / "1" / "model.onnx"
    assert published.read_bytes() == model.read_bytes()
    assert not (bucket / "models" / "b").exists()
    failure = json.loads((bucket / "conversion" / "failures" / "impossible.json").read_text())
    assert failure["message"] == "there is no GPU that nvidia-smi knows"
    assert "small: converted" in said
    made_at = model.stat().st_mtime_ns
    assert "small: unchanged" in machine()
    assert model.stat().st_mtime_ns == made_at
    assert manifest["model"]["source"].endswith("m.onnx")
