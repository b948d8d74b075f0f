"""The parts of a comparison's Markdown that are no lists of rows; a page is put together from these and the lists."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Sequence
from typing import get_args

from harness.metrics import LATENCY
from harness.records.comparison import Comparison, Kind, Row
from harness.report.comparison.form import Form, Part, size_bytes
from harness.report.comparison.markdown_rows import change_tables, gate_table, lost_names, lost_table, tool_output
from harness.report.comparison.method import reading, rule_line, sides_line, warning
from harness.report.comparison.selection import (
    LOST,
    MEASURED,
    controls,
    is_relevant,
    largest_first,
    of_metric,
    of_verdict,
    real_rows,
    violated,
)
from harness.report.comparison.words import count
from harness.report.json_ import plain_value
from harness.report.machine import controls_line, machine_line
from harness.report.markdown_text import blocks, details, escape, fenced, name, paragraph, table
from harness.report.titles import NO_METRIC_CHANGED, NOTHING_CHANGED
from harness.report.units import percent, ratio_text
from harness.report.words import Step

# Notes, and of a command line what it takes in Markdown, that a comment has room for.
_MOST_NOTES = 8
_LONGEST_COMMAND_BYTES = 2_000


def sides(comparison: Comparison, form: Form) -> str:
    """What is compared with what, and how, in one line."""
    return form.text(sides_line(comparison))


def notes(comparison: Comparison, form: Form) -> str:
    """What bears on the whole comparison, as a quotation; a warning about recorded numbers comes first."""
    said = [*warnings(comparison), *comparison.notes]
    shown = said if form.full else said[:_MOST_NOTES]
    if len(shown) < len(said):
        shown = [*shown, f"... and {count(len(said) - len(shown), 'more note')}"]
    return quotation(shown, form)


def warnings(comparison: Comparison) -> list[str]:
    """What keeps the whole comparison from being trusted."""
    return [f"⚠️ {warning(comparison)}"] if warning(comparison) else []


def quotation(said: Sequence[str], form: Form) -> str:
    """Texts as paragraphs of a quotation."""
    return "\n>\n".join(f"> {paragraph(form.cut(one))}" for one in said)


def lost_part(comparison: Comparison, form: Form, ranks: tuple[int, int]) -> Part:
    """Rows that failed or are missing: with what the tools said, without, and by name alone."""
    lost = of_verdict(comparison.rows, *LOST)
    listed = lost_table(lost, form)
    return Part(
        what="what happened to each failed row",
        texts=(blocks(listed, tool_output(lost, form)), listed, lost_names(lost, form)),
        ranks=ranks,
    )


def gate_part(comparison: Comparison, form: Form, ranks: tuple[int, int]) -> Part:
    """Rows that violate a gate: all, the first of them, none."""
    gates = violated(comparison)
    tables = tuple(gate_table(comparison, gates, form, cut=cut) for cut in (False, True))
    return Part(what="violated gates", texts=(*tables, ""), ranks=ranks)


def some_latencies(comparison: Comparison, rows: Sequence[Row], form: Form) -> str:
    """Regressed and improved latencies, or that there are none among those that were compared."""
    timed = of_metric(rows, LATENCY.name)
    if changes := change_tables(comparison, timed, form):
        return blocks(changes, f"_{reading(comparison)}_" if any(row.ci_low is not None for row in timed) else "")
    unsure = len(of_verdict(timed, "inconclusive"))
    if unsure:
        return f"No improved or regressed benchmarks are known; {_are_inconclusive(unsure)}."
    return NOTHING_CHANGED if of_verdict(timed, *MEASURED, "identical") else ""


def no_metric_changed(rows: Sequence[Row], compiles: str) -> str:
    """That no figure of the compiler changed, where that is so; `compiles`: what is said of changed compile times."""
    judged = [row for row in rows if row.metric != LATENCY.name and row.verdict in ("unchanged", "inconclusive")]
    judged += of_verdict(rows, "identical")  # equal modules have equal figures, and no rows of them
    unsure = len(of_verdict(judged, "inconclusive"))
    if not judged or compiles:
        return ""
    if unsure:
        return f"No improved or regressed compilation metrics are known; {_are_inconclusive(unsure)}."
    return NO_METRIC_CHANGED


def _are_inconclusive(rows: int) -> str:
    return f"{count(rows, 'row')} {'is' if rows == 1 else 'are'} inconclusive"


def means(comparison: Comparison, form: Form) -> str:
    """Geometric means of the latency ratios, folded away; not those of rows of which most are not decided."""
    open_ones = of_verdict(of_metric(real_rows(comparison), LATENCY.name), "inconclusive")
    undecided = Counter((kind, getattr(row, kind)) for row in open_ones for kind in get_args(Kind))
    shown = [mean for mean in comparison.means if says_something(mean.rows, undecided[mean.kind, mean.name])]
    if not shown:
        return ""
    lines = [
        (mean.kind, form.name(mean.name), ratio_text(mean.ratio), percent(mean.ratio, decimals=1), str(mean.rows))
        for mean in shown
    ]
    heads = ("Of all rows of", "Name", "Latency ratio", "Change", "Rows")
    left_out = len(comparison.means) - len(shown)
    rest = f" {count(left_out, 'mean')} left out, since most rows are inconclusive." if left_out else ""
    said = f"_Identical rows count with 1.{rest}_"
    body = blocks(table(heads, lines, numbers=(False, False, True, True, True)), said)
    return details("Geometric means by model, device and variant", body)


def says_something(rows: int, undecided: int) -> bool:
    """Whether a mean of so many rows does: one of rows of which most are not decided only looks like a figure."""
    return 2 * undecided <= rows


def machine_lines(comparison: Comparison, form: Form) -> str:
    """How far to trust all this: the machine's A/A rate, and what the controls of this comparison showed."""
    rate = machine_line(comparison.machine.selfcheck)
    # Where it is known, the line names a suite, which may be called anything.
    lines = [rate if rate == machine_line(None) else form.text(rate), controls_line(controls(comparison))]
    return "\n".join(f"- {line[0].upper()}{line[1:]}" for line in lines if line)


