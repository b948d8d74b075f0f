"""Files of PyTorch tensors, put together byte by byte as `torch.save` does, which tests must not need."""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
START, STOP = b"\x80\x02", b"."
_MAGIC_NUMBER = 0x1950A86A20F9469CFC6C


def text(value: str) -> bytes:
    return b"X" + struct.pack("<I", len(value.encode())) + value.encode()


def number(value: int) -> bytes:
    return b"J" + struct.pack("<i", value)


def several(*parts: bytes) -> bytes:
    """A tuple."""
    return b"(" + b"".join(parts) + b"t"


def named(module: str, name: str) -> bytes:
    """What a pickle names to be imported."""
    return b"c" + f"{module}\n{name}\n".encode()


def called(function: bytes, *arguments: bytes) -> bytes:
    return function + several(*arguments) + b"R"


def storage(key: str, elements: int, kind: str = "FloatStorage") -> bytes:
    return several(text("storage"), named("torch", kind), text(key), text("cpu"), number(elements)) + b"Q"


def storage_of_old(key: str, elements: int, kind: str = "FloatStorage") -> bytes:
    """With None for what such a storage is a view of."""
    return several(text("storage"), named("torch", kind), text(key), text("cpu"), number(elements), b"N") + b"Q"


def tensor(of: bytes, shape: tuple[int, ...], strides: tuple[int, ...], offset: int = 0) -> bytes:
    """A view of a storage, strides and offset in elements."""
    sizes = (several(*map(number, value)) for value in (shape, strides))
    hooks = called(named("collections", "OrderedDict"))
    return called(named("torch._utils", "_rebuild_tensor_v2"), of, number(offset), *sizes, b"\x89", hooks)


def table(entries: Mapping[str, bytes]) -> bytes:
    """A whole pickle of named values."""
    items = b"".join(text(name) + value for name, value in entries.items())
    return START + called(named("collections", "OrderedDict")) + b"(" + items + b"u" + STOP


def zipped(pickled: bytes, data: Mapping[str, bytes], byteorder: str = "little") -> bytes:
    """The layout since PyTorch 1.6."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("archive/data.pkl", pickled)
        archive.writestr("archive/byteorder", byteorder)
        for key, content in data.items():
            archive.writestr(f"archive/data/{key}", content)
    return buffer.getvalue()


def old(pickled: bytes, data: Mapping[str, tuple[int, bytes]], *, magic: int = _MAGIC_NUMBER) -> bytes:
    """The layout before it; each storage with how many elements it has."""
    magic_bytes = magic.to_bytes(11, "little")
    head = START + b"\x8a" + bytes([len(magic_bytes)]) + magic_bytes + STOP + START + number(1001) + STOP
    machine = START + b"}(" + text("little_endian") + b"\x88" + b"u" + STOP
    keys = START + b"](" + b"".join(map(text, data)) + b"e" + STOP
    contents = b"".join(struct.pack("<q", elements) + content for elements, content in data.values())
    return head + machine + pickled + keys + contents


def saved(arrays: Mapping[str, NDArray[Any]], *, layout: str) -> bytes:
    """Arrays as tensors of a storage each, transposed ones with their strides."""
    entries, data = {}, {}
    for position, (name, array) in enumerate(arrays.items()):
        key, kind = str(9000 + position), STORAGES[array.dtype.str]
        strides = tuple(stride // array.itemsize for stride in array.strides)
        of = (storage if layout == "zip" else storage_of_old)(key, array.size, kind)
        entries[name] = tensor(of, array.shape, strides)
        data[key] = (array.size, array.tobytes(order="A"))
    if layout == "zip":
        return zipped(table(entries), {key: content for key, (_, content) in data.items()})
    return old(table(entries), data)


def floats(count: int) -> bytes:
    return np.arange(count, dtype="<f4").tobytes()
