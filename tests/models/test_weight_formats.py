"""Files of weights: tensors come out as they went in, and nothing that a PyTorch file names is ever run.

PyTorch's files are put together byte by byte as `torch.save` does, which tests must not need.
"""

from __future__ import annotations

import io
import json
import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of
from numpy.typing import NDArray

from harness.errors import CaseError
from harness.models.weight_formats import read_safetensors, read_torch_file

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


LAYOUTS = pytest.mark.parametrize("layout", ["zip", "old"])


def read(content: bytes, folder: Path) -> dict[str, NDArray[Any]]:
    path = folder / "net.pth"
    path.write_bytes(content)
    return read_torch_file(path)


def complaint(content: bytes, folder: Path) -> str:
    with pytest.raises(CaseError) as caught:
        read(content, folder)
    assert caught.value.stage == "model"
    message = str(caught.value)
    assert "\n" not in message
    return message.replace(str(folder / "net.pth"), "FILE")


@st.composite
def tensors(draw: st.DrawFn) -> NDArray[Any]:
    """An array of any element type that is read, perhaps transposed."""
    array = draw(
        st.sampled_from(sorted(STORAGES)).flatmap(
            lambda dtype: arrays_of.arrays(dtype, arrays_of.array_shapes(min_dims=0, max_dims=3, max_side=4))
        )
    )
    return np.asarray(array.T if draw(st.booleans()) else array)


@LAYOUTS
@given(st.dictionaries(st.text(min_size=1, max_size=5), tensors(), max_size=3))
def test_tensors_come_out_as_they_went_in(
    tmp_path_factory: pytest.TempPathFactory, layout: str, arrays: dict[str, NDArray[Any]]
) -> None:
    found = read(saved(arrays, layout=layout), tmp_path_factory.mktemp("pth"))
    assert list(found) == list(arrays)
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)


