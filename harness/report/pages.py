"""What pages of all kinds have around their figures: what to do, links, where the rest is, and tables of facts."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from harness.records.comparison import SideFacts
from harness.report.markdown import web_address
from harness.report.page import Column, Fold, Inline, Link, Name, Paragraph, Part, Picture, Sentence, Step, Steps, Table
from harness.report.units import COMMIT_DIGITS, given_as
from harness.text import plural

_COMMIT = re.compile(r"[0-9a-f]{7,64}")
_LONGEST_COMMAND = 2_000
_LONGEST_LINE = 400


@dataclass(frozen=True, kw_only=True)
class Links:
    """Where more is to be read; all http or https, "" where there is nothing."""

    run_url: str = ""  # Of the workflow run that measured
    artifact_url: str = ""  # Of the artifact with the full report
    dashboard_url: str = ""  # Of the dashboard of the whole history
    head_commit_url: str = ""  # Of the commit that was measured; its last part is the commit


@dataclass(frozen=True, kw_only=True)
class View:
    """How a result is shown."""

    terminal: bool = False  # Whether on a terminal, and not as Markdown
    full: bool = False  # Whether with every row of every list, and all commands
    results: str = ""  # The folder that holds it, as whoever reads of it names it; "": not known
    width: int = 96  # Columns that a drawing may take
    pictures: Sequence[Picture] = ()  # Published elsewhere, the most important one first
    links: Links = field(default_factory=Links)

    def folder(self, name: str) -> str:
        """Of a result: `results/20261121-1-esrgan`."""
        return f"{self.results or 'results'}/{name}"

    def title(self, suite: str) -> Sentence:
        """The heading of a page of a suite's figures."""
        return (f"{'Full' if self.full else 'Abbreviated'} Benchmark Summary of ", Name(suite))


def opening(subject: Sequence[Inline], steps: Sequence[Step], view: View) -> list[Part]:
    """What was measured and what to do next; a terminal has that at its end."""
    return [Paragraph(("@ ", *subject)), *([] if view.terminal else advice(steps))]


def advice(steps: Sequence[Step]) -> list[Part]:
    """What to do next."""
    return [Steps(steps) if steps else Paragraph("No action needed.")]


def foot(links: Links, command: str) -> list[Part]:
    """Where the rest is."""
    parts: list[Part] = []
    if command and len(command) <= _LONGEST_COMMAND and not web_address(links.artifact_url):
        parts.append(
            Paragraph(("The full report, with every row, is printed where it was measured by ", Name(command)))
        )
    titles = (("Full report", links.artifact_url), ("Workflow run", links.run_url), ("Dashboard", links.dashboard_url))
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
    return Link(commit[:COMMIT_DIGITS], url, code=True)


def pictures_of(view: View, *, folded: bool) -> list[Part]:
    """All pictures; the first is there at once unless `folded`, the others behind their titles."""
    published = [picture for picture in view.pictures if web_address(picture.light_url)]
    return [Fold(each.title, (each,)) if folded or place else each for place, each in enumerate(published)]


def first_lines(lines: Sequence[str], most: int | None) -> list[str]:
    """The first of the lines that differ, as far as a reader takes them in; None: all lines."""
    shown = [line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]} ..." for line in lines[:most]]
    if len(shown) < len(lines):
        shown.append(f"... {plural(len(lines) - len(shown), 'more line')}; --format json has all")
    return shown


def sides_table(base: SideFacts, head: SideFacts) -> Table:
    """Where both sides are from."""
    names = ("given as", "run", "suite", "IREE", "run on")
    columns = [Column("", names)]
    for title, side in (("base", base), ("head", head)):
        run, toolchains = f"{side.run} of {side.started}", ", ".join(side.toolchains)
        columns.append(Column(title, (given_as(side), run, side.suite, toolchains, side.machine)))
    return Table(columns=columns)
