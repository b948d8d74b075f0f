"""Which command lines of an artifact may stand in a comment.

A reader copies them into a shell because the comment has them. They were put together by a job that ran a pull
request's code, so only such are kept as the harness writes: its own tools, each word quoted, nothing that a shell would
act on.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from dataclasses import replace

from harness.compare.values import Comparison
from harness.plan.flags import runs_code
from harness.report.values import Report
from harness.report.words import one_line

_TOOLS = ("harness", "iree-benchmark-module", "iree-compile", "iree-opt", "iree-run-module")
# Variables that a device needs, as in `VK_ICD_FILENAMES=/usr/share/... iree-run-module`; nothing that loads code.
_VARIABLE = re.compile(r"(?:VK_ICD_FILENAMES|VK_DRIVER_FILES)=[A-Za-z0-9_./:-]+")


def with_known_commands(comparison: Comparison) -> Comparison:
    """The comparison with those of its commands that repeat something and can do nothing else."""
    return replace(
        comparison,
        rows=tuple(replace(row, repro=_known(row.repro)) if row.repro else row for row in comparison.rows),
        command=comparison.command if comparison.command[:1] == ("harness",) else (),
    )


def report_with_known_commands(report: Report) -> Report:
    """The same of a run's report."""
    return replace(
        report,
        facts=replace(report.facts, command=report.facts.command if report.facts.command[:1] == ("harness",) else ()),
        sections=tuple(
            replace(section, rows=tuple(replace(row, repro=_known(row.repro)) for row in section.rows))
            for section in report.sections
        ),
    )


def _known(lines: Iterable[str]) -> tuple[str, ...]:
    return tuple(line for line in lines if is_known(line))


def is_known(line: str) -> bool:
    """Whether a line is a comment, or one of the harness's or IREE's tools with words that a shell leaves alone."""
    if line != one_line(line):
        return False
    if line.startswith("# "):
        return True
    try:
        words = shlex.split(line)
    except ValueError:
        return False
    while words and _VARIABLE.fullmatch(words[0]):
        line = line.removeprefix(words.pop(0)).lstrip(" ")
    if not words or words[0] not in _TOOLS or any(runs_code(word) for word in words):
        return False
    return shlex.join(words) == line
