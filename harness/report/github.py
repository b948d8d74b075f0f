"""Comparison or run -> what GitHub shows, for readers who have none of the folders: no path names a machine."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any

from harness.records.comparison import Comparison, Row, SideFacts
from harness.report import markdown_page, render
from harness.report.markdown import COMMENT, Limits, size_bytes, to_markdown
from harness.report.page import Name, Page, Picture
from harness.report.pages import Links, ReportContext
from harness.report.run_report import Report

# "$GITHUB_STEP_SUMMARY upload aborted, supports content up to a size of 1024k": of one step; nothing is shown then.
STEP_SUMMARY_BYTES = 1_048_576
_SUMMARY_LEVELS = (100_000, 3_000, 1_000, 300, 100, 30, 0)


def render_comment(source: Comparison | Report, *, pictures: Sequence[Picture] = (), links: Links | None = None) -> str:
    """A comment that GitHub takes, however many rows there are and whatever texts are in them."""
    return to_markdown(_page(source, _around(source, pictures, links)), COMMENT)


def render_step_summary(
    source: Comparison | Report,
    *,
    pictures: Sequence[Picture] = (),
    links: Links | None = None,
    limit_bytes: int = STEP_SUMMARY_BYTES,
) -> str:
    """What `$GITHUB_STEP_SUMMARY` takes: the full report where there is room for it, else as much as there is."""
    whole = render(source, "markdown", full=True)
    if size_bytes(whole) < limit_bytes and not pictures:
        return whole
    around = replace(_around(source, pictures, links), marked=False, levels=_SUMMARY_LEVELS)
    return to_markdown(_page(source, around), Limits(page_bytes=limit_bytes - 1))


def _around(source: Comparison | Report, pictures: Sequence[Picture], links: Links | None) -> ReportContext:
    suite = source.head.suite if isinstance(source, Comparison) else source.facts.suite
    title = ("Abbreviated Benchmark Summary of ", Name(suite))
    return ReportContext(title=title, pictures=pictures, links=links or Links())


def _page(source: Comparison | Report, around: ReportContext) -> Page:
    portable = portable_comparison(source) if isinstance(source, Comparison) else portable_report(source)
    return markdown_page(portable, around, full=False)


# --- Without paths of this machine ---

# Of `harness compare`: where it keeps what it found, and how it prints that; neither is part of what is measured.
_LEFT_OUT = ("--results", "--format")
# Options whose value is a folder of results; so are the two sides, which have no option.
_FOLDER = "--within"
_MAY_BE_ABSOLUTE = re.compile(r"(?:^|[\s='\"])(?:/|\\|[A-Za-z]:[/\\])")


def portable_comparison(comparison: Comparison) -> Comparison:
    """The comparison with folders of the machine that made it by their names alone, in commands and labels."""
    selfcheck = comparison.machine.selfcheck
    if selfcheck is not None and _is_absolute(selfcheck.suite):
        selfcheck = replace(selfcheck, suite=_last_part(selfcheck.suite))
    return replace(
        comparison,
        base=_portable_side(comparison.base),
        head=_portable_side(comparison.head),
        machine=replace(comparison.machine, selfcheck=selfcheck),
        rows=tuple(_portable_row(row) if row.repro else row for row in comparison.rows),
        hosts=tuple(replace(host, environment=_environment(host.environment)) for host in comparison.hosts),
        command=tuple(portable(comparison.command)),
    )


def portable_report(report: Report) -> Report:
    """The report with the suite that its machines were checked with by its file's name alone."""
    facts = report.facts
    hosts = {host: _environment(environment) for host, environment in facts.hosts.items()}
    return replace(report, facts=replace(facts, environment=_environment(facts.environment), hosts=hosts))


def _environment(environment: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    selfcheck = environment.get("selfcheck") or {}
    if not _is_absolute(str(selfcheck.get("suite", ""))):
        return environment
    return {**environment, "selfcheck": {**selfcheck, "suite": _last_part(str(selfcheck["suite"]))}}


def portable(words: Sequence[str]) -> list[str]:
    """A command line without absolute paths: runs are below results/ wherever somebody has them.

    >>> portable(["harness", "compare", "/a/old", "/a/new", "--suite", "/src/a.toml", "--results", "/a"])
    ['harness', 'compare', 'results/old', 'results/new', '--suite', 'a.toml']
    """
    kept: list[str] = []
    option = ""  # that the word belongs to
    for word in words:
        name, equals, value = word.partition("=")
        if option in _LEFT_OUT:
            option = ""
        elif name in _LEFT_OUT:
            option = "" if equals else name
        elif name.startswith("--") and equals and _is_absolute(value):
            kept.append(f"{name}={_named(value, name)}")
            option = ""
        else:
            kept.append(_named(word, option) if _is_absolute(word) else word)
            option = word if word.startswith("--") else ""
    return kept


def _portable_row(row: Row) -> Row:
    """The row with its command; the lines after it say what was compiled."""
    first, *rest = row.repro
    if not _MAY_BE_ABSOLUTE.search(first):
        return row
    try:
        words = shlex.split(first)
    except ValueError:  # nobody's command line
        return row
    if not any(map(_is_absolute, words)):
        return row
    return replace(row, repro=(shlex.join(portable(words)), *rest))


def _portable_side(side: SideFacts) -> SideFacts:
    label, suite = side.label, side.suite
    return replace(
        side,
        label=_named(label, "") if _is_absolute(label) else label,
        suite=_last_part(suite) if _is_absolute(suite) else suite,
    )


def _named(path: str, option: str) -> str:
    if option not in ("", _FOLDER):
        return _last_part(path)
    return f"results/{_last_part(path)}"


def _is_absolute(text: str) -> bool:
    return PurePosixPath(text).is_absolute() or PureWindowsPath(text).is_absolute()


def _last_part(path: str) -> str:
    return (PureWindowsPath(path) if PureWindowsPath(path).is_absolute() else PurePosixPath(path)).name or path
