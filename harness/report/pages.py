"""Report -> page: the one shape that runs and comparisons share, and what a page on GitHub has around its figures.

From top to bottom: the verdict, what was measured, what to do, notes, the lists of each kind of report (run_page and
comparison_page have them), and where the rest is.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.records.comparison import SideFacts
from harness.report.data import plain_value
from harness.report.markdown import web_address
from harness.report.names import given_as
from harness.report.page import (
    Choice,
    Column,
    Fold,
    Inline,
    Link,
    Name,
    Paragraph,
    Part,
    Picture,
    Sentence,
    Step,
    Steps,
    Table,
)
from harness.text import plural

_COMMIT = re.compile(r"[0-9a-f]{7,64}")
_COMMIT_DIGITS = 10
_MOST_PICTURES = 12
_LONGEST_COMMAND = 2_000
_LONGEST_LINE = 400


@dataclass(frozen=True, kw_only=True)
class Links:
    """Where more is to be read; all http or https, "" where there is nothing."""

    run_url: str = ""  # Of the workflow run that measured
    artifact_url: str = ""  # Of the artifact with the full report
    dashboard_url: str = ""  # Of the dashboard of the whole history
    base_commit_url: str = ""  # Of the commit that was compared with; its last part is the commit, as GitHub has it
    head_commit_url: str = ""  # Of the commit that was measured


@dataclass(frozen=True, kw_only=True)
class ReportContext:
    """What a page has around its figures."""

    title: Sentence
    pictures: Sequence[Picture] = ()  # Published elsewhere, the most important one first
    links: Links = field(default_factory=Links)


def opening(subject: Sequence[Inline], steps: Sequence[Step], notes: Sequence[Part]) -> list[Part]:
    """What was measured, what to do next, and what bears on all figures."""
    advice = Steps(steps) if steps else Paragraph("No action needed.")
    return [Paragraph(("@ ", *subject)), Choice("what to do", 0, [advice]), Choice("notes", 0, notes)]


def foot(links: Links, command: str, everything: str, left_out: Sequence[str]) -> list[Part]:
    """Where the rest is: what the full report has, where the command that prints it runs, and what is left out here."""
    parts: list[Part] = []
    if left_out:
        report = Link("the full report", links.artifact_url)
        parts.append(Paragraph(("Left out here for length, and in ", report, f": {', '.join(left_out)}.")))
    if command and len(command) <= _LONGEST_COMMAND and not web_address(links.artifact_url):
        parts.append(Paragraph((f"The full report, with {everything} by ", Name(command))))
    titles = (
        ("Full report", links.artifact_url),
        ("Workflow run", links.run_url),
        ("Dashboard", links.dashboard_url),
    )
    pieces: list[Inline] = []
    for title, url in titles:
        if web_address(url):
            pieces += [" · " if pieces else "For more information: ", Link(title, url)]
    return [*parts, *([Paragraph(tuple(pieces))] if pieces else [])]


def commit_name(url: str) -> Inline | None:
    """A link to a commit by its first digits; None where the address names none."""
    commit = url.rstrip("/").rpartition("/")[2]
    if not web_address(url) or not _COMMIT.fullmatch(commit):
        return None
    return Link(commit[:_COMMIT_DIGITS], url, code=True)


def pictures_of(around: ReportContext, *, folded: bool) -> list[Part]:
    """All pictures; the first is there at once unless `folded`, the others behind their titles."""
    published = [picture for picture in around.pictures[:_MOST_PICTURES] if web_address(picture.light_url)]
    parts: list[Part] = []
    for picture in published:
        parts.append(Fold(picture.title, (picture,)) if folded or parts else picture)
    return parts


def first_lines(lines: Sequence[str], most: int | None) -> list[str]:
    """The first of the lines that differ, as far as a reader takes them in; None: all lines."""
    shown = [line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]} ..." for line in lines[:most]]
    if len(shown) < len(lines):
        shown.append(f"... {plural(len(lines) - len(shown), 'more line')}; --format json has all")
    return shown


def values_table(title: str, values: Mapping[str, Any]) -> Table:
    """Settings or facts of any kind by name."""
    texts = [
        value if isinstance(value, str) else json.dumps(plain_value(value), ensure_ascii=False)
        for value in values.values()
    ]
    return Table(columns=(Column(title, list(values), kind="name"), Column("Value", texts)))


def sides_table(base: SideFacts, head: SideFacts) -> Table:
    """Where both sides are from."""
    columns = [
        (
            given_as(side, whole=True),
            f"{side.run} of {side.started}",
            side.suite,
            ", ".join(side.toolchains),
            side.machine,
        )
        for side in (base, head)
    ]
    return Table(
        columns=(
            Column("", ("given as", "run", "suite", "IREE", "run on")),
            Column("base", columns[0]),
            Column("head", columns[1]),
        )
    )
