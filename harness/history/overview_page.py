"""What `harness history` shows without options: a line for each suite and class of machines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.history.findings import Finding, is_worse
from harness.history.open import NOTHING_YET
from harness.history.page import Page, Sheet
from harness.report.columns import Column
from harness.text import one_line

if TYPE_CHECKING:
    import pandas as pd

# In a device's class its name follows the machine's, so that series are counted with the machine's runs.
COUNTS = """
SELECT runs.suite, runs.machine_class, count(*) AS runs,
       min(runs.started) FILTER (clock = '') AS first, max(runs.started) FILTER (clock = '') AS last,
       arg_max(runs.run, (runs.started, runs.run)) AS last_run, arg_max(runs.toolchain, runs.started) AS toolchain,
       any_value(counted.series) AS series
FROM runs
LEFT JOIN (
    SELECT series.suite, runs.machine_class, count(*) AS series
    FROM series JOIN runs ON runs.run = series.last_run
    GROUP BY ALL
) AS counted ON counted.suite = runs.suite AND counted.machine_class = runs.machine_class
GROUP BY runs.suite, runs.machine_class
ORDER BY runs.suite, runs.machine_class
"""


def overview_page(counts: pd.DataFrame, found: Sequence[Finding], *, last: int, notes: Sequence[str]) -> Page:
    """Lay out the suites of a history.

    Args:
        counts: What the query COUNTS gives.
        found: Events among latencies.
        last: How many runs of its suite count as recent.
    """
    if counts.empty:
        return Page(verdict=NOTHING_YET, notes=tuple(note for note in notes if note != NOTHING_YET))
    keys = list(zip(counts["suite"], counts["machine_class"], strict=True))
    machines = 0 if counts["suite"].duplicated().any() else 2  # a suite's lines are told apart by them
    classes = {classed for _, classed in keys}
    several = [Column(title="machines", cells=tuple(one_line(one) for _, one in keys), number=False, rank=machines)]
    columns = (
        Column(title="suite", cells=tuple(one_line(suite) for suite, _ in keys), number=False),
        *(several if len(classes) > 1 else []),
        Column(title="runs", cells=tuple(f"{count:,}" for count in counts["runs"])),
        Column(title="series", cells=tuple(f"{int(count):,}" for count in counts["series"].fillna(0))),
        Column(title="first", cells=tuple(text[:10] for text in counts["first"]), number=False, rank=3),
        Column(title="last", cells=tuple(text[:10] for text in counts["last"]), number=False),
        Column(title="toolchain", cells=tuple(map(one_line, counts["toolchain"])), number=False, rank=1),
        Column(
            title="changed",
            cells=tuple(_recent(found, suite, classed) for suite, classed in keys),
            number=False,
        ),
    )
    total = f"{int(counts['runs'].sum()):,} run{'' if int(counts['runs'].sum()) == 1 else 's'}"
    return Page(
        verdict=f"{total} of {counts['suite'].nunique():,} suite{'' if counts['suite'].nunique() == 1 else 's'}.",
        sheets=(Sheet(columns=columns, after=_legend(classes, last)),),
        notes=(
            "`--changes` says what changed, when and why; `--series PATTERN` shows a series; `--sql` asks anything, "
            "and `--columns` lists what there is to ask.",
            *notes,
        ),
    )


def _legend(classes: set[str], last: int) -> tuple[str, ...]:
    span = f"in the last {last} runs of a suite" if last != 1 else "in the last run of a suite"
    changed = f"changed: how many latencies did so {span}, and by what."
    return (changed, *(f"All on {one_line(one)}." for one in classes if len(classes) == 1))


def _recent(found: Sequence[Finding], suite: str, classed: str) -> str:
    """`▲ 2 compiler, ▼ 1 machine`; a device's class begins with its machine's."""
    of_suite = [
        one for one in found if one.recent and one.lead.suite == suite and one.lead.machine_class.startswith(classed)
    ]
    counts: dict[str, int] = {}
    for one in of_suite:
        text = f"{'▲' if is_worse(one.lead) else '▼'} {one.cause}"
        counts[text] = counts.get(text, 0) + len(one.cases)
    return ", ".join(f"{text[0]} {count} {text[2:]}" for text, count in counts.items()) or "none"
