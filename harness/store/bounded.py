"""Reading a run's files without trusting how long a line is: nothing larger than a limit ever comes into memory."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from harness.errors import RunError

# A record of the largest suites that were run takes some kilobytes; a header of 100,000 cases takes about 150 MB.
LINE_LIMIT_BYTES = 64 * 2**20
DOCUMENT_LIMIT_BYTES = 256 * 2**20


def read_lines(file: Path, limit_bytes: int = LINE_LIMIT_BYTES) -> Iterator[bytes]:
    r"""The lines of a file without their ends; what follows the last `\n` was cut short and is left out.

    Args:
        limit_bytes: Of one line.

    Raises:
        RunError: The file cannot be read, is no plain file, or has a longer line; the message names file and line.
    """
    number = 0
    try:
        with open_plain(file) as stream:
            while line := stream.readline(limit_bytes + 1):
                number += 1
                if line.endswith(b"\n"):
                    yield line[:-1]
                elif len(line) > limit_bytes:
                    raise RunError(
                        f"{file}: line {number} is longer than {_mebibytes(limit_bytes)}, which no record is; "
                        "take the file from a backup"
                    )
    except OSError as error:
        raise _unreadable(file, error) from None


def read_document(file: Path, limit_bytes: int = DOCUMENT_LIMIT_BYTES) -> bytes:
    """All of a file that is one document, such as run.json.

    Raises:
        RunError: The file cannot be read, is no plain file, or is larger.
    """
    try:
        with open_plain(file) as stream:
            content = stream.read(limit_bytes + 1)
    except OSError as error:
        raise _unreadable(file, error) from None
    if len(content) > limit_bytes:
        raise RunError(
            f"{file}: is larger than {_mebibytes(limit_bytes)}, which no such file is; take it from a backup"
        )
    return content


def ends_in_newline(file: Path) -> bool:
    """Whether a file's last line is whole; an empty file has none that is not.

    Raises:
        RunError: The file cannot be read.
    """
    try:
        with open_plain(file) as stream:
            size = stream.seek(0, os.SEEK_END)
            stream.seek(max(size - 1, 0))
            return stream.read(1) in (b"", b"\n")
    except OSError as error:
        raise _unreadable(file, error) from None


def open_plain(file: Path, *, follow: bool = True) -> BinaryIO:
    """Open a plain file to read it; a named pipe would have the reader wait for ever.

    Args:
        follow: Whether a symbolic link is followed.

    Raises:
        OSError: It cannot be read.
        RunError: It is something else, such as a pipe or a device.
    """
    # Not there on Windows, which has neither such pipes nor such links.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    handle = os.open(file, flags | (0 if follow else getattr(os, "O_NOFOLLOW", 0)))
    stream = os.fdopen(handle, "rb") if stat.S_ISREG(os.fstat(handle).st_mode) else None
    if stream is None:
        os.close(handle)
        raise RunError(f"{file}: is no plain file; take it away, or take the file from a backup")
    return stream


def _mebibytes(limit_bytes: int) -> str:
    return f"{limit_bytes / 2**20:g} MiB"


def _unreadable(file: Path, error: OSError) -> RunError:
    return RunError(f"{file}: cannot be read ({error.strerror}); mend its permissions")
