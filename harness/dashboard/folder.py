"""Where a dashboard goes: beside its place first, and into it once it is whole; until then, the old one stays."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from harness.errors import UsageError

MARKER = ".harness-dashboard"


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
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        making = Path(tempfile.mkdtemp(dir=place.parent, prefix=f".{place.name[:100]}-making-"))
    except OSError as error:
        raise _told(out, error) from None
    try:
        making.chmod(0o755)  # mkdtemp makes it private, and a web server has to read it
        try:
            yield making
            (making / MARKER).write_text(json.dumps({"made_by": "harness dashboard", "schema_version": 1}) + "\n")
            _swap(making, place)
        except OSError as error:
            raise _told(out, error) from None
    finally:
        shutil.rmtree(making, ignore_errors=True)


def _swap(new: Path, place: Path) -> None:
    require_replaceable(place)  # again: somebody may have put something there meanwhile
    if not place.exists():
        new.rename(place)
        return
    old = new.with_name(f"{new.name}-old")
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
