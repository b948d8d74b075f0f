"""What became of each suite of a list: the table that closes its run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from harness.errors import ExitCode
from harness.report.markdown import to_markdown
from harness.report.page import Bullets, Column, Page, Table, Tone
from harness.report.run_report import Summary
from harness.report.terminal import to_terminal

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
    """What became of one suite of a list."""

    suite: Path
    status: ExitCode  # The exit status that it would have alone
    # Its run's directory; None: it was not run, and `note` says why in a sentence that names it
    run: Path | None = None
    summary: Summary | None = None  # Of its run
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
    return to_terminal(_page(outcomes), width=width, color=color)


def outcomes_markdown(outcomes: Sequence[SuiteOutcome]) -> str:
    """The same in Markdown."""
    return to_markdown(_page(outcomes))


def _page(outcomes: Sequence[SuiteOutcome]) -> Page:
    columns = [Column("suite", [outcome.suite.as_posix() for outcome in outcomes])]
    for field, title in (_ALWAYS | _SOMETIMES).items():
        counts = [getattr(outcome.summary, field) if outcome.summary is not None else None for outcome in outcomes]
        if field in _ALWAYS or any(counts):
            columns.append(Column(title, ["" if count is None else str(count) for count in counts], kind="number"))
    columns.append(Column("exit status", [str(int(outcome.status)) for outcome in outcomes], kind="number"))
    columns.append(Column("run", [outcome.run.as_posix() if outcome.run else "not run" for outcome in outcomes]))
    tones: list[Tone] = ["" if outcome.status == ExitCode.OK else "bad" for outcome in outcomes]
    notes = [outcome.note for outcome in outcomes if outcome.note]
    return Page(parts=(Table(title="Suites", columns=columns, tones=tones), Bullets(notes)))
