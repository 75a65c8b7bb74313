"""Image folders, good and bad."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from convert.errors import ConversionError
from convert.images import batches, choose_images, images_hash, list_images, read_image, read_images
from PIL import Image


def test_lists_images_of_subfolders_in_order_and_leaves_companions_out(photos: Path) -> None:
    (photos / "sub").mkdir()
    shutil.copy(photos / "cat.jpg", photos / "sub" / "again.JPEG")
    (photos / "README.md").write_text("about")
    (photos / ".DS_Store").write_text("x")
    names = [path.relative_to(photos).as_posix() for path in list_images(photos, "calibration")]
    assert names == ["cat.jpg", "coffee.png", "rocket.jpg", "sub/again.JPEG"]


def test_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(ConversionError, match="the folder of calibration images .*nowhere does not exist"):
        list_images(tmp_path / "nowhere", "calibration")


def test_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(ConversionError, match="is empty"):
        list_images(tmp_path, "held-out")


def test_mixed_folder_names_the_others(photos: Path) -> None:
    (photos / "labels.csv").write_text("a")
    (photos / "clip.gif").write_text("a")
    with pytest.raises(ConversionError, match=r"2 other files: clip\.gif, labels\.csv"):
        list_images(photos, "calibration")


@pytest.mark.parametrize("damage", ["cut", "text", "empty"])
def test_broken_image_is_named(photos: Path, damage: str) -> None:
    path = photos / "cat.jpg"
    data = path.read_bytes()
    path.write_bytes({"cut": data[: len(data) // 2], "text": b"not an image", "empty": b""}[damage])
    with pytest.raises(ConversionError, match=r"cat\.jpg is broken") as caught:
        read_images(list_images(photos, "calibration"), 8, 8)
    assert caught.value.kind == "images"


def test_fewer_than_asked(photos: Path) -> None:
    with pytest.raises(
        ConversionError, match=r"5 calibration images were asked for, but there are 3\. Add 2 images, or ask for 3"
    ):
        choose_images(list_images(photos, "calibration"), 5, "calibration")


def test_chooses_evenly() -> None:
    paths = [Path(str(n)) for n in range(10)]
    assert choose_images(paths, 4, "x") == [Path("0"), Path("2"), Path("5"), Path("7")]
    assert choose_images(paths, 10, "x") == paths


@pytest.mark.parametrize("mode", ["L", "RGBA", "P", "CMYK", "1"])
def test_every_kind_of_pixel_becomes_rgb(tmp_path: Path, mode: str) -> None:
    suffix = "jpg" if mode == "CMYK" else "png"
    Image.new("RGB", (20, 10), (200, 200, 200)).convert(mode).save(tmp_path / f"a.{suffix}")
    pixels = read_image(tmp_path / f"a.{suffix}", 4, 6)
    assert pixels.shape == (4, 6, 3)
    assert pixels.dtype == np.uint8


def test_decoders_agree(photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = list_images(photos, "calibration")
    with_pillow = read_images(paths, 32, 32).astype(int)
    monkeypatch.setitem(sys.modules, "PIL", None)  # an import of it fails now
    with_tensorflow = read_images(paths, 32, 32).astype(int)
    assert np.abs(with_pillow - with_tensorflow).mean() < 1.5
    (photos / "cat.jpg").write_bytes(b"no")
    with pytest.raises(ConversionError, match=r"cat\.jpg is broken"):
        read_images(paths, 32, 32)


def test_batches_are_full() -> None:
    pixels = np.arange(5, dtype=np.uint8).reshape(5, 1, 1, 1)
    assert [batch.ravel().tolist() for batch in batches(pixels, 3)] == [[0, 1, 2], [3, 4, 0]]


def test_hash_is_of_content_not_place(photos: Path, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    shutil.copytree(photos, moved)
    before = images_hash(list_images(photos, "x"))
    assert images_hash(list_images(moved, "x")) == before
    (moved / "cat.jpg").write_bytes(b"other")
    assert images_hash(list_images(moved, "x")) != before
