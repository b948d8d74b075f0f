"""Tensors of PyTorch files (.pth) and .safetensors files, read without PyTorch and without running what they name.

A PyTorch file is a pickle, which may name any function of any package to be called. The unpickler here knows only what
files of plain tensors name, and all of that only describes: tensors are made of the bytes when the pickle has ended.
There are two layouts. Since PyTorch 1.6 the file is a zip, with the pickle in `data.pkl` and each storage's bytes in
`data/KEY`. Before, it is several pickles (a magic number, the protocol, facts of the machine, the tensors, the keys of
the storages) and then, for each key, a count of elements and their bytes.

A .safetensors file is eight bytes that give the length of the JSON header, the header, and the data. Reading that here
saves a dependency for one model.
"""

from __future__ import annotations

import io
import json
import math
import pickle
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from harness.errors import CaseError

Array = NDArray[Any]
_MAGIC_NUMBER = 0x1950A86A20F9469CFC6C
_ELEMENTS = {
    "HalfStorage": "<f2",
    "FloatStorage": "<f4",
    "DoubleStorage": "<f8",
    "BoolStorage": "?",
    "ByteStorage": "u1",
    "CharStorage": "i1",
    "ShortStorage": "<i2",
    "IntStorage": "<i4",
    "LongStorage": "<i8",
}
_DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1", "U8": "u1"}
_LENGTH_BYTES = 8


def read_torch_file(path: Path) -> dict[str, Array]:
    """All tensors of a file by name, as `torch.save(module.state_dict(), path)` writes it.

    Raises:
        CaseError: The file is broken, holds something else, or names code that would be run (stage `model`).
        OSError: The file cannot be read.
    """
    try:
        with path.open("rb") as file:
            read: Callable[[IO[bytes]], dict[str, Array]] = _read_zip if file.read(2) == b"PK" else _read_old
            file.seek(0)
            return read(file)
    except _NamesMoreThanTensorsError as error:
        raise CaseError(
            "model",
            f"{path} names {error}, which is no tensor and was not run; save the tensors alone, as "
            "torch.save(module.state_dict(), ...) does",
        ) from None
    except OSError:
        raise
    except Exception as error:  # a broken pickle raises nearly anything
        raise CaseError(
            "model",
            f"{path} is no whole file of PyTorch tensors ({type(error).__name__}: {error}); write or download it again",
        ) from None


@dataclass(frozen=True)
class _Storage:
    """Elements that tensors are views of."""

    key: str
    dtype: np.dtype[Any]
    elements: int


@dataclass(frozen=True)
class _View:
    """A tensor, as the pickle tells it: strides and offset in elements."""

    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def array(self, data: Mapping[str, bytes]) -> Array:
        """The tensor's own copy of its elements; ValueError where it does not lie within its storage."""
        content, dtype = data[self.storage.key], self.storage.dtype
        if len(content) != self.storage.elements * dtype.itemsize:
            raise ValueError(f"storage {self.storage.key} is not whole")
        if math.prod(self.shape) == 0:
            return np.empty(self.shape, dtype)
        last = self.offset + sum((size - 1) * stride for size, stride in zip(self.shape, self.strides, strict=True))
        is_negative = min(self.offset, *self.shape, *self.strides, 0) < 0
        # A stride of zero could make terabytes of one element.
        if is_negative or max(last, math.prod(self.shape) - 1) >= self.storage.elements:
            raise ValueError(f"storage {self.storage.key} is too small for a tensor of shape {self.shape}")
        strides = [stride * dtype.itemsize for stride in self.strides]
        elements = np.frombuffer(content, dtype)[self.offset :]
        return np.array(np.lib.stride_tricks.as_strided(elements, self.shape, strides), order="C")


class _NamesMoreThanTensorsError(Exception):
    """A pickle names what a file of plain tensors does not need."""


def _rebuild_tensor(
    storage: object, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], *_: object
) -> _View:
    if not isinstance(storage, _Storage):
        raise pickle.UnpicklingError("a tensor without a storage")
    return _View(storage, offset, tuple(shape), tuple(strides))


class _TensorsOnly(pickle.Unpickler):
    """An unpickler that finds nothing but containers and descriptions of tensors."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _rebuild_tensor
        if module == "torch" and name in _ELEMENTS:
            return np.dtype(_ELEMENTS[name])
        raise _NamesMoreThanTensorsError(f"{module}.{name}")

    def persistent_load(self, pid: Any) -> _Storage:
        kind, dtype, key, _, elements, *view = pid
        if kind != "storage" or not isinstance(dtype, np.dtype) or any(part is not None for part in view):
            raise pickle.UnpicklingError("a storage of an unknown form")
        return _Storage(str(key), dtype, int(elements))


def _read_zip(file: IO[bytes]) -> dict[str, Array]:
    with zipfile.ZipFile(file) as archive:
        pickled = next(name for name in archive.namelist() if name.endswith("/data.pkl"))
        folder = pickled.removesuffix("data.pkl")
        if f"{folder}byteorder" in archive.namelist() and archive.read(f"{folder}byteorder") != b"little":
            raise ValueError("its numbers are big-endian")
        views = _views(_TensorsOnly(io.BytesIO(archive.read(pickled))).load())
        keys = {view.storage.key for view in views.values()}
        data = {key: archive.read(f"{folder}data/{key}") for key in sorted(keys)}
    return {name: view.array(data) for name, view in views.items()}


def _read_old(file: IO[bytes]) -> dict[str, Array]:
    def load() -> Any:
        return _TensorsOnly(file).load()

    if load() != _MAGIC_NUMBER:
        raise ValueError("it does not begin as one")
    load()  # the protocol
    if not load()["little_endian"]:
        raise ValueError("its numbers are big-endian")
    views = _views(load())
    item_sizes = {view.storage.key: view.storage.dtype.itemsize for view in views.values()}
    data = {}
    for key in load():
        elements = int.from_bytes(file.read(8), "little")
        data[key] = file.read(elements * item_sizes[key])
    return {name: view.array(data) for name, view in views.items()}


def _views(loaded: object) -> dict[str, _View]:
    if not isinstance(loaded, dict):
        raise TypeError("it holds no table of tensors")
    for name, value in loaded.items():
        if not (isinstance(name, str) and isinstance(value, _View)):
            raise TypeError(f"{name!r} is no tensor")
    return loaded


def read_safetensors(path: Path) -> dict[str, NDArray[Any]]:
    """All tensors of a file by name, mapped rather than read.

    Raises:
        CaseError: The file is broken, or has an element type that numpy lacks (stage `model`).
        OSError: The file cannot be read.
    """
    try:
        content = np.memmap(path, mode="r", dtype=np.uint8)
        begin = _LENGTH_BYTES + int.from_bytes(content[:_LENGTH_BYTES].tobytes(), "little")
        header = json.loads(content[_LENGTH_BYTES:begin].tobytes())
        header.pop("__metadata__", None)
        return {name: _tensor(content[begin:], entry) for name, entry in header.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CaseError(
            "model",
            f"{path} is no whole .safetensors file ({type(error).__name__}: {error}); write or download it again",
        ) from None


def _tensor(data: NDArray[np.uint8], entry: Mapping[str, Any]) -> NDArray[Any]:
    begin, end = entry["data_offsets"]
    tensor: NDArray[Any] = data[begin:end].view(_DTYPES[entry["dtype"]]).reshape(entry["shape"])
    return tensor
