"""PyTorch's files: tensors come out as they went in, and nothing that a file names is ever run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of
from numpy.typing import NDArray

from harness.errors import CaseError
from harness.models.weight_formats import read_torch_file
from tests.models.torch_files import (
    START,
    STOP,
    STORAGES,
    called,
    floats,
    named,
    old,
    saved,
    several,
    storage,
    storage_of_old,
    table,
    tensor,
    text,
    zipped,
)

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
