"""Where model and images come from: a path, https:// or gs://, made a local path and checked."""

from __future__ import annotations

import hashlib
import re
import subprocess
import tarfile
import time
import urllib.error
import urllib.request
import zipfile
from pathlib import Path
from typing import Literal

from .errors import ConversionError, explained_os_errors
from .plan import Model

Kind = Literal["saved-model", "onnx", "keras-weights"]


def local_copy(source: str, folder: Path, what: str) -> Path:
    """The source as a local path; what is remote is fetched into `folder`, once.

    Raises ConversionError: `input` if it does not exist, `download` or `bucket-permission` if it cannot be fetched.
    """
    if source.startswith("gs://"):
        return _from_bucket(source, folder, what)
    if source.startswith(("https://", "http://")):
        return _from_web(source, folder, what)
    if re.match(r"[a-z][a-z0-9+]*://", source):
        raise ConversionError("input", f"{what} {source}: unknown kind of address", "Use a path, https:// or gs://")
    path = Path(source).expanduser()
    if not path.exists():
        raise ConversionError("input", f"{what} {path} does not exist", "Check the path")
    return path


def _target(source: str, folder: Path) -> Path:
    name = source.rstrip("/").rsplit("/", 1)[1] or "source"
    return folder / f"{hashlib.sha256(source.encode()).hexdigest()[:12]}-{name}"


def _from_web(source: str, folder: Path, what: str) -> Path:
    target = _target(source, folder)
    if target.exists():
        return target
    print(f"downloading {what} {source}", flush=True)
    partial = target.with_name(f"{target.name}.partial")
    with explained_os_errors(f"downloading {what}"):
        folder.mkdir(parents=True, exist_ok=True)
        try:
            with urllib.request.urlopen(source, timeout=60) as response, partial.open("wb") as file:
                total = int(response.headers.get("Content-Length") or 0)
                done, shown = 0, time.monotonic()
                while chunk := response.read(1 << 20):
                    file.write(chunk)
                    done += len(chunk)
                    if time.monotonic() - shown > 5:
                        shown = time.monotonic()
                        print(f"  {done >> 20} of {total >> 20 or '?'} MB", flush=True)
            if total and done != total:
                raise ConversionError("download", f"{source} ended after {done} of {total} bytes", "Try again")
        except urllib.error.HTTPError as error:
            raise ConversionError(
                "download", f"{what} {source}: the server answers {error.code} {error.reason}", "Check the address"
            ) from error
        except (urllib.error.URLError, TimeoutError) as error:
            reason = getattr(error, "reason", error)
            raise ConversionError("download", f"{what} {source}: {reason}", "Check network and address") from error
        partial.replace(target)
    return target


def _from_bucket(source: str, folder: Path, what: str) -> Path:
    """Through gcloud, which knows the user's or the machine's identity."""
    target = _target(source, folder)
    if target.exists():
        return target
    partial = target.with_name(f"{target.name}.partial")
    with explained_os_errors(f"fetching {what}"):
        partial.mkdir(parents=True, exist_ok=True)
    print(f"fetching {what} {source}", flush=True)
    # rsync goes on where an interrupted copy stopped; a single object is copied.
    single = re.search(r"\.(zip|tar\.gz|tgz|onnx|h5)$", source) is not None
    verb = ["cp"] if single else ["rsync", "--recursive"]
    try:
        done = subprocess.run(
            ["gcloud", "storage", *verb, source, str(partial), "--quiet"],
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    except FileNotFoundError as error:
        raise ConversionError(
            "download", f"{what} {source}: gcloud is not installed here", "Install the Google Cloud CLI"
        ) from error
    if done.returncode != 0:
        raise bucket_error(source, what, done.stderr)
    (partial / source.rsplit("/", 1)[1] if single else partial).replace(target)
    return target


def bucket_error(source: str, what: str, output: str) -> ConversionError:
    """What gcloud's message means."""
    last = (output.strip().splitlines() or ["no message"])[-1]
    if re.search(r"\b(403|401)\b|does not have .* access|[Pp]ermission", output):
        return ConversionError(
            "bucket-permission",
            f"{what} {source}: no permission ({last})",
            "Grant roles/storage.objectViewer on the bucket to the converter's service account",
        )
    return ConversionError("download", f"{what} {source}: {last}", "Check the address")


def check_checksum(path: Path, checksum: str) -> None:
    """Raises ConversionError (`checksum`) if the fetched file is another one."""
    if not checksum:
        return
    algorithm, expected = checksum.split(":", 1)
    if path.is_dir():
        raise ConversionError("checksum", f"{path} is a folder, which has no checksum", "Name a .zip, or drop checksum")
    digest = hashlib.new(algorithm)
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    if digest.hexdigest() != expected:
        raise ConversionError(
            "checksum",
            f"{path} has {algorithm} {digest.hexdigest()}, not {expected}",
            "The file is not the one that was meant, or was cut short: delete it and try again, or correct the checksum",
        )


def model_files(path: Path, model: Model, scratch: Path) -> tuple[Kind, Path]:
    """What the source is, unpacked if it is an archive.

    Raises ConversionError (`model`) if it is none of the kinds that can be converted.
    """
    if model.architecture:
        return "keras-weights", path
    if path.name.endswith((".zip", ".tar.gz", ".tgz")):
        path = _unpacked(path, scratch)
    if path.is_file() and path.suffix == ".onnx":
        return "onnx", path
    if path.is_dir():
        found = sorted(file.parent for file in path.rglob("saved_model.pb"))
        if len(found) == 1:
            return "saved-model", found[0]
        onnx_files = sorted(path.rglob("*.onnx"))
        if not found and len(onnx_files) == 1:
            return "onnx", onnx_files[0]
        names = ", ".join(str(entry.relative_to(path)) for entry in [*found, *onnx_files][:5])
        raise ConversionError(
            "model", f"{path} holds {f'several models: {names}' if names else 'no model'}", "Name one of them"
        )
    raise ConversionError(
        "model",
        f"{path} is neither a SavedModel folder (.zip, .tar.gz) nor an .onnx file",
        "Name one of these; for Keras weights say model.architecture",
    )


def _unpacked(archive: Path, scratch: Path) -> Path:
    target = scratch / "model"
    with explained_os_errors(f"unpacking {archive}"):
        target.mkdir(parents=True, exist_ok=True)
        try:
            if archive.suffix == ".zip":
                with zipfile.ZipFile(archive) as packed:
                    packed.extractall(target)  # refuses to leave the folder
            else:
                with tarfile.open(archive) as packed_tar:
                    packed_tar.extractall(target, filter="data")
        except (zipfile.BadZipFile, tarfile.TarError, EOFError) as error:
            raise ConversionError("model", f"{archive} is broken: {error}", "Copy it again") from error
    return target
