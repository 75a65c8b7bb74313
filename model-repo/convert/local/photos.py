"""Free photographs from two packages, cut into a calibration folder and a held-out folder.

Each photograph gives the whole picture, four corner crops of 70 %, and the mirror images of these: ten images. The two folders share no
photograph: accuracy is never measured on what was calibrated with.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import explained_os_errors
from .packages import Package, extract

if TYPE_CHECKING:
    from PIL.Image import Image

SCIKIT_IMAGE = Package(
    "scikit-image",
    "0.26.0",
    "scikit_image-0.26.0-cp311-cp311-manylinux_2_24_x86_64.manylinux_2_28_x86_64.whl",
    "74aa5518ccea28121f57a95374581d3b979839adc25bb03f289b1bc9b99c58af",
    14,
    "BSD-3-Clause; photographs public domain or CC0, see skimage/data/README.txt",
)
SCIKIT_LEARN = Package(
    "scikit-learn",
    "1.8.0",
    "scikit_learn-1.8.0-cp311-cp311-manylinux_2_27_x86_64.manylinux_2_28_x86_64.whl",
    "ada8121bcb4dac28d930febc791a69f7cb1673c8495e5eee274190b73a4559c1",
    9,
    "BSD-3-Clause; photographs CC-BY, see sklearn/datasets/images/README.txt",
)


@dataclass(frozen=True)
class Photo:
    package: Package
    member: str
    #: ImageNet classes of which one must be among the model's five best; empty when no class fits.
    classes: frozenset[int] = frozenset()

    @property
    def name(self) -> str:
        return self.member.rsplit("/", 1)[1].rsplit(".", 1)[0]


def _skimage(file: str, classes: Sequence[int] = ()) -> Photo:
    return Photo(SCIKIT_IMAGE, f"skimage/data/{file}", frozenset(classes))


CALIBRATION: tuple[Photo, ...] = (
    _skimage("astronaut.png"),
    _skimage("motorcycle_left.png", (670, 665)),
    _skimage("camera.png"),
    _skimage("coins.png"),
    _skimage("retina.jpg"),
    _skimage("hubble_deep_field.jpg"),
    _skimage("moon.png"),
    _skimage("ihc.png"),
    _skimage("grass.png"),
    _skimage("gravel.png"),
    _skimage("brick.png"),
    Photo(SCIKIT_LEARN, "sklearn/datasets/images/china.jpg"),
)

#: Known content: tabby, tiger cat, Persian, Siamese or Egyptian cat; espresso or cup; missile, projectile or space shuttle; daisy or a
#: pot (dahlias have no class of their own).
HELD_OUT: tuple[Photo, ...] = (
    _skimage("chelsea.png", (281, 282, 283, 284, 285)),
    _skimage("coffee.png", (967, 968)),
    _skimage("rocket.jpg", (657, 744, 812)),
    Photo(SCIKIT_LEARN, "sklearn/datasets/images/flower.jpg"),
)

IMAGES_A_PHOTO = 10
_CROP_SHARE = 0.7


def write_images(photos: Sequence[Photo], wheels: dict[Package, Path], folder: Path, scratch: Path) -> None:
    """Fills a folder with ten JPEG files a photograph, named `<photo>-<n>.jpg`; n = 0 is the whole picture."""
    from PIL import Image

    for photo in photos:
        source = extract(wheels[photo.package], photo.member, scratch / photo.member)
        with Image.open(source) as opened, explained_os_errors(f"writing images to {folder}"):
            folder.mkdir(parents=True, exist_ok=True)
            for index, view in enumerate(_views(opened.convert("RGB"))):
                view.save(folder / f"{photo.name}-{index}.jpg", quality=95)


def _views(photo: Image) -> Iterator[Image]:
    from PIL import Image, ImageOps

    width, height = photo.size
    cut_width, cut_height = int(width * _CROP_SHARE), int(height * _CROP_SHARE)
    left, top = width - cut_width, height - cut_height
    crops = [photo] + [
        photo.crop((x, y, x + cut_width, y + cut_height)) for x, y in ((0, 0), (left, 0), (0, top), (left, top))
    ]
    for crop in crops:
        # Twice the size that models see: small files, and the last resize is still the model's own.
        small = crop.resize((448, 448 * crop.height // crop.width), Image.Resampling.LANCZOS)
        yield small
        yield ImageOps.mirror(small)
