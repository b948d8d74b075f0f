"""Which command lines of an artifact may stand in a comment.

A reader copies them into a shell because the comment has them. They were put together by a job that ran a pull
request's code, so only such are kept as `harness.github.words` finds harmless: the harness's own and IREE's, that
repeat what was measured in the folder where they are pasted.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from dataclasses import replace

from harness.github.words import are_harmless
from harness.records.comparison import Comparison
from harness.report.run_report import Report
from harness.text import one_line

# Drivers of a Vulkan device, where packages of a system put them.
_DRIVER = r"(?:/usr/share|/etc/vulkan)/[A-Za-z0-9_][A-Za-z0-9_.-]*(?:/[A-Za-z0-9_][A-Za-z0-9_.-]*)*"
_VARIABLE = re.compile(rf"(?:VK_ICD_FILENAMES|VK_DRIVER_FILES)={_DRIVER}(?::{_DRIVER})*")

# The comments that harness.compare.rows and harness.report.repro write, and no others.
_NO_MODULE = re.compile(r"# (?:base|head): (?:has no such case|was never compiled)")
_MODULE = re.compile(r"(# (?:base|head): (?:module [0-9a-f]{12}|no module))(?:, (.*))?")
_RELEASE = r"[0-9][0-9A-Za-z.+-]{0,60}"
_TOOLS_OF = re.compile(
    rf"# the tools below are those of IREE ({_RELEASE}): pip install "
    r"iree-base-compiler==([^ ]+) iree-base-runtime==([^ ]+)"
)
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def with_known_commands(comparison: Comparison) -> Comparison:
    """The comparison as a comment has it, with those of its commands that repeat something and can do nothing else.

    Its suite and its name become words of commands too; such as would be options or other folders do not.
    """
    from harness.report.github.portable import portable_comparison
    from harness.report.verdicts import is_relevant

    elsewhere = portable_comparison(comparison)  # first: it takes paths of the machine out, and so changes commands
    return replace(
        elsewhere,
        id=_id(elsewhere.id),
        base=replace(elsewhere.base, suite=_argument(elsewhere.base.suite)),
        head=replace(elsewhere.head, suite=_argument(elsewhere.head.suite)),
        # The commands of rows that say nothing are not in a comment, and ten thousand would take seconds to look at.
        rows=tuple(
            replace(row, repro=_known(row.repro) if is_relevant(row) else ()) if row.repro else row
            for row in elsewhere.rows
        ),
        command=_whole(elsewhere.command),
    )


def report_with_known_commands(report: Report) -> Report:
    """The same of a run's report."""
    facts = report.facts
    # Where the command names releases, a step names those of the rows.
    is_plain = not any(version.startswith("-") for section in report.sections for version in section.toolchains)
    command = _whole(facts.command) if is_plain else ()
    return replace(
        report,
        facts=replace(facts, id=_id(facts.id), suite=_argument(facts.suite), command=command),
        sections=tuple(
            replace(section, rows=tuple(replace(row, repro=_known(row.repro)) for row in section.rows))
            for section in report.sections
        ),
    )


def is_known(line: str) -> bool:
    """Whether the harness writes such a line, and whoever pastes it only measures again.

    It is one of the harness's comments; or one of its commands, or of IREE's tools, with words that a shell leaves
    alone, that load no code, and that write nothing but a module or an exported model below the reader's folder.
    """
    return _kept(line) == line


def _known(lines: Iterable[str]) -> tuple[str, ...]:
    kept = (_kept(line) for line in lines)
    return tuple(line for line in kept if line is not None)


def _kept(line: str) -> str | None:
    """The line, or as much of it as may stand; None: nothing."""
    if line != one_line(line) or not line.isprintable():
        return None
    if not line.startswith("#"):
        return line if _is_command(line) else None
    if _NO_MODULE.fullmatch(line):
        return line
    if (tools := _TOOLS_OF.fullmatch(line)) is not None:
        return line if tools[1] == tools[2] == tools[3] else None
    if (module := _MODULE.fullmatch(line)) is not None:
        compiled = module[2] or ""
        return line if compiled.startswith("iree-compile ") and _is_command(compiled) else module[1]
    return None


def _is_command(line: str) -> bool:
    try:
        words = shlex.split(line)
    except ValueError:
        return False
    while words and _VARIABLE.fullmatch(words[0]):
        line = line.removeprefix(words.pop(0)).lstrip(" ")
    return are_harmless(words) and shlex.join(words) == line


def _whole(command: tuple[str, ...]) -> tuple[str, ...]:
    """A command that steps are made from; none of it where a line of it would not be known."""
    return command if command[:1] == ("harness",) and is_known(shlex.join(command)) else ()


def _argument(path: str) -> str:
    """A path that no command takes for an option or a file of options."""
    return f"./{path}" if path.startswith(("-", "@")) else path


def _id(name: str) -> str:
    """The name of a folder in results/; none where it would lead elsewhere."""
    return name if _ID.fullmatch(name) else ""
