"""Where a dashboard goes: beside its place first, and into it once it is whole; until then, the old one stays."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from harness.cache import held
from harness.errors import UsageError

MARKER = ".harness-dashboard"

_LONGEST_NAME = 60


def require_replaceable(out: Path) -> None:
    """Refuse a place that holds anything but a dashboard."""
    try:
        if not out.exists() and not out.is_symlink():
            return
        if not out.is_dir():
            raise UsageError(f"--out {out}: is no folder; name one that is empty or not there yet")
        if any(out.iterdir()) and not (out / MARKER).is_file():
            raise UsageError(f"--out {out}: holds other files than a dashboard; name a folder that is empty")
    except OSError as error:
        raise _unwritable(out, error) from None


@contextlib.contextmanager
def replaced(out: Path) -> Iterator[Path]:
    """A new folder to write into, which takes the place of `out` when the block ends without an error."""
    require_replaceable(out)
    place = out.resolve()
    # Whoever holds the lock is alone, so what lies under these names was left by a process that was killed.
    lock, making, aside = (
        place.with_name(f".{_stem(place)}.{kind}") for kind in ("lock", "harness-new", "harness-old")
    )
    with contextlib.ExitStack() as stack:
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            stack.enter_context(held(lock, lambda: _say_that_it_waits(out)))
            if aside.exists() and not place.exists():
                aside.rename(place)
            for left in (making, aside):
                shutil.rmtree(left, ignore_errors=True)
            making.mkdir()
            stack.callback(shutil.rmtree, making, ignore_errors=True)
            yield making
            (making / MARKER).write_text(json.dumps({"made_by": "harness dashboard", "schema_version": 1}) + "\n")
            require_replaceable(out)  # again: somebody may have put something there meanwhile
            _swap(making, place, aside)
        except OSError as error:
            raise _unwritable(out, error) from None


def _swap(new: Path, place: Path, aside: Path) -> None:
    """Put the new folder in the place of the old one, which stays where that fails."""
    if place.exists():
        place.rename(aside)
    try:
        new.rename(place)
    except OSError:
        if aside.exists():
            aside.rename(place)
        raise
    shutil.rmtree(aside, ignore_errors=True)


def _stem(place: Path) -> str:
    """The name, where it is so long that nothing fits behind it a part of it that no other has."""
    if len(place.name) <= _LONGEST_NAME:
        return place.name
    return f"{place.name[:40]}-{hashlib.sha256(os.fsencode(place.name)).hexdigest()[:16]}"


def _say_that_it_waits(out: Path) -> None:
    sys.stderr.write(f"Another harness writes {out}; waiting for it\n")


def _unwritable(out: Path, error: OSError) -> UsageError:
    reason = error.strerror or os.strerror(error.errno or 0)
    return UsageError(f"--out {out}: cannot be written ({reason}); make room or name another folder")
