"""Copying folders so that nothing but what was looked at is copied, and nobody ever sees half of one."""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from harness.cache import held
from harness.errors import RunError
from harness.store.bounded import open_plain
from harness.store.comparison_directory import COMPARISON_FILE
from harness.store.dropped import DROPPED_FILE, TURNS_FILE, read_dropped
from harness.store.folders import FOLDER_LIMIT_BYTES, Contents, is_table, look_into
from harness.store.manifest import FINISHED_FILE, FileRecord, describe_file

STAGING_PREFIX = ".copying-"
_LOCK_FILE = ".archive.lock"
_CHUNK_BYTES = 2**20


@contextlib.contextmanager
def archive_lock(results: Path) -> Iterator[None]:
    """Be the only process that changes a results folder; what a killed one left half copied is removed.

    Raises:
        RunError: The folder cannot be written.
    """

    def tell() -> None:
        sys.stderr.write(f"Waiting for another harness that changes {results}.\n")

    with contextlib.ExitStack() as stack:
        try:
            results.mkdir(parents=True, exist_ok=True)
            stack.enter_context(held(results / _LOCK_FILE, tell))
        except OSError as error:
            raise unwritable(results, error) from None
        for left in results.glob(f"{STAGING_PREFIX}*"):
            shutil.rmtree(left, ignore_errors=True)
        yield


def unwritable(path: Path, error: OSError) -> RunError:
    """What is said where a disk is full or a folder is read-only."""
    return RunError(f"{path}: cannot be written ({error.strerror}); make room or mend its permissions, then try again")


@contextlib.contextmanager
def staged(source: Path, contents: Contents, results: Path) -> Iterator[Path]:
    """A copy of a folder's known files below `results`, under a name that nobody reads; removed unless it is moved.

    Raises:
        RunError: A file of the source cannot be read, or the copy cannot be written.
    """
    try:
        results.mkdir(parents=True, exist_ok=True)
        copy = Path(tempfile.mkdtemp(prefix=STAGING_PREFIX, dir=results))
    except OSError as error:
        raise unwritable(results, error) from None
    try:
        copy.chmod(0o755)  # mkdtemp makes it private
        for name in contents.known:
            _copy_file(source / name, copy / name)
        yield copy
    finally:
        shutil.rmtree(copy, ignore_errors=True)


def move_into_place(copy: Path, target: Path) -> bool:
    """Give a staged copy its name; False: something has it already.

    Raises:
        RunError: It cannot be moved.
    """
    try:
        if target.exists():  # a file, or an empty folder, would be replaced
            return False
        copy.rename(target)
    except FileExistsError:
        return False
    except OSError as error:
        if target.exists():
            return False
        raise unwritable(target, error) from None
    return True


def require_size(folder: Path, contents: Contents) -> None:
    """Refuse a folder that is larger than a run can be.

    Raises:
        RunError: It is.
    """
    if contents.bytes > FOLDER_LIMIT_BYTES:
        largest = max(contents.known, key=lambda name: contents.known[name])
        raise RunError(
            f"{folder / largest}: makes this folder {contents.bytes / 2**30:,.1f} GiB, and more than "
            f"{FOLDER_LIMIT_BYTES / 2**30:g} GiB is not copied; look at what is in it"
        )


def same_content(one: Path, other: Path) -> bool:
    """Whether two folders are the same run or comparison, byte by byte; raw turns may have been dropped from either.

    Raises:
        RunError: One cannot be read.
    """
    here, there = _described(one), _described(other)
    return here == there


def _described(folder: Path) -> dict[str, FileRecord]:
    # Tables follow from the records, and only one of two copies may have been read since.
    names = [name for name in look_into(folder).known if name != DROPPED_FILE and not is_table(name)]
    found = {name: describe_file(folder / name) for name in names}
    if (dropped := read_dropped(folder)) is not None:
        found[TURNS_FILE] = dropped.turns
    return found


def _copy_file(source: Path, target: Path) -> None:
    """Copy one plain file; a link that has come to its place meanwhile is refused."""
    try:
        stream = open_plain(source, follow=False)
    except OSError as error:
        raise RunError(f"{source}: cannot be read ({error.strerror}); mend its permissions") from None
    with stream:
        try:
            target.parent.mkdir(exist_ok=True)
            size = 0
            with target.open("xb") as copy:
                while chunk := stream.read(_CHUNK_BYTES):
                    size += len(chunk)
                    if size > FOLDER_LIMIT_BYTES:
                        raise RunError(f"{source}: has grown while it was copied; try again")
                    copy.write(chunk)
        except OSError as error:
            raise unwritable(target, error) from None


def in_order(names: Iterable[str]) -> list[str]:
    """Files in the order in which they may appear: what makes a folder a finished one comes last."""
    last = (FINISHED_FILE, COMPARISON_FILE)
    return sorted(names, key=lambda name: (last.index(name) if name in last else -1, name))
