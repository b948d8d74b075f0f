"""Tensors of PyTorch files (.pth) and .safetensors files, read without PyTorch and without running what they name.

A PyTorch file is a pickle, which may name any function of any package to be called. The unpickler here knows only what
files of plain tensors name, and all of that only describes: tensors are made of the bytes when the pickle has ended.
There are two layouts. Since PyTorch 1.6 the file is a zip, with the pickle in `data.pkl` and each storage's bytes in
`data/KEY`. Before, it is several pickles (a magic number, the protocol, facts of the machine, the tensors, the keys of
the storages) and then, for each key, a count of elements and their bytes.

A .safetensors file is eight bytes that give the length of the JSON header, the header, and the data. Reading that here
saves a dependency for one model.

The files' bytes are pinned (harness.models.weights), so it is not asked here whether they are whole. Whatever else is
wrong with one is an exception of pickle, zipfile, json or numpy.
"""

from __future__ import annotations

import io
import json
import pickle
import zipfile
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
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


class _Storage(NamedTuple):
    """Elements that tensors are views of."""

    key: str
    dtype: np.dtype[Any]


class _View(NamedTuple):
    """A tensor, as the pickle tells it: strides and offset in elements."""

    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def array(self, data: Mapping[str, bytes]) -> Array:
        """The tensor's own copy of its elements; ValueError where it does not lie within its storage."""
        key, dtype = self.storage
        strides = [stride * dtype.itemsize for stride in self.strides]
        view: Array = np.ndarray(self.shape, dtype, data[key], self.offset * dtype.itemsize, strides)
        return np.array(view, order="C")


def _rebuild_tensor(
    storage: _Storage, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], *_: object
) -> _View:
    return _View(storage, offset, shape, strides)


class _TensorsOnly(pickle.Unpickler):
    """An unpickler that finds nothing but containers and descriptions of tensors."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _rebuild_tensor
        if module == "torch" and name in _ELEMENTS:
            return np.dtype(_ELEMENTS[name])
        raise pickle.UnpicklingError(f"the file names {module}.{name}, which is no tensor and was not run")

    def persistent_load(self, pid: Any) -> _Storage:
        _, dtype, key, *_ = pid
        return _Storage(key, dtype)


def read_torch_file(path: Path) -> dict[str, Array]:
    """All tensors of a file by name, as `torch.save(module.state_dict(), path)` writes it."""
    with path.open("rb") as file:
        views, data = _read_zip(file) if zipfile.is_zipfile(file) else _read_old(file)
    return {name: view.array(data) for name, view in views.items()}


def _read_zip(file: IO[bytes]) -> tuple[dict[str, _View], dict[str, bytes]]:
    with zipfile.ZipFile(file) as archive:
        pickled = next(name for name in archive.namelist() if name.endswith("/data.pkl"))
        folder = pickled.removesuffix("data.pkl")
        views = _TensorsOnly(io.BytesIO(archive.read(pickled))).load()
        keys = {view.storage.key for view in views.values()}
        return views, {key: archive.read(f"{folder}data/{key}") for key in keys}


def _read_old(file: IO[bytes]) -> tuple[dict[str, _View], dict[str, bytes]]:
    file.seek(0)
    _magic_number, _protocol, _machine, views, keys = (_TensorsOnly(file).load() for _ in range(5))
    item_sizes = {view.storage.key: view.storage.dtype.itemsize for view in views.values()}
    data = {}
    for key in keys:
        elements = int.from_bytes(file.read(8), "little")
        data[key] = file.read(elements * item_sizes[key])
    return views, data


def read_safetensors(path: Path) -> dict[str, Array]:
    """All tensors of a file by name, mapped rather than read."""
    content = np.memmap(path, mode="r", dtype=np.uint8)
    begin = _LENGTH_BYTES + int.from_bytes(content[:_LENGTH_BYTES].tobytes(), "little")
    header = json.loads(content[_LENGTH_BYTES:begin].tobytes())
    header.pop("__metadata__", None)
    return {name: _tensor(content[begin:], entry) for name, entry in header.items()}


def _tensor(data: NDArray[np.uint8], entry: Mapping[str, Any]) -> Array:
    begin, end = entry["data_offsets"]
    tensor: Array = data[begin:end].view(_DTYPES[entry["dtype"]]).reshape(entry["shape"])
    return tensor
