"""What regressed latencies are made of, under the rows of a comparison: the parts of each that changed it most."""

from __future__ import annotations

import shlex

from harness.records.comparison import Comparison, Explained
from harness.report.explanation_words import TimeLine, time_columns, without_empty
from harness.report.page import Column, Fold, Heading, Name, Paragraph, Part, Table
from harness.report.units import time_unit
from harness.text import plural


def folded_explanations(comparison: Comparison) -> list[Part]:
    """Each row's explanation behind its case's name, for Markdown."""
    return [
        Fold(f"What the regression of {explained.case} is made of", _parts(explained))
        for explained in comparison.explained
    ]


def plain_explanations(comparison: Comparison, results: str) -> list[Part]:
    """The same for a terminal, with what prints all of it; `results` is the folder that holds the comparison."""
    parts: list[Part] = []
    for explained in comparison.explained:
        parts += [Heading(f"What the regression of {explained.case} is made of"), *_parts(explained)]
        if explained.explanation:
            command = Name(f"harness report {shlex.quote(f'{results}/{explained.explanation}')}")
            parts.append(Paragraph(("All of it: ", command), "dim"))
    return parts


def _parts(explained: Explained) -> list[Part]:
    parts: list[Part] = [Paragraph(explained.sentence)]
    if explained.parts:
        parts.append(_table(explained))
    return parts


def _table(explained: Explained) -> Table:
    lines = [
        TimeLine(
            kind="part",
            name=part.name,
            base_ns=part.base_ns,
            head_ns=part.head_ns,
            ratio=part.ratio,
            ci_low=part.ci_low,
            ci_high=part.ci_high,
            verdict=part.verdict,
        )
        for part in explained.parts
    ]
    unit = time_unit(value for line in lines for value in (line.base_ns, line.head_ns))
    columns = [
        *time_columns(lines, unit),
        Column("What Differs", [part.what for part in explained.parts], kind="sentence"),
    ]
    left = f"{plural(explained.left_out, 'other part')} changed the latency less." if explained.left_out else ""
    return Table(columns=without_empty(columns), tones=[line.tone for line in lines], after=[left] if left else [])
