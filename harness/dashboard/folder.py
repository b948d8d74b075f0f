"""Where a dashboard goes: beside its place first, and into it once it is whole; until then, the old one stays."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from harness.cache import held
from harness.errors import UsageError

MARKER = ".harness-dashboard"

# What the former dashboard's folder is called besides, while the new one takes its place.
_ASIDE = "-old"
_LONGEST_NAME = 60


def require_replaceable(out: Path) -> None:
    """Refuse a place that holds anything but a dashboard.

    Raises:
        UsageError: It is a file, or a folder with other things in it, or it cannot be looked at.
    """
    try:
        if not out.exists() and not out.is_symlink():
            return
        if not out.is_dir():
            raise UsageError(f"--out {out}: is no folder; name one that is empty or not there yet")
        if any(out.iterdir()) and not (out / MARKER).is_file():
            raise UsageError(f"--out {out}: holds other files than a dashboard; name a folder that is empty")
    except OSError as error:
        raise _told(out, error) from None


@contextlib.contextmanager
def replaced(out: Path) -> Iterator[Path]:
    """A new folder to write into, which takes the place of `out` when the block ends without an error.

    Raises:
        UsageError: `out` may not be replaced, or cannot be written.
    """
    require_replaceable(out)
    place = out.resolve()
    with contextlib.ExitStack() as stack:
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            stack.enter_context(held(place.with_name(f".{_stem(place)}.lock"), lambda: _say_that_it_waits(out)))
            _clear_up(place)
            making = Path(tempfile.mkdtemp(dir=place.parent, prefix=_prefix(place)))
        except OSError as error:
            raise _told(out, error) from None
        stack.callback(shutil.rmtree, making, ignore_errors=True)
        try:
            making.chmod(0o755)  # mkdtemp makes it private, and a web server has to read it
            yield making
            (making / MARKER).write_text(json.dumps({"made_by": "harness dashboard", "schema_version": 1}) + "\n")
            _swap(making, place)
        except OSError as error:
            raise _told(out, error) from None


def _clear_up(place: Path) -> None:
    """After a process that was killed here: give back a dashboard that it had set aside, remove what it began.

    Whoever holds the lock is alone, so whatever lies here is nobody's any more.
    """
    made_by_mkdtemp = re.compile(rf"{re.escape(_prefix(place))}[a-z0-9_]{{8}}({_ASIDE})?")
    for left in sorted(place.parent.iterdir()):
        found = made_by_mkdtemp.fullmatch(left.name)
        if found is None or left.is_symlink() or not left.is_dir():
            continue
        if found[1] and not place.exists() and (left / MARKER).is_file():
            left.rename(place)
        else:
            shutil.rmtree(left, ignore_errors=True)


def _prefix(place: Path) -> str:
    return f".{_stem(place)}-making-"


def _stem(place: Path) -> str:
    """The name, where it is so long that nothing fits behind it a part of it that no other has."""
    if len(place.name) <= _LONGEST_NAME:
        return place.name
    return f"{place.name[:40]}-{hashlib.sha256(os.fsencode(place.name)).hexdigest()[:16]}"


def _say_that_it_waits(out: Path) -> None:
    sys.stderr.write(f"Another harness writes {out}; waiting for it\n")


def _swap(new: Path, place: Path) -> None:
    require_replaceable(place)  # again: somebody may have put something there meanwhile
    if not place.exists():
        new.rename(place)
        return
    old = new.with_name(f"{new.name}{_ASIDE}")
    place.rename(old)
    try:
        new.rename(place)
    except OSError:
        old.rename(place)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _told(out: Path, error: OSError) -> UsageError:
    reason = error.strerror or os.strerror(error.errno or 0)
    return UsageError(f"--out {out}: cannot be written ({reason}); make room or name another folder")
