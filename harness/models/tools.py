"""Running one of IREE's tools on a model's file, and saying in one sentence why it failed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from harness import process
from harness.errors import CaseError, SuiteError

_TAIL_LINES = 20
_LINE_CHARACTERS = 300
_RUNTIME_SOURCE = re.compile(r"^\S+\.(?:c|cc|h):\d+: ")


def run_tool(
    command: Sequence[str | Path], *, cwd: Path, limits: process.Limits, complaint: str, remedy: str
) -> process.Finished:
    """Run a tool to its successful end.

    Args:
        complaint: How the error's sentence starts: `[models.net] onnx: net.onnx cannot be imported`.
        remedy: How it ends: `check the file`.

    Raises:
        CaseError: The tool failed, was stopped by a limit, or cannot be started (stage `model`).
    """
    try:
        finished = process.run([str(part) for part in command], cwd=cwd, limits=limits)
    except OSError as error:
        raise CaseError("model", f"{complaint}: {command[0]} cannot be started ({error.strerror}); {remedy}") from None
    if finished.ok:
        return finished
    ending = finished.how_it_ended(limits)
    reason = ending if finished.limit is not None else _reason(finished.stderr) or ending
    raise CaseError("model", f"{complaint}: {reason}; {remedy}", stderr=_tail(finished.stderr))


def require_file(path: Path, suffixes: Sequence[str], where: str) -> None:
    """Refuse a path that is not a file of one of these endings, and an empty file.

    Raises:
        SuiteError: There is no such file, it cannot be read, or its name ends otherwise.
        CaseError: The file is empty (stage `model`).
    """
    if not path.is_file():
        raise SuiteError(f"{where}: there is no file {path}; check the path")
    if path.suffix.lower() not in suffixes:
        raise SuiteError(f"{where}: {path} does not end in {' or '.join(suffixes)}; name a file that does")
    try:
        with path.open("rb") as file:
            is_empty = not file.read(1)
    except OSError as error:
        raise SuiteError(f"{where}: {path} cannot be read ({error.strerror}); check its permissions") from None
    if is_empty:
        raise CaseError("model", f"{where}: {path} is empty; write it again")


def _reason(stderr: str) -> str:
    """The line that says why: the first with `error:`, else the last one, as Python's tracebacks have it."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    if not lines:
        return ""
    chosen = next((line for line in lines if "error:" in line), lines[-1])
    return _RUNTIME_SOURCE.sub("", chosen)[:_LINE_CHARACTERS].rstrip(".;")


def _tail(stderr: str) -> str:
    """The last lines, each cut short: diagnostics repeat the offending line, which may hold a whole weight."""
    return "\n".join(line[:_LINE_CHARACTERS] for line in stderr.splitlines()[-_TAIL_LINES:])
