"""Reads tensors from a file of `torch.save` in the format from before PyTorch 1.6, without torch and without running code.

The file is a row of pickles (magic number, protocol version, machine facts, the object, the keys of its storages) followed by the
raw storages: for each key, in that order, the element count as a 64-bit integer and the elements (`torch/serialization.py`,
`_legacy_load`).
"""

from __future__ import annotations

import pickle
import sys
from collections import OrderedDict
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ConversionError

MAGIC_NUMBER = 0x1950A86A20F9469CFC6C
PROTOCOL_VERSION = 1001

Array = NDArray[Any]

_ELEMENT_TYPES = {
    "FloatStorage": np.dtype("<f4"),
    "DoubleStorage": np.dtype("<f8"),
    "HalfStorage": np.dtype("<f2"),
    "LongStorage": np.dtype("<i8"),
    "IntStorage": np.dtype("<i4"),
}


class _Storage:
    """Elements of one or more tensors; filled after the pickles are read."""

    def __init__(self, element_type: np.dtype[Any], count: int) -> None:
        self.element_type = element_type
        self.count = count
        self.elements: Array = np.empty(0, element_type)


class _Tensor:
    """What `torch._utils._rebuild_tensor_v2` is called with."""

    def __init__(
        self, storage: _Storage, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], *_rest: object
    ) -> None:
        self.storage = storage
        self.offset = offset
        self.shape = shape
        self.strides = strides

    def array(self) -> Array:
        end = self.offset + sum((size - 1) * stride for size, stride in zip(self.shape, self.strides)) + 1
        if self.offset < 0 or min((*self.strides, 0)) < 0 or end > self.storage.elements.size:
            raise _refused("a tensor reaches outside its storage")
        size = self.storage.element_type.itemsize
        view = np.lib.stride_tricks.as_strided(
            self.storage.elements[self.offset :], self.shape, tuple(stride * size for stride in self.strides)
        )
        return view.copy()


def _refused(why: str) -> ConversionError:
    return ConversionError(
        "weights",
        f"the weights file is not a plain file of tensors: {why}",
        "Use the published file; its checksum is in convert/local/sources.py",
    )


class _TensorsOnly(pickle.Unpickler):
    """Knows tensors and ordered dictionaries. Any other name, and so any code, is refused."""

    def __init__(self, file: IO[bytes], storages: dict[str, _Storage]) -> None:
        super().__init__(file, encoding="utf-8")
        self._storages = storages

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _Tensor
        if module == "torch" and name in _ELEMENT_TYPES:
            return _ELEMENT_TYPES[name]
        raise _refused(f"it asks for {module}.{name}")

    def persistent_load(self, pid: Any) -> _Storage:
        if not isinstance(pid, tuple) or len(pid) != 6 or pid[0] != "storage":
            raise _refused("an unknown kind of reference")
        _, element_type, key, _location, count, view = pid
        if not isinstance(element_type, np.dtype) or not isinstance(key, str) or not isinstance(count, int) or view:
            raise _refused("a malformed storage")
        return self._storages.setdefault(key, _Storage(element_type, count))


def read_tensors(path: Path) -> dict[str, Array]:
    """Tensors by name, in the file's order.

    Raises ConversionError (`weights`) if the file holds anything but tensors, is cut short, or is of another format.
    """
    storages: dict[str, _Storage] = {}
    with path.open("rb") as file:
        try:
            magic = _TensorsOnly(file, storages).load()
            version = _TensorsOnly(file, storages).load()
            if magic != MAGIC_NUMBER or version != PROTOCOL_VERSION:
                raise _refused("another format than torch.save before PyTorch 1.6")
            facts = _TensorsOnly(file, storages).load()
            if facts.get("little_endian") is not True or sys.byteorder != "little":
                raise _refused("written or read on a big-endian machine")
            state = _TensorsOnly(file, storages).load()
            keys = _TensorsOnly(file, storages).load()
            for key in keys:
                _fill(file, storages[key])
        except (pickle.UnpicklingError, EOFError, KeyError, AttributeError, TypeError, ValueError) as error:
            raise _refused(f"{type(error).__name__} {error}") from error
        if file.read(1):
            raise _refused("bytes after the last storage")
    if not isinstance(state, OrderedDict) or not all(isinstance(value, _Tensor) for value in state.values()):
        raise _refused("the object is not a dictionary of tensors")
    return {str(name): tensor.array() for name, tensor in state.items()}


def _fill(file: IO[bytes], storage: _Storage) -> None:
    count = int.from_bytes(file.read(8), "little")
    if count != storage.count:
        raise _refused(f"a storage of {count} elements where {storage.count} are announced")
    data = file.read(count * storage.element_type.itemsize)
    if len(data) != count * storage.element_type.itemsize:
        raise _refused("it is cut short")
    storage.elements = np.frombuffer(data, storage.element_type)
