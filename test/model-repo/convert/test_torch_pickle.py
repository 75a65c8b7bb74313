"""The restricted unpickler reads tensors of the old torch format, and nothing else."""

from __future__ import annotations

import os
import pickle
import struct
import sys
import types
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from convert.errors import ConversionError
from convert.local.torch_pickle import MAGIC_NUMBER, PROTOCOL_VERSION, read_tensors


class FloatStorage:
    pass


class Reference:
    def __init__(self, *pid: Any) -> None:
        self.pid = pid


def _rebuild_tensor_v2(*_arguments: Any) -> None:
    raise AssertionError("only pickled by name")


class Rebuilt:
    """Pickles as a call of torch's function."""

    def __init__(self, *arguments: Any) -> None:
        self.arguments = arguments

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild_tensor_v2, self.arguments


class Pickler(pickle.Pickler):
    def persistent_id(self, obj: Any) -> Any:
        return obj.pid if isinstance(obj, Reference) else None


@pytest.fixture(autouse=True)
def torch_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Modules of torch's names, so that pickles refer to them as torch's do."""
    utils: Any = types.ModuleType("torch._utils")
    torch: Any = types.ModuleType("torch")
    utils._rebuild_tensor_v2, torch.FloatStorage = _rebuild_tensor_v2, FloatStorage
    monkeypatch.setattr(_rebuild_tensor_v2, "__module__", "torch._utils", raising=False)
    monkeypatch.setattr(FloatStorage, "__module__", "torch")
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "torch._utils", utils)


def write(
    path: Path,
    state: Any,
    values: list[float],
    *,
    magic: int = MAGIC_NUMBER,
    count: int | None = None,
    tail: bytes = b"",
    cut: int = 0,
    little: bool = True,
) -> Path:
    with path.open("wb") as file:
        facts = {"little_endian": little}
        for part in (magic, PROTOCOL_VERSION, facts, state, ["0"]):
            Pickler(file, protocol=2).dump(part)
        data = struct.pack("<q", len(values) if count is None else count) + np.array(values, "<f4").tobytes() + tail
        file.write(data[: len(data) - cut])
    return path


def tensor(offset: int, shape: tuple[int, ...], strides: tuple[int, ...], count: int = 6) -> Rebuilt:
    reference = Reference("storage", FloatStorage, "0", "cpu", count, None)
    return Rebuilt(reference, offset, shape, strides, False, OrderedDict())


VALUES = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


def test_reads_views_of_one_storage(tmp_path: Path) -> None:
    state = OrderedDict(a=tensor(0, (2, 3), (3, 1)), b=tensor(0, (3, 2), (1, 3)), c=tensor(5, (), ()))
    tensors = read_tensors(write(tmp_path / "w.pth", state, VALUES))
    assert list(tensors) == ["a", "b", "c"]
    assert tensors["a"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert tensors["b"].tolist() == [[0, 3], [1, 4], [2, 5]]
    assert tensors["c"].tolist() == 5


def test_runs_no_code(tmp_path: Path) -> None:
    marker = tmp_path / "ran"

    class Evil:
        def __reduce__(self) -> tuple[Any, ...]:
            return os.system, (f"touch {marker}",)

    path = write(tmp_path / "w.pth", OrderedDict(a=Evil()), VALUES)
    with pytest.raises(ConversionError, match=r"it asks for (posix|nt)\.system"):
        read_tensors(path)
    assert not marker.exists()


@pytest.mark.parametrize(
    ("name", "state", "options", "message"),
    [
        ("magic", OrderedDict(), {"magic": 1}, "another format"),
        ("endian", OrderedDict(), {"little": False}, "big-endian"),
        ("outside", OrderedDict(a=tensor(2, (2, 3), (3, 1))), {}, "outside its storage"),
        ("negative", OrderedDict(a=tensor(0, (2, 3), (-3, 1))), {}, "outside its storage"),
        ("count", OrderedDict(a=tensor(0, (6,), (1,))), {"count": 5}, "5 elements where 6"),
        ("cut", OrderedDict(a=tensor(0, (6,), (1,))), {"cut": 4}, "cut short"),
        ("tail", OrderedDict(a=tensor(0, (6,), (1,))), {"tail": b"x"}, "bytes after"),
        ("list", [tensor(0, (6,), (1,))], {}, "not a dictionary"),
        ("number", OrderedDict(a=tensor(0, (6,), (1,)), b=1), {}, "not a dictionary"),
    ],
)
def test_refuses(tmp_path: Path, name: str, state: Any, options: dict[str, Any], message: str) -> None:
    path = write(tmp_path / f"{name}.pth", state, VALUES, **options)
    with pytest.raises(ConversionError, match=message) as caught:
        read_tensors(path)
    assert caught.value.kind == "weights"


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 a zip", pickle.dumps(MAGIC_NUMBER)])
def test_other_files(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "w.pth"
    path.write_bytes(content)
    with pytest.raises(ConversionError, match="not a plain file of tensors"):
        read_tensors(path)
