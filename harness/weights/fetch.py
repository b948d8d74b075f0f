"""Fetching one wheel by pip, whose settings hold as ever, without installing it."""

from __future__ import annotations

import sys
from pathlib import Path

from harness.process import Limits, run
from harness.toolchain.index_output import DISK_FULL, NO_INDEX, UNREACHABLE

# 200 MB over a slow line.
_LIMITS = Limits(seconds=3600)
_NO_PIP = "No module named pip"


def fetch_wheel(distribution: str, version: str, tags: str, folder: Path) -> Path | str:
    """Fetch the wheel of a release into an empty folder: the file; or why not, and what to do, as a phrase.

    Args:
        tags: Of the wheel, `cp311-none-manylinux1_x86_64`; "": any that fits this Python and system.
        folder: Also where pip runs, so that no module of the user's own working folder shadows pip's.
    """
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
