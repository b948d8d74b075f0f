"""Where the harness keeps what it can make again: one folder, moved by HARNESS_CACHE."""

import contextlib
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import platformdirs
from filelock import FileLock, Timeout

from harness.scratch import lock_file, sweep

# Files under such names become others when they are whole; a killed process may leave one behind.
WRITING_PREFIX = ".writing-"
# Folders of the cache without such files, which may be large.
_WRITTEN_OTHERWISE = frozenset({"builds", "environments", "locks", "places", "scratch", "worktrees"})

# Of outputs, references and what a fleet sends, each; those of the suites that come with the harness are far less.
LIMIT_BYTES = 4 * 2**30
YOUNG_S = 24 * 3600.0  # a run that goes on needs what it has kept


def cache_root() -> Path:
    """The cache folder: $HARNESS_CACHE, else the user's cache folder of this system."""
    chosen = os.environ.get("HARNESS_CACHE")
    return Path(chosen).absolute() if chosen else Path(platformdirs.user_cache_dir("iree-harness", appauthor=False))


def environments_root() -> Path:
    """Folder of the toolchains that `--toolchain` installed; the folder `toolchains` holds memos of tools."""
    return cache_root() / "environments"


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file so that readers see either nothing or all of it, also when two processes write it at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=WRITING_PREFIX)
    lock_file(handle)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(temporary).chmod(0o644)  # mkstemp makes it private
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def sweep_writing(root: Path) -> None:
    """Remove the files below the cache folder that killed processes were writing."""
    for folder, names, files in os.walk(root):
        if folder == str(root):
            names[:] = [name for name in names if name not in _WRITTEN_OTHERWISE]
        if any(file.startswith(WRITING_PREFIX) for file in files):
            sweep(Path(folder), WRITING_PREFIX)


def trim(files: Iterable[Path], limit_bytes: int = LIMIT_BYTES) -> None:
    """Delete files that were not used for longest, until the others fit the limit; none of the last day."""
    found = []
    with contextlib.suppress(OSError):
        for file in files:
            with contextlib.suppress(OSError):  # another harness trims too
                status = file.lstat()
                found.append((max(status.st_atime, status.st_mtime), status.st_size, file))
    size = sum(bytes_ for _, bytes_, _ in found)
    for used, bytes_, file in sorted(found):
        if size <= limit_bytes or time.time() - used < YOUNG_S:
            return
        with contextlib.suppress(OSError):
            file.unlink()
        size -= bytes_


def read_memo(path: Path) -> Any | None:
    """The JSON value of a memo; None when there is none or it cannot be read."""
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None


def write_memo(path: Path, value: Any) -> None:
    """Keep a JSON value; a memo that cannot be kept is computed again, so failing to write is no error."""
    with contextlib.suppress(OSError):
        write_atomically(path, json.dumps(value).encode())


@contextlib.contextmanager
def held(path: Path, on_wait: Callable[[], None]) -> Iterator[None]:
    """Hold a lock; it goes with the process that holds it, also when that is killed."""
    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        on_wait()
        lock.acquire()
    try:
        yield
    finally:
        lock.release()
