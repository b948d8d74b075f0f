"""What became of each suite of a list: the table that closes its run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from harness.errors import ExitCode
from harness.report.columns import Column
from harness.report.markdown_text import escape, table
from harness.report.terminal_text import drawn, empty_table
from harness.report.values import Summary
from harness.text import one_line

# Fields of a summary by the heads of their columns; those that are always there, and those that are where it matters.
_ALWAYS = {"measured": "measured", "failed": "failed", "skipped": "skipped"}
_SOMETIMES = {
    "same": "same module",
    "missing": "missing",
    "expected_failures": "failed as expected",
    "works_again": "works again",
}


@dataclass(frozen=True, kw_only=True)
class SuiteOutcome:
    """What became of one suite of a list.

    Attributes:
        status: The exit status that it would have alone.
        run: Its run's directory; None: it was not run, and `note` says why in a sentence that names it.
        summary: Of its run.
    """

    suite: Path
    status: ExitCode
    run: Path | None = None
    summary: Summary | None = None
    note: str = ""


def outcome_record(outcome: SuiteOutcome) -> dict[str, Any]:
    """For other programs."""
    return {
        "suite": outcome.suite.as_posix(),
        "run": outcome.run.as_posix() if outcome.run is not None else None,
        "exit_status": int(outcome.status),
        "summary": asdict(outcome.summary) if outcome.summary is not None else None,
        "note": outcome.note or None,
    }


def outcomes_terminal(outcomes: Sequence[SuiteOutcome], *, width: int, color: bool) -> str:
    """A table of `width` columns, and under it why suites were not run."""
    columns = _columns(outcomes)

    def draw(console: Console) -> None:
        drawing = empty_table(columns)
        for index, one in enumerate(outcomes):
            style = "" if one.status == ExitCode.OK else "red"
            drawing.add_row(*(Text(column.cells[index], style=style) for column in columns))
        console.print(drawing)
        for one in outcomes:
            if one.note:
                console.print(Text(one_line(one.note)))

    return drawn(draw, width=width, color=color)


def outcomes_markdown(outcomes: Sequence[SuiteOutcome]) -> str:
    """The same in Markdown."""
    columns = _columns(outcomes)
    rows = [[escape(column.cells[index]) for column in columns] for index in range(len(outcomes))]
    parts = ["### Suites", table([column.head for column in columns], rows, numbers=[one.number for one in columns])]
    parts.append("\n".join(f"- {escape(one.note)}" for one in outcomes if one.note))
    return "\n\n".join(part for part in parts if part) + "\n"


def _columns(outcomes: Sequence[SuiteOutcome]) -> list[Column]:
    columns = [Column(title="suite", cells=tuple(one.suite.as_posix() for one in outcomes), number=False)]
    for field, title in (_ALWAYS | _SOMETIMES).items():
        counts = [getattr(one.summary, field) if one.summary is not None else None for one in outcomes]
        if field in _ALWAYS or any(counts):
            cells = tuple("" if count is None else str(count) for count in counts)
            columns.append(Column(title=title, cells=cells))
    columns.append(Column(title="exit status", cells=tuple(str(int(one.status)) for one in outcomes)))
    runs = tuple(one.run.as_posix() if one.run is not None else "not run" for one in outcomes)
    return [*columns, Column(title="run", cells=runs, number=False)]
