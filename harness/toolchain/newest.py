"""Which release of IREE is the newest that the package index has for this machine."""

from __future__ import annotations

import re
import sys

from packaging.version import InvalidVersion, Version

from harness.errors import ToolchainError
from harness.process import Limits, run
from harness.toolchain.find import COMPILER_PACKAGE, RUNTIME_PACKAGE
from harness.toolchain.index_output import NO_INDEX, UNREACHABLE

NEWEST = "newest"

_LIMITS = Limits(seconds=120)
_AVAILABLE = re.compile(r"^Available versions: (?P<versions>.+)$", re.MULTILINE)
_NO_PIP = re.compile(r"No module named '?pip")


def newest_release() -> str:
    """The newest release that both halves of the pair have, as pip's own settings see it.

    A nightly build counts where pip is told so, with PIP_PRE=1 and with PIP_FIND_LINKS for where such builds are.

    Raises:
        ToolchainError: The index cannot be asked, or has no pair.
    """
    both = _versions(COMPILER_PACKAGE) & _versions(RUNTIME_PACKAGE)
    if not both:
        raise ToolchainError(
            f"--toolchain {NEWEST}: no release has both {COMPILER_PACKAGE} and {RUNTIME_PACKAGE} for this Python; give "
            "a version"
        )
    return str(max(both))


def _versions(package: str) -> set[Version]:
    """All releases of a package that fit this Python and this system."""
    finished = run(
        [sys.executable, "-I", "-m", "pip", "index", "versions", "-vv", "--no-input", package], limits=_LIMITS
    )
    found = _AVAILABLE.search(finished.stdout)
    if not finished.ok or found is None:
        raise ToolchainError(f"--toolchain {NEWEST}: {_why(finished.stdout + finished.stderr, package)}")
    versions = set()
    for text in found["versions"].split(","):
        try:
            versions.add(Version(text.strip()))
        except InvalidVersion:  # of an index with files of old
            continue
    return versions


def _why(printed: str, package: str) -> str:
    if _NO_PIP.search(printed):
        return "needs pip, which this Python does not have; install pip, or give a version"
    if UNREACHABLE.search(printed):
        return "the package index cannot be reached; connect, or give a version that is installed"
    if NO_INDEX.search(printed) or "No matching distribution" in printed:
        return f"no package index that is configured here has {package}; check pip's settings, or give a version"
    return f"pip cannot say which releases {package} has; see what `pip index versions {package}` says"
