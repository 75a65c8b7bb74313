"""Small file helpers: hashes, atomic JSON."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .errors import ConversionError, explained_os_errors


def sha256_file(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def sha256_tree(root: Path) -> str:
    """Hash of a file, or of a folder's relative paths and contents; empty folders do not count."""
    if root.is_file():
        return sha256_file(root)
    digest = hashlib.sha256()
    for path in sorted(path for path in root.rglob("*") if path.is_file()):
        digest.update(f"{path.relative_to(root).as_posix()}\0{sha256_file(path)}\0".encode())
    return digest.hexdigest()


def canonical_hash(value: Any) -> str:
    """SHA-256 of a JSON value, independent of the order of keys."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Writes the file whole or not at all."""
    partial = path.with_name(f"{path.name}.partial-{os.getpid()}")
    with explained_os_errors(f"writing {path}"):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            partial.write_text(json.dumps(value, indent=2, allow_nan=False) + "\n", encoding="utf-8")
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)


def read_json(path: Path, what: str) -> dict[str, Any]:
    """Raises ConversionError (`input`) if the file is missing or is not a JSON object."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConversionError("input", f"{what} {path} cannot be read: {error.strerror}", "Check the path") from error
    except ValueError as error:
        raise ConversionError("input", f"{what} {path} is not JSON: {error}", "Write it again") from error
    if not isinstance(value, dict):
        raise ConversionError("input", f"{what} {path} is not a JSON object", "Write it again")
    return value
