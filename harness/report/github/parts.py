"""The parts of a comment between its head and its foot."""

from __future__ import annotations

from collections.abc import Sequence

from harness.metrics import COMPILE_TIME, TIMED
from harness.records.comparison import Comparison, Row
from harness.report.comparison.form import Form, Part
from harness.report.comparison.markdown_parts import (
    commands,
    gate_part,
    lost_part,
    machine_lines,
    means,
    method,
    no_metric_changed,
    some_latencies,
)
from harness.report.comparison.markdown_rows import change_tables, folded_tables, identical_names
from harness.report.comparison.selection import (
    CHANGED,
    controls,
    largest_first,
    metrics_of,
    new_ones,
    of_metric,
    of_verdict,
    other_figures,
    real_rows,
)
from harness.report.comparison.words import count, figure_title
from harness.report.github.overview import overview, overview_of_others
from harness.report.github.pictures import pictures
from harness.report.github.values import Images
from harness.report.markdown_text import blocks, details, fenced

_MOST_IN_FOREST = 12
# Characters that fit into a comment's column without being scrolled.
_FOREST_WIDTH = 96
# Rows whose commands a comment has, and figures that it names without a table.
_MOST_COMMANDS = 20
_MOST_FIGURES = 60


def parts_of(comparison: Comparison, images: Images, form: Form) -> list[Part]:
    """The parts in order; where room is short, those of the highest rank are shortened first."""
    rows = real_rows(comparison)
    compiles = change_tables(comparison, of_metric(rows, COMPILE_TIME.name), form)
    return [
        Part(what="the table of figures", texts=(overview(comparison), ""), ranks=(1,)),
        lost_part(comparison, form, ranks=(10, 6)),
        gate_part(comparison, form, ranks=(5, 2)),
        Part(what="the picture", texts=(_picture(comparison, rows, images), ""), ranks=(4,)),
        Part(what="changed latencies", texts=(some_latencies(comparison, rows, form), ""), ranks=(3,)),
        Part(what="changed compilation times", texts=(compiles, ""), ranks=(4,)),
        Part(what="other changed figures", texts=(_others(comparison, rows, compiles, form), ""), ranks=(5,)),
        Part(what="inconclusive rows", texts=(_inconclusive(comparison, rows, form), ""), ranks=(8,)),
        Part(what="new rows", texts=(_new(comparison, rows, form), ""), ranks=(7,)),
        Part(what="unchanged rows", texts=(_quiet(comparison, rows, form), ""), ranks=(12,)),
        Part(texts=(machine_lines(comparison, form),)),
        Part(what="the geometric means", texts=(means(comparison, form), ""), ranks=(9,)),
        Part(what="how it was measured", texts=(method(comparison, form), ""), ranks=(4,)),
        Part(what="the commands", texts=(commands(comparison, form, most=_MOST_COMMANDS), ""), ranks=(11,)),
    ]


def _picture(comparison: Comparison, rows: Sequence[Row], images: Images) -> str:
    """What changed, to be seen at a glance, else what is not decided; where nothing is either, pictures folded away."""
    timed = [row for row in rows if row.metric in TIMED]
    changed = [row for verdict in CHANGED for row in largest_first(of_verdict(timed, verdict))]
    drawn = changed[:_MOST_IN_FOREST] or of_verdict(timed, "inconclusive")
    if shown := pictures(images, folded=not drawn):
        return shown
    if not drawn:
        return ""
    from harness.report.comparison.forest_text import forest_text

    text = forest_text(comparison, drawn, _FOREST_WIDTH, top=_MOST_IN_FOREST)
    return fenced(text) if text else ""


def _others(comparison: Comparison, rows: Sequence[Row], compiles: str, form: Form) -> str:
    """Counted figures that changed, of which the table on top has the numbers."""
    others = of_verdict(other_figures(rows), *CHANGED)
    tables = change_tables(comparison, others, form)
    if not tables:
        return no_metric_changed(rows, compiles)
    return details(
        f"Counted figures that changed ({count(len(others), 'row')})", blocks(overview_of_others(comparison), tables)
    )


def _inconclusive(comparison: Comparison, rows: Sequence[Row], form: Form) -> str:
    open_ones = largest_first(of_verdict(rows, "inconclusive"))
    return folded_tables("Inconclusive", comparison, open_ones, form, why=True, cut=True)


def _new(comparison: Comparison, rows: Sequence[Row], form: Form) -> str:
    return folded_tables("New", comparison, new_ones(rows), form, why=True, cut=True)


def _quiet(comparison: Comparison, rows: Sequence[Row], form: Form) -> str:
    """Rows that nobody has to look at; of counted figures it is enough to know which did not change."""
    unchanged = of_verdict(rows, "unchanged")
    timed = [row for row in unchanged if row.metric in TIMED]
    counted = [row for row in unchanged if row.metric not in TIMED]
    return blocks(
        folded_tables("Unchanged", comparison, timed, form, why=False, cut=True),
        _unchanged_figures(counted, form),
        identical_names(rows, form),
        folded_tables("A/A controls", comparison, controls(comparison), form, why=True, cut=True),
    )


def _unchanged_figures(rows: Sequence[Row], form: Form) -> str:
    """`Dispatch Count (14), Copies (14)`, folded away."""
    if not rows:
        return ""
    figures = [f"{figure_title(metric)} ({len(of_metric(rows, metric)):,})" for metric in metrics_of(rows)]
    listed = [form.text(figure) for figure in figures[:_MOST_FIGURES]]
    if len(listed) < len(figures):
        listed.append(f"and {count(len(figures) - len(listed), 'more figure')}")
    summary = f"Counted figures without a change ({count(len(rows), 'row')})"
    return details(summary, f"In so many rows: {', '.join(listed)}.")
