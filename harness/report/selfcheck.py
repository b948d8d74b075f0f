"""What `harness selfcheck` found, for a terminal and as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Literal

from harness.compare.selfcheck import CaseCheck, Selfcheck
from harness.report.data import Field, tabulate, to_json
from harness.report.page import Page, Paragraph, Table
from harness.report.terminal import to_terminal
from harness.report.units import with_unit
from harness.report.verdicts import machine_line


def render_selfcheck(check: Selfcheck, format: Literal["terminal", "json"], *, width: int, color: bool) -> str:  # noqa: A002
    """A check of this machine as text."""
    if format == "json":
        return to_json(asdict(check))
    page = Page(
        verdict=machine_line(check.facts),
        parts=(Table(columns=tabulate(_FIELDS, check.cases)), *(Paragraph(line) for line in _legend(check))),
    )
    return to_terminal(page, width=width, color=color)


def _share(value: float | None) -> str | None:
    return None if value is None else f"{value * 100:.2f} %"


_FIELDS: tuple[Field[CaseCheck], ...] = (
    Field(title="case", kind="name", value=lambda case: case.case),
    Field(title="latency", kind="text", value=lambda case: case.latency_ns and with_unit(case.latency_ns)),
    Field(title="rows", value=lambda case: case.rows),
    Field(title="flagged", value=lambda case: case.flagged),
    Field(title="inconclusive", value=lambda case: case.inconclusive),
    Field(title="failed", value=lambda case: case.failed),
    Field(title="spread", kind="text", value=lambda case: _share(case.spread)),
    Field(title="detects", kind="text", value=lambda case: _share(case.detects)),
    Field(title="s a row", kind="text", value=lambda case: f"{case.seconds:.1f}"),
)


def _legend(check: Selfcheck) -> list[str]:
    lines = [
        f"Every module was compared with itself, {check.budget_s:g} s a row at most, floor {check.floor * 100:g} %; a "
        "flagged row is a false alarm.",
        "spread: of the log ratio between generations; detects: the smallest slowdown that nine of ten rows find in "
        "their time.",
    ]
    wide = [case.case for case in check.cases if case.inconclusive > case.rows / 10]
    if wide:
        lines.append(
            f"Where rows stay inconclusive ({', '.join(wide[:3])}{', ...' if len(wide) > 3 else ''}), give more time: "
            f"harness compare --row-budget {2 * check.budget_s:g}"
        )
    return lines
