"""Image folders: what is in them, whether it can be used, and the pixels as the model is served them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import ConversionError

Pixels = NDArray[np.uint8]

IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png")
#: Text that data sets carry beside their images.
_COMPANIONS = ("readme", "license", "licence", "notice", "copying")


def list_images(folder: Path, purpose: str) -> list[Path]:
    """Images in a folder and its subfolders, in the order of their paths.

    Raises ConversionError (`images`) if the folder is missing, holds no image, or holds other files too: a wrong folder
    should not calibrate a model with the three images that happen to be in it.
    """
    if not folder.is_dir():
        raise ConversionError(
            "images",
            f"the folder of {purpose} images {folder} does not exist",
            "Name a folder of JPEG or PNG photographs like those the model will be asked about",
        )
    files = sorted(
        path
        for path in folder.rglob("*")
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    )
    images = [path for path in files if path.suffix.lower() in IMAGE_SUFFIXES]
    others = [path for path in files if path not in set(images) and not path.stem.lower().startswith(_COMPANIONS)]
    if others:
        shown = ", ".join(str(path.relative_to(folder)) for path in others[:5])
        more = f" and {len(others) - 5} more" if len(others) > 5 else ""
        raise ConversionError(
            "images",
            f"the folder of {purpose} images {folder} holds {len(others)} other files: {shown}{more}",
            "Keep only JPEG and PNG files in it, or name the subfolder that holds the images",
        )
    if not images:
        raise ConversionError(
            "images",
            f"the folder of {purpose} images {folder} is empty",
            "Put JPEG or PNG photographs into it, like those the model will be asked about",
        )
    return images


def choose_images(images: Sequence[Path], count: int, purpose: str) -> list[Path]:
    """`count` of the images, spread evenly over the list, so that every class folder has its share.

    Raises ConversionError (`images`) if there are fewer.
    """
    if count < 1:
        raise ConversionError("images", f"{count} {purpose} images were asked for", "Ask for at least one")
    if len(images) < count:
        raise ConversionError(
            "images",
            f"{count} {purpose} images were asked for, but there are {len(images)}",
            f"Add {count - len(images)} images, or ask for {len(images)}",
        )
    return [images[index * len(images) // count] for index in range(count)]


def read_image(path: Path, height: int, width: int) -> Pixels:
    """RGB pixels 0..255 [height, width, 3], resized straight to the size (bilinear, aspect ratio not kept), as requests are.

    Raises ConversionError (`images`) if the file cannot be decoded.
    """
    try:
        return _decode(path, height, width)
    except ConversionError:
        raise
    except Exception as error:  # every decoder has its own errors for broken files
        raise ConversionError(
            "images",
            f"the image {path} is broken: {str(error).splitlines()[0] if str(error) else type(error).__name__}",
            "Remove or replace the file",
        ) from error


def _decode(path: Path, height: int, width: int) -> Pixels:
    try:
        from PIL import Image
    except ImportError:
        return _decode_with_tensorflow(path, height, width)
    with Image.open(path) as image:
        rgb = image.convert("RGB").resize((width, height), Image.Resampling.BILINEAR)
        return np.asarray(rgb, np.uint8)


def _decode_with_tensorflow(path: Path, height: int, width: int) -> Pixels:
    """For containers without Pillow."""
    import tensorflow as tf

    image = tf.io.decode_image(path.read_bytes(), channels=3, expand_animations=False)
    resized = tf.image.resize(image, (height, width), "bilinear", antialias=True)
    pixels: NDArray[Any] = np.rint(np.clip(resized.numpy(), 0, 255))
    return pixels.astype(np.uint8)


def read_images(paths: Sequence[Path], height: int, width: int) -> Pixels:
    """All images as one array [count, height, width, 3]."""
    return np.stack([read_image(path, height, width) for path in paths])


def batches(pixels: Pixels, size: int) -> Iterator[Pixels]:
    """Parts of exactly `size` images; the last one is filled up from the beginning, because engines have fixed sizes."""
    for start in range(0, len(pixels), size):
        yield np.take(pixels, range(start, start + size), axis=0, mode="wrap")


def images_hash(paths: Sequence[Path]) -> str:
    """SHA-256 of the files' contents in order: the same images give the same hash wherever they lie."""
    total = hashlib.sha256()
    for path in paths:
        total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()
