"""Comparison or run -> Markdown as GitHub shows it to readers who have none of the folders.

No path in a comment or a summary names a machine.
"""

import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any

from harness.records.comparison import Comparison, Row, SideFacts
from harness.report import form_of, render
from harness.report.markdown import COMMENT, size_bytes, to_markdown
from harness.report.page import Picture
from harness.report.pages import Links, View
from harness.report.run_report import Report

# "$GITHUB_STEP_SUMMARY upload aborted, supports content up to a size of 1024k": of one step; nothing is shown then.
STEP_SUMMARY_BYTES = 1_048_576


def render_comment(source: Comparison | Report, *, pictures: Sequence[Picture] = (), links: Links | None = None) -> str:
    """A comment that GitHub takes, however many rows there are and whatever texts are in them."""
    view = View(pictures=pictures, links=links or Links())
    shown: Comparison | Report = portable_comparison(source) if isinstance(source, Comparison) else source
    if isinstance(shown, Report):
        shown = replace(shown, comparison=portable_comparison(shown.comparison))
    return to_markdown(form_of(source).page(shown, view), COMMENT)


def render_step_summary(
    source: Comparison | Report, *, links: Links | None = None, room_bytes: int = STEP_SUMMARY_BYTES
) -> str:
    """What `$GITHUB_STEP_SUMMARY` has room for: the full report, else the comment; "" without room for either."""
    whole = render(source, "markdown", full=True)
    if size_bytes(whole) >= room_bytes:
        whole = render_comment(source, links=links)
    return whole if size_bytes(whole) < room_bytes else ""


# --- Without paths of this machine ---

# Of `harness compare`: where it keeps what it found, and how it prints that; neither is part of what is measured.
_LEFT_OUT = ("--results", "--format")
# Options whose value is a folder of results; so are the two sides, which have no option.
_FOLDERS = ("", "--within")
_MAY_BE_ABSOLUTE = re.compile(r"(?:^|[\s='\"])(?:/|\\|[A-Za-z]:[/\\])")


def portable_comparison(comparison: Comparison) -> Comparison:
    """The comparison with folders of the machine that made it by their names alone, in commands and labels."""
    selfcheck = comparison.machine.selfcheck
    if selfcheck is not None:
        selfcheck = replace(selfcheck, suite=_named(selfcheck.suite, "--suite"))
    return replace(
        comparison,
        base=_portable_side(comparison.base),
        head=_portable_side(comparison.head),
        machine=replace(comparison.machine, selfcheck=selfcheck),
        rows=tuple(_portable_row(row) if row.repro else row for row in comparison.rows),
        hosts=tuple(replace(host, environment=_environment(host.environment)) for host in comparison.hosts),
        command=tuple(portable(comparison.command)),
    )


def _environment(environment: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    checked = environment.get("selfcheck") or {}
    named = {"selfcheck": {**checked, "suite": _named(str(checked.get("suite", "")), "--suite")}} if checked else {}
    return environment | named


def portable(words: Sequence[str]) -> list[str]:
    """A command line without absolute paths: runs are below results/ wherever somebody has them."""
    kept: list[str] = []
    option = ""  # that the word belongs to
    for word in words:
        name, equals, value = word.partition("=") if word.startswith("--") else (option, "", word)
        if name not in _LEFT_OUT:
            kept.append(f"{name}={_named(value, name)}" if equals else _named(word, option))
        option = word if word.startswith("--") and not equals else ""
    return kept


def _portable_row(row: Row) -> Row:
    first, *rest = row.repro
    if not _MAY_BE_ABSOLUTE.search(first):
        return row
    try:
        words = shlex.split(first)
    except ValueError:  # nobody's command line
        return row
    return replace(row, repro=(shlex.join(portable(words)), *rest)) if any(map(_is_absolute, words)) else row


def _portable_side(side: SideFacts) -> SideFacts:
    return replace(side, label=_named(side.label, ""), suite=_named(side.suite, "--suite"))


def _named(path: str, option: str) -> str:
    """The name of an absolute path, below results/ where an option's value is a folder there; else the word itself."""
    if not _is_absolute(path):
        return path
    pure = PureWindowsPath(path) if PureWindowsPath(path).is_absolute() else PurePosixPath(path)
    return f"{'results/' if option in _FOLDERS else ''}{pure.name or path}"


def _is_absolute(text: str) -> bool:
    return PurePosixPath(text).is_absolute() or PureWindowsPath(text).is_absolute()
