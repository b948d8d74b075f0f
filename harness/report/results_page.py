"""What the commands on a results folder did, as pages: a table, the reasons, and a sentence that sums up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from harness.report.page import Column, Page, Paragraph, Table
from harness.report.units import interval_text
from harness.store.check import WRONG, Finding
from harness.store.merging import Outcome
from harness.store.tables import NOTHING_YET
from harness.text import plural

# Above this many rows, those that nobody has to look at are only counted.
_MANY = 40


def merged_page(outcomes: Sequence[Outcome]) -> Page:
    """A row for each folder that was merged, or was not."""
    rows = [row for row in outcomes if len(outcomes) <= _MANY or row.fate in ("refused", "left out")]
    table = Table(
        columns=(
            Column("folder", [row.name for row in rows]),
            Column("from", [row.source for row in rows]),
            Column("outcome", [row.fate for row in rows]),
        ),
        tones=["bad" if row.fate == "refused" else "" for row in rows],
    )
    return _page(
        table, [(row.name, row.why) for row in rows], _counts(row.fate for row in outcomes) or "nothing to merge"
    )


def listed_page(
    runs: Sequence[Mapping[str, Any]],
    comparisons: Sequence[Mapping[str, Any]],
    explanations: Sequence[Mapping[str, Any]] = (),
) -> Page:
    """A row for each run with its tags, and one for each comparison and explanation with what it compares."""
    if not runs and not comparisons and not explanations:
        return Page(parts=(Paragraph(NOTHING_YET),))
    of_runs = Table(
        columns=(
            Column("run", [run["run"] for run in runs], kind="name"),
            Column("suite", [run["suite"] for run in runs], rank=3),
            Column("began", [run["started"][:16].replace("T", " ") for run in runs], rank=1),
            Column("toolchain", [run["toolchain"] for run in runs], rank=2),
            Column("cases", [f"{run['cases']:,}" for run in runs], kind="number"),
            Column("failed", [f"{run['failed'] + run['missing']:,}" for run in runs], kind="number"),
            Column("tags", [", ".join([*run["tags"], *([] if run["finished"] else ["(unfinished)"])]) for run in runs]),
        ),
    )
    counts = Counter(tag for run in runs for tag in run["tags"])
    tagged = ", ".join(f"{count:,} {tag}" for tag, count in counts.items())
    differ = [each["outputs_differ"] for each in comparisons]
    of_comparisons = Table(
        columns=(
            Column("comparison", [each["comparison"] for each in comparisons], kind="name"),
            Column("of", [each["compares"] for each in comparisons]),
            Column("rows", [f"{each['rows']:,}" for each in comparisons], kind="number", rank=1),
            Column("regressed", [f"{each['regressed']:,}" for each in comparisons], kind="number"),
            Column("improved", [f"{each['improved']:,}" for each in comparisons], kind="number"),
            *([Column("outputs differ", [f"{number:,}" for number in differ], kind="number")] if any(differ) else []),
        ),
    )
    numbers = f"{plural(len(runs), 'run')}{f' ({tagged})' if tagged else ''}"
    numbers += f", {plural(len(comparisons), 'comparison')}" if comparisons else ""
    numbers += f", {plural(len(explanations), 'explanation')}" if explanations else ""
    tables = (table for table in (of_runs, of_comparisons, _explained(explanations)) if table.rows)
    return Page(parts=(*tables, Paragraph(f"{numbers}.")))


def _explained(explanations: Sequence[Mapping[str, Any]]) -> Table:
    return Table(
        columns=(
            Column("explanation", [each["explanation"] for each in explanations], kind="name"),
            Column("case", [each["case"] for each in explanations], kind="name"),
            Column("of", [each["compares"] for each in explanations]),
            Column("latency", [each["verdict"] for each in explanations]),
            Column("ratio", [interval_text(each["ratio"], None, None) for each in explanations], kind="number", rank=1),
        ),
    )


def verified_page(findings: Sequence[Finding]) -> Page:
    """A row for each folder."""
    rows = [row for row in findings if len(findings) <= _MANY or row.state in WRONG]
    table = Table(
        columns=(
            Column("folder", [row.name for row in rows]),
            Column("what", [row.kind or "-" for row in rows]),
            Column("state", [row.state for row in rows]),
        ),
        tones=["bad" if row.state in WRONG else "" for row in rows],
    )
    return _page(table, [(row.name, row.why) for row in rows], _counts(row.state for row in findings) or "nothing here")


def _page(table: Table, whys: Iterable[tuple[str, str]], closing: str) -> Page:
    reasons = tuple(f"{name}: {why}" for name, why in whys if why)
    parts = (table,) if table.rows else ()
    ending = Paragraph(f"{closing[:1].upper()}{closing[1:]}.")
    return Page(parts=(*parts, *(Paragraph(reason) for reason in reasons), ending))


def _counts(words: Iterable[str]) -> str:
    """`12 copied, 1 refused`."""
    return ", ".join(f"{count} {word}" for word, count in Counter(words).items())
