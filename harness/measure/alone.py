"""One harness at a time measures on a machine: two would slow each other on the same core without a word."""

import contextlib
import getpass
import os
import shlex
import sys
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from harness.cache import read_memo, write_memo
from harness.scratch import shared_temporary_folder
from harness.text import shown


@contextlib.contextmanager
def only_one_measures(note: Callable[[str], None], *, wait: bool = True) -> Iterator[None]:
    """Wait until no other harness of this user measures here; the lock goes with the process that holds it."""
    path = shared_temporary_folder() / f"iree-harness-{_user()}-measures.lock"
    lock, holder = FileLock(path), path.with_suffix(".json")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        if not wait:
            note(f"{_who(holder)}; this one measures beside it, so figures of both are disturbed")
            yield
            return
        note(f"{_who(holder)}; waiting for it (--no-wait measures beside it, which disturbs both)")
        lock.acquire()
    try:
        now = datetime.now().astimezone().isoformat(timespec="seconds")
        write_memo(holder, {"pid": os.getpid(), "command": shlex.join(["harness", *sys.argv[1:]]), "since": now})
        yield
    finally:
        holder.unlink(missing_ok=True)
        lock.release()


def _who(holder: Path) -> str:
    """`Another harness is measuring on this machine since 08:31:02: pid 4711, harness run suites/esrgan.toml`."""
    sentence = "Another harness is measuring on this machine"
    known: Any = read_memo(holder)
    try:
        since = datetime.fromisoformat(known["since"]).strftime("%H:%M:%S")
        return f"{sentence} since {since}: pid {int(known['pid'])}, {shown(str(known['command']))}"
    except (KeyError, TypeError, ValueError):  # it has only just begun, or is of an older harness
        return sentence


def _user() -> str:
    """The user's name, or number where it has none, as in a container that is run under any number."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
