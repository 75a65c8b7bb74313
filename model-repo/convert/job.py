"""What one conversion works with, and what its parts can have replaced in tests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .gpu import Query, query_gpu
from .images import Pixels, choose_images, images_hash, list_images, read_images
from .onnx_path.trtexec import Runner, Speed, run_trtexec
from .plan import Artefact, ImageSet, Plan

#: Seconds that each batch size is measured.
BENCH_SECONDS = 5
#: Images for checks when there is no held-out folder: noise tells nothing about accuracy, but finds NaN.
NOISE_IMAGES = 4


@dataclass(frozen=True)
class Images:
    """A set of images and its hash."""

    paths: tuple[Path, ...]
    sha256: str

    def pixels(self, artefact: Artefact) -> Pixels:
        return read_images(self.paths, artefact.height, artefact.width)

    def as_json(self) -> dict[str, Any]:
        return {"images": len(self.paths), "sha256": self.sha256}


def image_set(wanted: ImageSet, folder: Path, purpose: str) -> Images:
    paths = tuple(choose_images(list_images(folder, purpose), wanted.count, purpose))
    return Images(paths, images_hash(paths))


@dataclass(frozen=True)
class Gear:
    """The steps that need a GPU or NVIDIA's containers; tests put stand-ins here."""

    query_gpu: Query = query_gpu
    run_trtexec: Runner = run_trtexec
    #: `tftrt.engines.build_engines` unless replaced: it is imported late, because the ONNX path has no TensorFlow.
    build_engines: Callable[[Any], None] | None = None
    bench_seconds: float = BENCH_SECONDS


@dataclass(frozen=True)
class Job:
    plan: Plan
    artefact: Artefact
    #: The fetched model and what it is (`sources.Kind`).
    kind: str
    source: Path
    calibration: Images | None
    held_out: Images | None
    #: Folder for the artefact's files, `<output>/1`.
    target: Path
    #: For files that are not kept.
    scratch: Path
    gear: Gear = field(default_factory=Gear)

    def check_pixels(self) -> Pixels:
        """Held-out images, or noise."""
        if self.held_out is not None:
            return self.held_out.pixels(self.artefact)
        shape = (NOISE_IMAGES, self.artefact.height, self.artefact.width, 3)
        return np.random.default_rng(0).integers(0, 256, shape, np.uint8)

    @property
    def bench_sizes(self) -> list[int]:
        """Batch sizes that are measured: powers of two up to the largest, and the variants' own."""
        largest = self.artefact.built_max_batch_size or self.artefact.batch_sizes[-1]
        powers = {1 << exponent for exponent in range(largest.bit_length()) if 1 << exponent <= largest}
        return sorted({*powers, largest, *self.artefact.batch_sizes})


@dataclass(frozen=True)
class Built:
    """What a path hands back for the manifest."""

    #: Answers to `check_pixels` of the unconverted model and of the artefact.
    reference: NDArray[Any]
    answers: NDArray[Any]
    speeds: list[Speed]
    #: Facts about the artefact, e.g. the number of engines.
    details: dict[str, Any]
    versions: dict[str, str]
