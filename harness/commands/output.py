"""What all commands share: where their text goes, and how much memory their children may take."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Literal

import psutil

from harness.errors import RunError

Format = Literal["terminal", "markdown", "json", "csv"]

_MEMORY_SHARE = 0.8


def tell(sentence: str) -> None:
    """Say something on stderr."""
    sys.stderr.write(f"{sentence}\n")


def tell_where(path: Path) -> None:
    """Say where a run is kept."""
    program = "harness" if shutil.which("harness") else os.path.relpath(sys.argv[0])
    sys.stderr.write(f"Kept in {path}; `{program} report {path} --format markdown` prints it for an issue.\n")


def memory_limit() -> int:
    """Bytes at which a compile is stopped where nobody said otherwise."""
    return int(psutil.virtual_memory().total * _MEMORY_SHARE)


def print_text(text: str, out: Path | None) -> None:
    """Write a report to a file, or to stdout.

    Raises:
        RunError: The file cannot be written.
    """
    if out is None:
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
        return
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise RunError(f"{out}: cannot be written ({error.strerror}); choose another file") from None
