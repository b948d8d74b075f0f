"""Which releases of IREE there are: what a user writes, what the package index has, and those from one to another."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence

from packaging.version import InvalidVersion, Version

from harness.errors import ToolchainError
from harness.process import Limits, run
from harness.text import plural, shown
from harness.toolchain.find import COMPILER_PACKAGE, RUNTIME_PACKAGE

NEWEST = "newest"
# Between the two ends of a range, as in `3.0.0..3.13.0`.
RANGE = ".."

UNREACHABLE = re.compile(
    r"Could not fetch URL \S+ (?:connection error|There was a problem)|connection broken by|tim(?:ed|e) ?out"
    r"|Failed to (?:fetch|download)|error sending request"
    r"|network (?:was|is) (?:disabled|unreachable)|name resolution|Name or service not known|ProxyError|SSLError",
    re.IGNORECASE,
)
NO_INDEX = re.compile(r"from versions: none|was not found in the|index lookups were disabled")

_LIMITS = Limits(seconds=120)
_AVAILABLE = re.compile(r"^Available versions: (?P<versions>.+)$", re.MULTILINE)
_NO_PIP = re.compile(r"No module named '?pip")


# --- what a user writes ---


def releases_named(texts: Sequence[str], on_install: Callable[[str], None], *, pre: bool = False) -> tuple[str, ...]:
    """The releases that a user means, each once, in the order given; a range is all that the index has of it.

    Args:
        texts: As the user wrote them: `3.12.0`, `3.12`, `iree==3.12.0`, `newest`, `3.0.0..3.13.0` or `3.0.0..newest`.
        on_install: Gets a sentence for those that the index says.
        pre: Whether a range has pre-releases too.

    Raises:
        ToolchainError: One is no version, the package index cannot be asked, or it has none of a range.
    """
    found: list[str] = []
    for text in texts:
        first, is_range, last = text.strip().removeprefix("iree==").partition(RANGE)
        if not is_range:
            found.append(release_named(text, on_install))
            continue
        if not first or not last:
            raise ToolchainError(f"--toolchain {shown(text)}: a range has two ends, as in 3.0.0..3.13.0")
        ends = release_named(first, on_install), release_named(last, on_install)
        between = releases_between(*ends, pre=pre)
        if not between:
            raise ToolchainError(
                f"--toolchain {shown(text)}: the package index has no release of that range; correct it"
            )
        on_install(f"{text} is {plural(len(between), 'release')}: {', '.join(between)}")
        found += between
    return tuple(dict.fromkeys(found))


def release_named(text: str, on_install: Callable[[str], None], option: str = "--toolchain") -> str:
    """The release that a user means, which may be the newest there is.

    Args:
        option: With which the user gives it, for messages.

    Raises:
        ToolchainError: It is no version, or the package index cannot be asked.
    """
    if text.strip().removeprefix("iree==") != NEWEST:
        return parse_release(text, option)
    release = newest_release(option)
    on_install(f"The newest release of IREE is {release}")
    return release


def parse_release(text: str, option: str = "--toolchain") -> str:
    """`iree==3.12` -> `3.12.0`: the release that a user means, with the three numbers that IREE's releases have."""
    number = text.strip().removeprefix("iree==")
    try:
        version = Version(number)
    except InvalidVersion:
        raise ToolchainError(f"{option} {text}: is no version; write the release, as in {option} 3.12.0") from None
    return written(version)


def written(version: Version) -> str:
    """A version with the three numbers that IREE's releases have: `3.12` -> `3.12.0`."""
    missing = 3 - len(version.release)
    epoch = f"{version.epoch}!" if version.epoch else ""
    rest = str(version).removeprefix(epoch)[len(".".join(map(str, version.release))) :]
    return epoch + ".".join(map(str, (*version.release, *[0] * missing))) + rest


# --- what the index has ---


def newest_release(option: str = "--toolchain") -> str:
    """The newest release that both halves of the pair have, as pip's own settings see it.

    PIP_PRE=1 makes nightly builds count, and PIP_FIND_LINKS says where they are.
    """
    return str(max(_pairs(f"{option} {NEWEST}", "give a version")))


def releases_between(first: str, last: str, *, pre: bool = False) -> tuple[str, ...]:
    """The releases that both halves of the pair have, from one to another, both included, the oldest first.

    Args:
        first: Either end; they need not be in order.
        pre: Whether pre-releases count, which pip finds where PIP_FIND_LINKS says.

    Raises:
        ToolchainError: The index cannot be asked, or has no pair.
    """
    low, high = sorted((Version(first), Version(last)))
    pairs = _pairs(f"the releases from {low} to {high}", "name each of them", pre=pre)
    return tuple(written(version) for version in sorted(pairs) if low <= version <= high)


def _pairs(what: str, instead: str, *, pre: bool = False) -> set[Version]:
    """All releases of which the index has both halves."""
    both = _versions(COMPILER_PACKAGE, what, instead, pre) & _versions(RUNTIME_PACKAGE, what, instead, pre)
    if not both:
        raise ToolchainError(
            f"{what}: no release has both {COMPILER_PACKAGE} and {RUNTIME_PACKAGE} for this Python; {instead}"
        )
    return both


def _versions(package: str, what: str, instead: str, pre: bool) -> set[Version]:
    """All releases of a package that fit this Python and this system."""
    options = ["-vv", "--no-input", *(["--pre"] if pre else [])]
    finished = run([sys.executable, "-I", "-m", "pip", "index", "versions", *options, package], limits=_LIMITS)
    listed = _AVAILABLE.search(finished.stdout)
    if not finished.ok or listed is None:
        raise ToolchainError(f"{what}: {_why(finished.stdout + finished.stderr, package, instead)}")
    versions = set()
    for text in listed["versions"].split(","):
        try:
            versions.add(Version(text.strip()))
        except InvalidVersion:  # of an index with files of old
            continue
    return versions


def _why(printed: str, package: str, instead: str) -> str:
    if _NO_PIP.search(printed):
        return f"needs pip, which this Python does not have; install pip, or {instead}"
    if UNREACHABLE.search(printed):
        return f"the package index cannot be reached; connect, or {instead}"
    if NO_INDEX.search(printed) or "No matching distribution" in printed:
        return f"no package index that is configured here has {package}; check pip's settings, or {instead}"
    return f"pip cannot say which releases {package} has; see what `pip index versions {package}` says"
