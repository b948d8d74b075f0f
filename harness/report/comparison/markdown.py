"""Comparison -> Markdown for an issue, in the layout of the comments of IREE's old benchmarks.

The abbreviated form is a comment: the verdict, what to do, what failed, the largest changes. The full form has every
row, but for thousands of unchanged figures. Neither hides a failure. What a pull request gets has pictures and links
too, see harness.report.github.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from harness.metrics import COMPILE_TIME, TIMED
from harness.records.comparison import Comparison, Row
from harness.report.comparison.form import Form, Part, fitted
from harness.report.comparison.markdown_parts import (
    commands,
    gate_part,
    lost_part,
    machine_lines,
    means,
    method,
    no_metric_changed,
    notes,
    shortened_step,
    sides,
    some_latencies,
)
from harness.report.comparison.markdown_rows import (
    change_tables,
    folded_tables,
    identical_names,
    new_table,
)
from harness.report.comparison.selection import (
    MOST_COUNTED,
    controls,
    new_ones,
    of_metric,
    of_verdict,
    other_figures,
    real_rows,
)
from harness.report.comparison.steps import full_report, next_steps
from harness.report.comparison.words import figure_title, headline
from harness.report.markdown_text import blocks, escape, marker, what_next


def render_markdown(comparison: Comparison, *, full: bool) -> str:
    """Lay a comparison out for GitHub: abbreviated for a comment, or everything there is."""
    form = Form(full=full)
    head = _head(comparison, form)
    parts = _parts(comparison, form)

    def page(texts: Sequence[str], shortened: Sequence[str]) -> str:
        steps = next_steps(comparison)
        if not full:
            steps = [shortened_step(step) for step in steps]
            rest = ("every row of every list", "the settings", *dict.fromkeys(shortened))
            steps.append(shortened_step(full_report(comparison, rest)))
        return blocks(head, what_next(steps), *texts) + "\n"

    return page([part.texts[0] for part in parts], ()) if full else fitted(parts, page)


def _head(comparison: Comparison, form: Form) -> str:
    return blocks(
        marker(form.cut(comparison.head.suite), "comparison"),
        f"## {'Full' if form.full else 'Abbreviated'} Benchmark Comparison",
        f"**{escape(headline(comparison))}**",
        f"@ {form.name(comparison.head.label)} (vs. base {form.name(comparison.base.label)}): "
        f"{sides(comparison, form)}",
        notes(comparison, form),
    )


def _parts(comparison: Comparison, form: Form) -> list[Part]:
    """The page between what to do and the last line, in order."""
    rows = real_rows(comparison)
    open_ones = of_verdict(rows, "inconclusive")
    compiles = change_tables(comparison, of_metric(rows, COMPILE_TIME.name), form)
    others = change_tables(comparison, other_figures(rows), form)

    def folded_open(*, cut: bool) -> str:
        return folded_tables("Inconclusive", comparison, open_ones, form, why=True, cut=cut)

    return [
        lost_part(comparison, form, ranks=(8, 5)),
        gate_part(comparison, form, ranks=(4, 1)),
        Part(what="changed latencies", texts=(some_latencies(comparison, rows, form), ""), ranks=(2,)),
        Part(what="changed compilation times", texts=(compiles, ""), ranks=(3,)),
        Part(what="other changed figures", texts=(others or no_metric_changed(rows, compiles), ""), ranks=(4,)),
        Part(what="inconclusive rows", texts=(folded_open(cut=False), folded_open(cut=True), ""), ranks=(7, 4)),
        Part(what="new rows", texts=(new_table(comparison, new_ones(rows), form), ""), ranks=(6,)),
        *([Part(texts=(_quiet(comparison, form),))] if form.full else []),
        Part(texts=(machine_lines(comparison, form),)),
        Part(what="the geometric means", texts=(means(comparison, form), ""), ranks=(7,)),
        Part(what="how it was measured", texts=(method(comparison, form), ""), ranks=(3,)),
        Part(what="the commands", texts=(commands(comparison, form), ""), ranks=(9,)),
    ]


def _quiet(comparison: Comparison, form: Form) -> str:
    """Rows that nobody has to look at."""
    rows = real_rows(comparison)
    unchanged = of_verdict(rows, "unchanged")
    counted = other_figures(unchanged)
    if many := len(counted) > MOST_COUNTED:
        unchanged = [row for row in unchanged if row.metric in TIMED]
    return blocks(
        folded_tables("Unchanged", comparison, unchanged, form, why=False, cut=False),
        _not_listed(counted) if many else "",
        identical_names(rows, form),
        folded_tables("A/A controls", comparison, controls(comparison), form, why=True, cut=False),
    )


def _not_listed(rows: Sequence[Row]) -> str:
    """How many rows of each counted figure did not change, in one sentence."""
    numbers = Counter(row.metric for row in rows)
    figures = ", ".join(f"{escape(figure_title(metric))} {number:,}" for metric, number in numbers.items())
    return (
        f"{len(rows):,} unchanged rows of counted figures are not listed ({figures}); comparison.json and "
        "`--format csv` have them."
    )