def method(comparison: Comparison, form: Form) -> str:
    """How it was measured, folded away: both sides, the machine, the rule."""
    base, head = comparison.base, comparison.head

    def fact(title: str, of_base: str, of_head: str) -> tuple[str, str, str]:
        return title, form.text(of_base), form.text(of_head)

    facts = table(
        ("", "base", "head"),
        [
            fact("given as", base.label, head.label),
            fact("run", f"{base.run} of {base.started}", f"{head.run} of {head.started}"),
            fact("suite", base.suite, head.suite),
            fact("IREE", ", ".join(base.toolchains), ", ".join(head.toolchains)),
            fact("run on", base.machine, head.machine),
        ],
    )
    kept = f" {form.name(comparison.id)}" if comparison.id else ""
    said = (
        f"Comparison{kept} of {form.text(comparison.created)}, "
        f"{'measured' if comparison.mode == 'remeasured' else 'made'} on "
        f"{form.text(comparison.machine.description)}."
    )
    settings = _settings(comparison) if form.full else ""
    return details("How it was measured", blocks(facts, said, escape(rule_line(comparison)), settings))


def _settings(comparison: Comparison) -> str:
    rows = [
        (name(key), escape(value if isinstance(value, str) else json.dumps(plain_value(value), ensure_ascii=False)))
        for key, value in comparison.settings.items()
    ]
    return table(("Setting", "Value"), rows) if rows else ""


def commands(comparison: Comparison, form: Form, *, most: int | None = None) -> str:
    """The command of the whole comparison, and those of the rows that somebody may have to act on, folded away.

    Args:
        most: Rows, those that changed most first; None: all, in their order.
    """
    relevant = [row for row in comparison.rows if row.repro and (form.full or is_relevant(row))]
    wanted: dict[str, Row] = {}
    for row in relevant if most is None else largest_first(relevant):
        wanted.setdefault(row.case, row)
    rows = [details(form.cut(row.case), fenced("\n".join(row.repro), "sh")) for row in list(wanted.values())[:most]]
    whole = fenced(shlex.join(comparison.command), "sh") if comparison.command else ""
    return details("Commands that repeat it", blocks(whole, *rows)) if whole or rows else ""


def shortened_step(step: Step) -> Step:
    """A step of a comment: half a command is worse than none."""
    command = step.command if size_bytes(name(step.command)) <= _LONGEST_COMMAND_BYTES else ""
    return Step(text=Form(full=False).cut(step.text), command=command)
