"""Comparison -> Markdown for a pull request or an issue, in the layout of the comments of IREE's old benchmarks.

The abbreviated form is a comment: the verdict, what to do, what failed, the largest changes. The full form has every
row. Neither hides a failure.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence

from harness.compare.metrics import COMPILE_TIME, LATENCY
from harness.compare.values import Comparison, Row, SideFacts
from harness.report.comparison.form import Form, Part, fitted
from harness.report.comparison.markdown_rows import (
    change_tables,
    folded_tables,
    gate_table,
    identical_names,
    lost_names,
    lost_table,
    new_table,
    tool_output,
)
from harness.report.comparison.method import reading, rule_line, sides_line, warning
from harness.report.comparison.selection import (
    LOST,
    MEASURED,
    controls,
    is_relevant,
    new_ones,
    of_metric,
    of_verdict,
    other_figures,
    real_rows,
    violated,
)
from harness.report.comparison.steps import full_report, next_steps
from harness.report.comparison.words import count, headline
from harness.report.json_ import plain_value
from harness.report.machine import controls_line, machine_line
from harness.report.markdown_text import blocks, details, escape, fenced, marker, name, table, what_next
from harness.report.titles import NO_METRIC_CHANGED, NOTHING_CHANGED
from harness.report.units import percent, ratio_text
from harness.report.words import Step

# Notes and words of a command line that a comment has room for.
_MOST_NOTES = 8
_LONGEST_COMMAND = 1_000


def render_markdown(comparison: Comparison, *, full: bool) -> str:
    """Lay a comparison out for GitHub: abbreviated for a comment, or everything there is."""
    form = Form(full=full)
    head = _head(comparison, form)
    parts = _parts(comparison, form)

    def page(texts: Sequence[str], shortened: Sequence[str]) -> str:
        steps = next_steps(comparison)
        if not full:
            steps = [_short(step) for step in steps]
            rest = ("every row of every list", "the settings", *dict.fromkeys(shortened))
            steps.append(_short(full_report(comparison, rest)))
        return blocks(head, what_next(steps), *texts) + "\n"

    return page([part.texts[0] for part in parts], ()) if full else fitted(parts, page)


def _head(comparison: Comparison, form: Form) -> str:
    base, head = comparison.base, comparison.head
    notes = [note for note in (f"⚠️ {warning(comparison)}" if warning(comparison) else "", *comparison.notes) if note]
    shown = notes if form.full else notes[:_MOST_NOTES]
    if len(shown) < len(notes):
        shown = [*shown, f"... and {count(len(notes) - len(shown), 'more note')}"]
    return blocks(
        marker(form.cut(head.suite), "comparison"),
        f"## {'Full' if form.full else 'Abbreviated'} Benchmark Comparison",
        f"**{escape(headline(comparison))}**",
        f"@ {form.name(head.label)} (vs. base {form.name(base.label)}): {form.text(sides_line(comparison))}",
        "\n>\n".join(f"> {form.text(note)}" for note in shown),
    )


def _parts(comparison: Comparison, form: Form) -> list[Part]:
    """The page between what to do and the last line, in order."""
    rows = real_rows(comparison)
    lost = of_verdict(comparison.rows, *LOST)
    open_ones = of_verdict(rows, "inconclusive")
    gates = violated(comparison)
    compiles = change_tables(comparison, of_metric(rows, COMPILE_TIME.name), form)
    others = change_tables(comparison, other_figures(rows), form)
    table_of_lost = lost_table(lost, form)
    logs = tool_output(lost, form)

    def folded_open(*, cut: bool) -> str:
        return folded_tables("Inconclusive", comparison, open_ones, form, why=True, cut=cut)

    return [
        Part(
            what="what happened to each failed row",
            texts=(blocks(table_of_lost, logs), table_of_lost, lost_names(lost, form) if lost else ""),
            ranks=(8, 5),
        ),
        Part(
            what="violated gates",
            texts=(*(gate_table(comparison, gates, form, cut=cut) for cut in (False, True)), ""),
            ranks=(4, 1),
        ),
        Part(what="changed latencies", texts=(_latencies(comparison, rows, form), ""), ranks=(2,)),
        Part(what="changed compilation times", texts=(compiles, ""), ranks=(3,)),
        Part(what="other changed figures", texts=(others or _no_metric_changed(rows, compiles), ""), ranks=(4,)),
        Part(what="inconclusive rows", texts=(folded_open(cut=False), folded_open(cut=True), ""), ranks=(7, 4)),
        Part(what="new rows", texts=(new_table(comparison, new_ones(rows), form), ""), ranks=(6,)),
        *([Part(texts=(_quiet(comparison, rows, form),))] if form.full else []),
        Part(texts=(_verdict_on_machine(comparison),)),
        Part(what="the geometric means", texts=(_means(comparison, form), ""), ranks=(7,)),
        Part(what="how it was measured", texts=(_method(comparison, form), ""), ranks=(3,)),
        Part(what="the commands", texts=(_commands(comparison, form), ""), ranks=(9,)),
    ]


def _latencies(comparison: Comparison, rows: Sequence[Row], form: Form) -> str:
    """Regressed and improved latencies, or that there are none among those that were compared."""
    timed = of_metric(rows, LATENCY.name)
    if changes := change_tables(comparison, timed, form):
        return blocks(changes, f"_{reading(comparison)}_" if any(row.ci_low is not None for row in timed) else "")
    unsure = len(of_verdict(timed, "inconclusive"))
    if unsure:
        verb = "is" if unsure == 1 else "are"
        return f"No improved or regressed benchmarks are known; {count(unsure, 'row')} {verb} inconclusive."
    return NOTHING_CHANGED if of_verdict(timed, *MEASURED, "identical") else ""


def _no_metric_changed(rows: Sequence[Row], compiles: str) -> str:
    judged = [row for row in rows if row.metric != LATENCY.name and row.verdict == "unchanged"]
    return NO_METRIC_CHANGED if judged and not compiles else ""


def _quiet(comparison: Comparison, rows: Sequence[Row], form: Form) -> str:
    """Rows that nobody has to look at."""
    return blocks(
        folded_tables("Unchanged", comparison, of_verdict(rows, "unchanged"), form, why=False, cut=False),
        identical_names(rows, form),
        folded_tables("A/A controls", comparison, controls(comparison), form, why=True, cut=False),
    )


def _means(comparison: Comparison, form: Form) -> str:
    if not comparison.means:
        return ""
    lines = [
        (mean.kind, form.name(mean.name), ratio_text(mean.ratio), percent(mean.ratio, decimals=1), str(mean.rows))
        for mean in comparison.means
    ]
    heads = ("Of all rows of", "Name", "Latency ratio", "Change", "Rows")
    body = blocks(table(heads, lines, numbers=(False, False, True, True, True)), "_Identical rows count with 1._")
    return details("Geometric means by model, device and variant", body)


def _verdict_on_machine(comparison: Comparison) -> str:
    """How far to trust all this; the lines are fixed words and numbers, so they are Markdown as they stand."""
    lines = [machine_line(comparison.machine.selfcheck), controls_line(controls(comparison))]
    return "\n".join(f"- {line[0].upper()}{line[1:]}" for line in lines if line)


def _method(comparison: Comparison, form: Form) -> str:
    base, head = comparison.base, comparison.head

    def fact(title: str, of_base: str, of_head: str) -> tuple[str, str, str]:
        return title, form.text(of_base), form.text(of_head)

    facts = table(
        ("", "base", "head"),
        [
            fact("given as", base.label, head.label),
            fact("run", f"{base.run} of {base.started}", f"{head.run} of {head.started}"),
            fact("suite", base.suite, head.suite),
            fact("IREE", _releases(base), _releases(head)),
            fact("run on", base.machine, head.machine),
        ],
    )
    said = (
        f"Comparison {form.name(comparison.id)} of {form.text(comparison.created)}, "
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


def _releases(side: SideFacts) -> str:
    return ", ".join(side.toolchains)


def _commands(comparison: Comparison, form: Form) -> str:
    """The command of the whole comparison, and of the rows that somebody may have to act on."""
    wanted: dict[str, Row] = {}
    for row in comparison.rows:
        if row.repro and (form.full or is_relevant(row)):
            wanted.setdefault(row.case, row)
    rows = [details(form.cut(row.case), fenced("\n".join(row.repro), "sh")) for row in wanted.values()]
    whole = fenced(shlex.join(comparison.command), "sh") if comparison.command else ""
    return details("Commands that repeat it", blocks(whole, *rows)) if whole or rows else ""


def _short(step: Step) -> Step:
    """A step of a comment: half a command is worse than none."""
    command = step.command if len(step.command) <= _LONGEST_COMMAND else ""
    return Step(text=Form(full=False).cut(step.text), command=command)
