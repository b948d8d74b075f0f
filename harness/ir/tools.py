"""Asking a toolchain's own Python about IR, and saying in one sentence why a tool failed on it."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.errors import CaseError
from harness.process import Finished, Limits
from harness.toolchain import Toolchain
from harness.toolchain.tools import COMPILE_MORE, error_lines, excerpt, run_tool

_CHILD = Path(__file__).with_name("child.py")
_LONGEST_REASON = 300
# By question: who answers it, what that is called, and what to do where it cannot be answered.
_READERS = {
    "entries": ("readers:entries", "the reader of functions", "report it as a defect of the harness"),
    "layouts": ("layouts:encoded_tensors", "the reader of layouts", "leave storage out"),
    "ops": ("readers:ops", "the counter of ops", "leave phases out"),
    "parts": ("readers:parts", "the reader of executables", "leave phases out"),
    "reduced": ("readers:reduced", "the reader of functions", "keep the entry function as the only public one"),
    "structured": ("operations:functions", "the reader of dispatches", "tune it without its dispatches"),
    "work": ("program:work", "the counter of arithmetic", "report it as a defect of the harness"),
}


class UnreadPhase(CaseError):
    """The toolchain cannot read back the IR that it wrote at a phase (stage `ir`)."""

    def __init__(self, phase: str, why: str, remedy: str) -> None:
        super().__init__("ir", f"the IR at phase {phase!r} cannot be read back ({why}); {remedy}")
        self.phase = phase
        self.why = why


def ask(
    question: str, files: Mapping[str, Path], where: str, *, toolchain: Toolchain, limits: Limits, **arguments: object
) -> dict[str, Any]:
    """Have a question about files of IR answered under the toolchain's own Python; see harness.ir.child."""
    answers_it, name, remedy = _READERS[question]
    paths = {phase: str(file.resolve()) for phase, file in files.items()}
    request = json.dumps({"answers": answers_it, "files": paths, "arguments": arguments})
    finished = run_tool("ir", name, [*toolchain.python_command, str(_CHILD), request], limits=limits)
    if not finished.ok:
        raise failure(name, finished, limits, where=where, remedy=remedy)
    answer: dict[str, Any] = json.loads(finished.stdout)
    if "unread" in answer:
        raise UnreadPhase(answer["unread"], _shortened(answer["why"]), remedy)
    answers: dict[str, Any] = answer.get("answers", answer)
    return answers


def failure(tool: str, finished: Finished, limits: Limits, *, where: str, remedy: str) -> CaseError:
    """The error of a tool that failed: `iree-opt exited with status 1 on x.mlir: expected ')'; take another phase`."""
    ended = "printed an error" if finished.ok else finished.how_it_ended(limits)
    if finished.limit is not None:
        message = f"{tool} {ended}{where}; {COMPILE_MORE[finished.limit]}"
    else:
        reason = _shortened(_reason(finished))
        message = f"{tool} {ended}{where}{f': {reason}' if reason else ''}; {remedy}"
    return CaseError("ir", message, stderr=excerpt(finished.stderr))


def _shortened(reason: str) -> str:
    """A diagnostic without what is too long of it: it may repeat an op with all its attributes."""
    return reason[:_LONGEST_REASON].rstrip(".;")


def _reason(finished: Finished) -> str:
    """The first error; where none is marked as one, what a tool says first, and Python last."""
    if errors := error_lines(finished.stderr):
        return errors[0]
    lines = [line.strip() for line in finished.stderr.splitlines() if line.strip()]
    if not lines or finished.returncode < 0:  # a crash begins with how to report it
        return ""
    return lines[-1 if lines[0].startswith("Traceback") else 0]
