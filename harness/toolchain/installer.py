"""How a pair is installed, by uv or by pip, and what their words mean where that fails."""

from __future__ import annotations

import re
import shutil
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.toolchain.find import COMPILER_PACKAGE, RUNTIME_PACKAGE, environment_python
from harness.toolchain.index_output import DISK_FULL, NO_INDEX, UNREACHABLE

# pip lists the releases that fit this Python; uv only says that it found none.
_PIP_HAS = re.compile(r"Could not find a version that satisfies .*\(from versions: (?P<releases>[^)]+)\)")
_UV_HAS_NOT = re.compile(r"there (?:is|are) no versions? of\s+iree-base-", re.IGNORECASE)
_UV_NO_WHEEL = re.compile(r"has no wheels with a matching|requires-python|does not satisfy Python", re.IGNORECASE)
_NO_ENSUREPIP = re.compile(r"ensurepip|No module named '?venv")
_SHOWN_RELEASES = 5


@dataclass(frozen=True, kw_only=True)
class Installer:
    """A program that makes Python environments.

    Attributes:
        uv: The uv program; None: venv and pip of this Python.
    """

    uv: str | None

    def commands(self, folder: Path, release: str) -> tuple[tuple[str, ...], ...]:
        """The command lines that make an environment with a release's pair, to be run one after the other."""
        python = str(environment_python(folder))
        if self.uv is not None:
            return (
                (self.uv, "venv", "--no-project", "--python", sys.executable, str(folder)),
                (self.uv, "pip", "install", "--python", python, "--only-binary", ":all:", *packages(release)),
            )
        return (
            (sys.executable, "-I", "-m", "venv", str(folder)),
            # With -vv, pip says which files it passed over and why.
            (python, "-I", "-m", "pip", "install", "-vv", "--no-input", "--only-binary", ":all:", *packages(release)),
        )

    def by_hand(self, release: str) -> str:
        """The command line that shows a user what goes wrong."""
        words = " ".join(f"'{one}'" if "[" in one else one for one in packages(release))
        return f"{'uv pip' if self.uv is not None else 'pip'} install {words}"


def choose_installer() -> Installer:
    """Choose uv where it is installed, since it takes a fraction of the time; else what comes with Python."""
    return Installer(uv=shutil.which("uv"))


def packages(release: str) -> tuple[str, ...]:
    """What an environment gets: the pair, the importer's packages, and what the worker needs."""
    return (f"{COMPILER_PACKAGE}[onnx]=={release}", f"{RUNTIME_PACKAGE}=={release}", "numpy")


def why_it_failed(release: str, printed: str, how_it_ended: str, by_hand: str) -> str:
    """One sentence about an installation that failed.

    Args:
        printed: All that uv or pip printed.
        how_it_ended: A phrase, such as `exited with status 1`.
        by_hand: The command line to try.
    """
    if DISK_FULL.search(printed):
        return (
            f"IREE {release} cannot be installed: the disk of the cache or of the temporary folder is full; make room "
            "(an environment takes about 700 MB), or set HARNESS_CACHE or TMPDIR to another disk"
        )
    if _is_for_another_python(release, printed):
        return (
            f"IREE {release} has no packages for Python {sys.version_info[0]}.{sys.version_info[1]} on "
            f"{sysconfig.get_platform()}; give another --toolchain, or run the harness under a Python that it is for"
        )
    found = _PIP_HAS.search(printed)
    releases = [] if found is None or found["releases"] == "none" else found["releases"].split(", ")
    if releases or _UV_HAS_NOT.search(printed):
        return f"the package index has no IREE {release}; {_instead(releases)}"
    if UNREACHABLE.search(printed):
        return (
            f"IREE {release} is not in the cache, and the package index cannot be reached; connect once to install it, "
            "and later runs need no network"
        )
    if NO_INDEX.search(printed):
        return (
            f"IREE {release} is not in the cache, and no package index that is configured here has {COMPILER_PACKAGE}; "
            "check the settings of pip and uv (PIP_NO_INDEX, UV_NO_INDEX, their configuration files)"
        )
    if _NO_ENSUREPIP.search(printed):
        return "this Python cannot make environments; install its venv package (Debian's python3-venv), or uv"
    return f"IREE {release} cannot be installed (the installer {how_it_ended}); see what `{by_hand}` says"


def _is_for_another_python(release: str, printed: str) -> bool:
    """Whether the release is there, but no file of it is for this interpreter or this system."""
    passed_over = re.compile(
        r"(?:none of the wheel's tags|requires a different Python).*iree_base_(?:compiler|runtime)-"
        + re.escape(release)
        + "-"
    )
    if _UV_NO_WHEEL.search(printed):
        return True
    return "Could not find a version" in printed and passed_over.search(printed) is not None


def _instead(releases: Sequence[str]) -> str:
    if not releases:
        return "give a --toolchain that was released"
    shown = releases[-_SHOWN_RELEASES:]
    return f"give a --toolchain that it has, such as {', '.join(shown)}"
