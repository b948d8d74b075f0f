"""stdout and stderr as a command may use them, whatever the shell made of them.

A report that cannot be printed is no reason to lose a run, or to end with the status of a regression. So what goes
wrong with stdout is remembered, and said when the command has done its work; stderr, which only tells people, fails
silently.
"""

import os
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, TextIO, cast


class Stream:
    """stdout or stderr with all its attributes; an error is remembered, and what comes after it goes nowhere."""

    def __init__(self, stream: TextIO, *, is_report: bool) -> None:
        """Of a report, a reader that has gone is an error at once."""
        self._stream, self._is_report = stream, is_report
        self.error: OSError | None = None  # Why not all that was written is there
        if is_report and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write a text, unless an earlier one could not be written."""
        self._try(partial(self._stream.write, text))
        return len(text)

    def flush(self) -> None:
        """Hand on what is buffered."""
        self._try(self._stream.flush)

    def _try(self, action: Callable[[], object]) -> None:
        if self.error is not None:
            return
        try:
            action()
        except OSError as error:
            if self._is_report and isinstance(error, BrokenPipeError):
                raise
            self.error = error
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())  # what is buffered is flushed at the end


def prepare_streams() -> None:
    """Make stdin, stdout and stderr whole: a file that is opened later must not get the number of a closed one."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            # Open for reading, so that whoever writes a report to a closed stdout is told.
            opened = os.open(os.devnull, os.O_WRONLY if name == "stderr" else os.O_RDONLY)
            os.dup2(opened, number)  # which children inherit
            if opened != number:
                os.close(opened)
        if getattr(sys, name) is None:
            mode: Literal["r", "w"] = "r" if name == "stdin" else "w"
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))
    sys.stdout = cast("TextIO", Stream(sys.stdout, is_report=True))
    sys.stderr = cast("TextIO", Stream(sys.stderr, is_report=False))


def what_was_lost() -> str:
    """A sentence about what stdout did not take; "" where it took all."""
    error = getattr(sys.stdout, "error", None)
    if error is None:
        return ""
    return f"stdout: cannot be written ({error.strerror}), so not all was printed; what was measured is kept"
