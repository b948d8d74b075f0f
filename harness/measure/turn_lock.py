"""One harness at a time measures on a machine: two would slow each other on the same core without a word."""

from __future__ import annotations

import contextlib
import getpass
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from filelock import FileLock, Timeout


@contextlib.contextmanager
def only_one_measures(on_wait: Callable[[], None]) -> Iterator[None]:
    """Wait until no other harness of this user measures on this machine.

    The lock goes with the process that holds it, also when that is killed.

    Args:
        on_wait: Called once if another one is measuring now.
    """
    lock = FileLock(Path(tempfile.gettempdir()) / f"iree-harness-{getpass.getuser()}-measures.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        on_wait()
        lock.acquire()
    try:
        yield
    finally:
        lock.release()
