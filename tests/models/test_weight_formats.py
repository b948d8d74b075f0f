"""Files of weights: tensors come out as they went in, and nothing that a PyTorch file names is ever run.

PyTorch's files are written as `torch.save` does, by the pickler that it uses too, since tests must not need PyTorch.
"""

from __future__ import annotations

import io
import json
import os
import pickle
import struct
import subprocess
import sys
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of
from numpy.typing import NDArray

from harness.models.weight_formats import read_safetensors, read_torch_file

Array = NDArray[Any]
STORAGES = {
    "<f2": "HalfStorage",
    "<f4": "FloatStorage",
    "<f8": "DoubleStorage",
    "|b1": "BoolStorage",
    "|u1": "ByteStorage",
    "|i1": "CharStorage",
    "<i2": "ShortStorage",
    "<i4": "IntStorage",
    "<i8": "LongStorage",
}
TORCH, UTILS = ModuleType("torch"), ModuleType("torch._utils")
vars(TORCH).update({name: type(name, (), {"__module__": "torch"}) for name in STORAGES.values()})


def _rebuild_tensor_v2(*_: object) -> None:
    """What PyTorch's files name to be called for each tensor."""


def load(*_: object) -> None:
    """A function of PyTorch's that makes no tensor of a storage."""


for function, module in ((_rebuild_tensor_v2, UTILS), (load, TORCH)):
    function.__module__ = module.__name__
    vars(module)[function.__name__] = function


@dataclass(frozen=True)
class Storage:
    """Elements of one type, which tensors are views of."""

    key: str
    elements: Array


@dataclass(frozen=True)
class Tensor:
    """A view of a storage, strides and offset in elements."""

    storage: Storage
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild_tensor_v2, (self.storage, self.offset, self.shape, self.strides, False, OrderedDict())


def pickled(value: object, layout: str = "zip", protocol: int = 2) -> bytes:
    """With storages named instead of written; in the old layout with None for what a storage is a view of."""

    class Pickler(pickle.Pickler):
        def persistent_id(self, value: object) -> object:
            if not isinstance(value, Storage):
                return None
            kind = vars(TORCH)[STORAGES[value.elements.dtype.str]]
            return ("storage", kind, value.key, "cpu", value.elements.size, *([None] if layout == "old" else []))

    buffer = io.BytesIO()
    with patch.dict(sys.modules, {"torch": TORCH, "torch._utils": UTILS}):
        Pickler(buffer, protocol).dump(value)
    return buffer.getvalue()


def zipped(content: bytes, storages: Mapping[str, Array]) -> bytes:
    """The layout since PyTorch 1.6."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("archive/data.pkl", content)
        for key, elements in storages.items():
            archive.writestr(f"archive/data/{key}", elements.tobytes(order="A"))
    return buffer.getvalue()


def old(content: bytes, storages: Mapping[str, Array]) -> bytes:
    """The layout before it; each storage with how many elements it has."""
    magic, protocol, machine, keys = (
        pickled(value) for value in (0x1950A86A20F9469CFC6C, 1001, {"little_endian": True}, list(storages))
    )
    data = b"".join(struct.pack("<q", array.size) + array.tobytes(order="A") for array in storages.values())
    return magic + protocol + machine + content + keys + data


def saved(tensors: Mapping[str, Tensor], layout: str = "zip") -> bytes:
    """The whole file."""
    storages = {tensor.storage.key: tensor.storage.elements for tensor in tensors.values()}
    return {"zip": zipped, "old": old}[layout](pickled(OrderedDict(tensors), layout), storages)


def read(content: bytes, folder: Path) -> dict[str, Array]:
    (folder / "net.pth").write_bytes(content)
    return read_torch_file(folder / "net.pth")


LAYOUTS = pytest.mark.parametrize("layout", ["zip", "old"])


@st.composite
def any_array(draw: st.DrawFn) -> Array:
    """An array of any element type that is read, perhaps transposed."""
    dtype = draw(st.sampled_from(sorted(STORAGES)))
    array = draw(arrays_of.arrays(dtype, arrays_of.array_shapes(min_dims=0, max_dims=3, max_side=4)))
    return np.asarray(array.T if draw(st.booleans()) else array)


@LAYOUTS
@given(arrays=st.dictionaries(st.text(min_size=1, max_size=5), any_array(), max_size=3))
def test_tensors_come_out_as_they_went_in(
    tmp_path_factory: pytest.TempPathFactory, layout: str, arrays: dict[str, Array]
) -> None:
    tensors = {
        name: Tensor(Storage(str(key), array), array.shape, tuple(size // array.itemsize for size in array.strides))
        for key, (name, array) in enumerate(arrays.items())
    }
    found = read(saved(tensors, layout), tmp_path_factory.mktemp("pth"))
    assert list(found) == list(arrays)
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)


SHARED = Storage("7", np.arange(6, dtype=np.float32))


def test_tensors_may_share_a_storage(tmp_path: Path) -> None:
    tensors = {"all": Tensor(SHARED, (2, 3), (3, 1)), "column": Tensor(SHARED, (2,), (3,), offset=1)}
    found = read(saved(tensors), tmp_path)
    assert found["all"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert found["column"].tolist() == [1, 4]


@pytest.mark.parametrize(
    "tensor", [Tensor(SHARED, (7,), (1,)), Tensor(SHARED, (6,), (1,), 1), Tensor(SHARED, (6,), (-1,))]
)
def test_tensors_stay_within_their_storage(tmp_path: Path, tensor: Tensor) -> None:
    with pytest.raises((ValueError, TypeError), match=r"buffer|strides"):
        read(saved({"weight": tensor}), tmp_path)


@dataclass(frozen=True)
class Call:
    """Is pickled as a call."""

    function: Callable[..., object]
    argument: object

    def __reduce__(self) -> tuple[Any, ...]:
        return self.function, (self.argument,)


@pytest.mark.parametrize("protocol", [2, 4])
@pytest.mark.parametrize("function", [os.system, eval, subprocess.run, load])
@LAYOUTS
def test_what_a_file_names_is_not_run(
    tmp_path: Path, layout: str, function: Callable[..., object], protocol: int
) -> None:
    trace = tmp_path / "trace"
    content = pickled({"weight": Call(function, f"touch {trace}")}, layout, protocol)
    with pytest.raises(pickle.UnpicklingError, match=r"^the file names [\w.]+, which is no tensor and was not run$"):
        read({"zip": zipped, "old": old}[layout](content, {}), tmp_path)
    assert not trace.exists()


def test_safetensors_come_out_as_they_went_in(tmp_path: Path) -> None:
    matrix, ids = np.arange(6, dtype=np.float32).reshape(2, 3), np.array([7, -8])
    header = {
        "__metadata__": {"format": "pt"},
        "ids": {"dtype": "I64", "shape": [2], "data_offsets": [24, 40]},
        "matrix": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
    }
    path, text = tmp_path / "net.safetensors", json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + matrix.tobytes() + ids.tobytes())
    found = read_safetensors(path)
    assert list(found) == ["ids", "matrix"]
    np.testing.assert_array_equal(found["matrix"], matrix)
    np.testing.assert_array_equal(found["ids"], ids)