def test_tensors_may_share_a_storage(tmp_path: Path) -> None:
    shared = storage("7", 6)
    pickled = table({"all": tensor(shared, (2, 3), (3, 1)), "column": tensor(shared, (2,), (3,), offset=1)})
    found = read(zipped(pickled, {"7": floats(6)}), tmp_path)
    assert found["all"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert found["column"].tolist() == [1, 4]


@pytest.mark.parametrize(
    ("module", "name"),
    [("os", "system"), ("builtins", "eval"), ("subprocess", "run"), ("torch.nn", "Linear"), ("torch", "load")],
)
@LAYOUTS
def test_what_a_file_names_is_not_run(tmp_path: Path, layout: str, module: str, name: str) -> None:
    trace = tmp_path / "trace"
    pickled = table({"weight": called(named(module, name), text(f"touch {trace}"))})
    content = zipped(pickled, {}) if layout == "zip" else old(pickled, {})
    assert complaint(content, tmp_path) == (
        f"FILE names {module}.{name}, which is no tensor and was not run; save the tensors alone, as "
        "torch.save(module.state_dict(), ...) does"
    )
    assert not trace.exists()


def test_nor_what_it_names_in_newer_ways(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    by_stack = text("os") + text("system") + b"\x93" + several(text(f"touch {trace}")) + b"R"
    by_instance = b"(" + text(f"touch {trace}") + b"ios\nsystem\n"
    by_name_in_a_name = text("torch") + text("FloatStorage.newbyteorder") + b"\x93" + b")R"
    for code in (by_stack, by_instance, by_name_in_a_name):
        message = complaint(zipped(b"\x80\x04" + code + STOP, {}), tmp_path)
        assert "was not run" in message
    assert not trace.exists()


def test_tensors_stay_within_their_storage(tmp_path: Path) -> None:
    for shape, strides, offset in (
        ((7,), (1,), 0),
        ((6,), (1,), 1),
        ((2, 3), (4, 1), 0),
        ((1 << 30,), (0,), 0),
        ((6,), (1,), -1),
        ((6,), (-1,), 5),
        ((-1, -6), (1, 1), 0),
        ((2, 3), (3,), 0),
    ):
        pickled = table({"weight": tensor(storage("7", 6), shape, strides, offset)})
        assert complaint(zipped(pickled, {"7": floats(6)}), tmp_path).startswith("FILE is no whole file of PyTorch")
    pickled = table({"weight": tensor(storage("7", 6), (6,), (1,))})
    for held in (0, 5, 7):
        assert "storage 7 is not whole" in complaint(zipped(pickled, {"7": floats(held)}), tmp_path)
    assert "is no whole file" in complaint(zipped(pickled, {}), tmp_path)


@pytest.mark.parametrize(
    "pickled",
    [
        START + text("words") + STOP,
        table({"epoch": b"K\x07"}),
        table({"weight": called(named("torch._utils", "_rebuild_tensor_v2"), text("7"), b"K\x00", b")", b")")}),
        table({"weight": text("7") + b"Q"}),
        START + b"R" + STOP,
        b"",
    ],
)
def test_what_is_no_table_of_tensors_is_refused(tmp_path: Path, pickled: bytes) -> None:
    assert complaint(zipped(pickled, {}), tmp_path).endswith("; write or download it again")


def test_views_of_old_storages_and_other_byte_orders_are_refused(tmp_path: Path) -> None:
    view = storage_of_old("7", 6).removesuffix(b"NtQ") + text("8") + b"tQ"
    assert "a storage of an unknown form" in complaint(old(table({"w": tensor(view, (6,), (1,))}), {}), tmp_path)
    assert "big-endian" in complaint(zipped(table({}), {}, byteorder="big"), tmp_path)
    assert "does not begin as one" in complaint(old(table({}), {}, magic=1), tmp_path)


@LAYOUTS
@given(st.data())
def test_a_file_that_was_cut_short_is_told(
    tmp_path_factory: pytest.TempPathFactory, layout: str, data: st.DataObject
) -> None:
    whole = saved({"weight": np.arange(6, dtype="<f4").reshape(2, 3)}, layout=layout)
    short = whole[: data.draw(st.integers(0, len(whole) - 1))]
    assert complaint(short, tmp_path_factory.mktemp("pth"))


def test_a_file_that_is_not_there_is_the_systems_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_torch_file(tmp_path / "net.pth")


def write_safetensors(path: Path, header: dict[str, Any], data: bytes) -> Path:
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


def test_safetensors_come_out_as_they_went_in(tmp_path: Path) -> None:
    matrix, ids = np.arange(6, dtype=np.float32).reshape(2, 3), np.array([7, -8])
    header = {
        "__metadata__": {"format": "pt"},
        "ids": {"dtype": "I64", "shape": [2], "data_offsets": [24, 40]},
        "matrix": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
    }
    found = read_safetensors(write_safetensors(tmp_path / "net.safetensors", header, matrix.tobytes() + ids.tobytes()))
    assert list(found) == ["ids", "matrix"]
    np.testing.assert_array_equal(found["matrix"], matrix)
    np.testing.assert_array_equal(found["ids"], ids)


@pytest.mark.parametrize(
    ("header", "data"),
    [
        ({"matrix": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}}, b"short"),
        ({"matrix": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 20]}}, bytes(24)),
        ({"matrix": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]}}, bytes(4)),
        ({"matrix": "F32"}, bytes(4)),
    ],
)
def test_broken_files_are_told(tmp_path: Path, header: dict[str, Any], data: bytes) -> None:
    path = write_safetensors(tmp_path / "net.safetensors", header, data)
    with pytest.raises(CaseError, match=r"net\.safetensors is no whole \.safetensors file \(.*\); write or") as caught:
        read_safetensors(path)
    assert caught.value.stage == "model"


@pytest.mark.parametrize("content", [b"", b"\x05", bytes(8), b"\xff" * 16])
def test_so_are_files_of_something_else(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "net.safetensors"
    path.write_bytes(content)
    with pytest.raises(CaseError, match="is no whole"):
        read_safetensors(path)
