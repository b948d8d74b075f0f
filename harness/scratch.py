"""Folders and files that end with their process: where that is killed, the next harness sweeps what it left.

A process holds a lock on each, which goes with it whatever ends it.
"""

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# A folder is made before it is locked.
_JUST_MADE_S = 60.0
# Where a file system has no locks on folders, what is older than any compile is left behind.
_SURELY_LEFT_S = 24 * 3600.0


@contextmanager
def scratch_folder(parent: Path, prefix: str = "") -> Iterator[Path]:
    """A new folder below `parent`, removed at the end."""
    if prefix:
        sweep(parent, prefix)
    folder = Path(tempfile.mkdtemp(dir=parent, prefix=prefix or None))
    lock = _lock(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def sweep(parent: Path, prefix: str = "") -> None:
    """Remove the folders and files right below `parent` whose processes were killed."""
    for path in parent.glob(f"{prefix}*"):
        with contextlib.suppress(OSError):
            if _is_left_behind(path):
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    path.unlink()


def lock_file(handle: int) -> None:
    """Let `sweep` see that the file behind a handle has a living process, as long as the handle is open."""
    with contextlib.suppress(OSError):  # of a file system without locks
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def own_temporary_folder() -> Iterator[None]:
    """Let all that this process makes with `tempfile` lie in one folder, and sweep those of killed ones."""
    before = tempfile.tempdir
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):  # such as a disk without room: whoever needs it says so
            parent = Path(tempfile.gettempdir()) / f"iree-harness-{os.getuid()}"
            parent.mkdir(mode=0o700, exist_ok=True)
            if parent.stat().st_uid == os.getuid():
                sweep(parent)
                folder = stack.enter_context(scratch_folder(parent))
                tempfile.tempdir = str(folder)
        try:
            yield
        finally:
            tempfile.tempdir = before


def shared_temporary_folder() -> Path:
    """The system's folder for temporary files, where processes meet."""
    here = Path(tempfile.gettempdir())
    return here.parent.parent if here.parent.name.startswith("iree-harness-") else here


def _lock(folder: Path) -> int | None:
    """A handle that locks a folder; None where it cannot be locked at all."""
    handle = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(handle)
        if isinstance(error, BlockingIOError):
            raise
        return None
    return handle


def _is_left_behind(folder: Path) -> bool:
    age_s = time.time() - folder.lstat().st_mtime
    if age_s < _JUST_MADE_S:
        return False
    try:
        lock = _lock(folder)
    except BlockingIOError:
        return False
    if lock is None:
        return age_s > _SURELY_LEFT_S
    os.close(lock)
    return True
