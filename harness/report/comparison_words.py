"""A comparison in sentences: its outcome, how it came about, and what to do next."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Sequence

from harness.errors import ExitCode
from harness.metrics import COMPILE_TIME, LATENCY, is_exact, metric_title
from harness.records.comparison import Comparison, Row, SideFacts
from harness.report.comparison import comparison_exit_code, is_regression
from harness.report.page import Step
from harness.report.units import percent, share
from harness.report.verdicts import (
    CHANGED,
    MEASURED,
    by_metric,
    cases,
    change_size,
    controls,
    counted_rows,
    largest_first,
    of_metric,
    of_verdict,
    real_rows,
    setting,
    timed_rows,
    violated,
    within_floor,
)
from harness.text import plural

_BUDGET, _CAP = "--row-budget", "--row-cap"
# As rows say it that had no room for enough generations: in their budget, or below the cap of plain ones.
_TAKES = re.compile(r"they take (\d{1,9}) s\b")
_TAKES_IN_ALL = re.compile(r"(\d{1,9}) s, where --row-cap allows")


def headline(comparison: Comparison) -> str:
    """The whole comparison in one sentence: other outputs, violated gates, latencies, then everything else."""
    rows = real_rows(comparison)
    wrong = len(cases(of_verdict(rows, "outputs differ")))
    others = _with_other_outputs(rows)
    gates = len(violated(rows))
    parts = [
        f"outputs differ in {plural(wrong, 'case')}" if wrong else "",
        f"{plural(len(others), 'case')} of another program with other outputs" if others else "",
        # Rows are counted, and many may violate one gate.
        f"gates violated in {gates:,} rows" if gates > 1 else "1 gate violated" if gates else "",
        _latencies(rows),
    ]
    compiles = _changes(of_metric(rows, COMPILE_TIME.name))
    if compiles:
        parts.append(f"compilation times: {', '.join(compiles)}")
    figures = len(of_verdict(counted_rows(rows), *CHANGED))
    if figures:
        parts.append(f"{plural(figures, 'other figure')} changed")
    text = "; ".join(part for part in parts if part)
    return f"{text[0].upper()}{text[1:]}."


def _with_other_outputs(rows: Sequence[Row]) -> list[str]:
    """Cases whose program is another one on purpose or not, and computes something else."""
    return cases([row for row in rows if row.has_other_outputs])


def _latencies(rows: Sequence[Row]) -> str:
    timed = of_metric(rows, LATENCY.name)
    lost = [_counted(len(cases(of_verdict(rows, verdict))), verdict) for verdict in ("failed", "missing")]
    rest = [_counted(len(of_verdict(timed, verdict)), verdict) for verdict in ("unchanged", "identical", "new")]
    unsure = [row for row in of_verdict(timed, "inconclusive") if not row.lacked_time and not row.hosts_disagree]
    apart = sum(row.hosts_disagree for row in timed)
    plain = [*_plain(timed), *([f"the hosts disagree on {plural(apart, 'row')}"] if apart else [])]
    if not of_verdict(timed, *MEASURED, "identical"):
        changes = ["no latency was compared"]
    else:
        changes = [*_changes(timed), *plain] or ["no regression or improvement"]
    return ", ".join(part for part in (*changes, *lost, _counted(len(unsure), "inconclusive"), *rest) if part)


def _plain(rows: Sequence[Row]) -> list[str]:
    """`1 row differs 7.9-fold and could not be decided`, where only time was lacking."""
    lacking = [row for row in rows if row.lacked_time]
    if not lacking:
        return []
    fold = f"{math.exp(max(map(change_size, lacking))):.1f}-fold"
    if len(lacking) == 1:
        return [f"1 row differs {fold} and could not be decided for want of time"]
    return [f"{len(lacking)} rows differ up to {fold} and could not be decided for want of time"]


def _changes(rows: Sequence[Row]) -> list[str]:
    """`2 regressions (1 within its gate), 1 improvement`, as far as there are any."""
    regressed = of_verdict(rows, "regressed")
    allowed = sum(row.gate == "passed" for row in regressed)
    excuse = f" ({allowed} within {'its gate' if allowed == 1 else 'their gates'})" if allowed else ""
    parts = [f"{plural(len(regressed), 'regression')}{excuse}"] if regressed else []
    improved = of_verdict(rows, "improved")
    return [*parts, *([plural(len(improved), "improvement")] if improved else [])]


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}" if number else ""


def verdict_line(comparison: Comparison) -> str:
    """The outcome with a mark in front, which only repeats what the words say."""
    text = headline(comparison)
    status = comparison_exit_code(comparison, strict=False)
    if status is not ExitCode.OK:
        mark = "🚩" if status is ExitCode.REGRESSION else "🚨"
        return f"{mark} Needs attention: {text[0].lower()}{text[1:]}"
    rows = real_rows(comparison)
    if _with_other_outputs(rows):
        mark = "⚠️"
    elif of_verdict(timed_rows(rows), "improved"):
        mark = "🎉"
    elif of_verdict(of_metric(rows, LATENCY.name), "inconclusive"):
        mark = "❔"
    else:
        mark = "ℹ️" if of_verdict(rows, *CHANGED) else "🏖️"  # noqa: RUF001 (the sign that GitHub shows as a mark)
    return f"{mark} {text}"


def warning(comparison: Comparison) -> str:
    """What keeps recorded numbers from being trusted as far as measured ones; "" where nothing does."""
    if comparison.mode != "recorded" or comparison.within:
        return ""
    hosts = "" if comparison.base.machine == comparison.head.machine else " and on different machines"
    return (
        f"These are recorded numbers, taken at different times{hosts}: whatever else differed between them is in the "
        "ratios too, and nothing was confirmed by measuring again."
    )


def sides_line(comparison: Comparison, *, releases: bool = True) -> str:
    """What is compared with what, and how, in one line."""
    toolchains = [_toolchains(side) for side in (comparison.base, comparison.head)]
    versions = toolchains[1]
    if toolchains[0] != toolchains[1]:
        versions = f"{toolchains[1]} vs. {toolchains[0]}" if releases else ""
    how = {
        "remeasured": f"both measured side by side on {_hosts(comparison)}{comparison.machine.description}",
        "recorded": "as the run recorded it" if comparison.within else "as their runs recorded them",
    }[comparison.mode]
    run = f"of run {comparison.head.run}" if comparison.within else ""
    return ", ".join(part for part in (run, versions, how) if part)


def _hosts(comparison: Comparison) -> str:
    """`4 hosts of one class: `, where rows were measured on several hosts at once; else ""."""
    groups = {tuple(host.host for host in row.hosts) for row in comparison.rows if len(row.hosts) > 1}
    if not groups:
        return ""
    most = max(map(len, groups))
    return f"{most} hosts of one class: " if len(groups) == 1 else f"up to {most} hosts of one class each: "


def _toolchains(side: SideFacts) -> str:
    return f"IREE {' and '.join(side.toolchains)}" if side.toolchains else ""


def reading(comparison: Comparison) -> str:
    """How the figures of a row go together."""
    text = "The ratio decides, and percentages are taken from it"
    if comparison.mode == "remeasured" or comparison.within:
        return f"{text}. It is that of turns that ran side by side, so the two medians may differ by more or less."
    return f"{text}. It is that of the generations of two runs, so the two medians may differ by more or less."


def rule_line(comparison: Comparison) -> str:
    """When a row counts as changed."""
    if comparison.rule == "upstream":
        return (
            "Rule: upstream. The thresholds of IREE's own old comments, held against one figure a side; no interval "
            "and no p-value decides."
        )
    alpha = setting(comparison, "alpha", 0.0)
    level = f", p is at most {alpha:g} after correction for looks and for the number of rows" if alpha else ""
    again = setting(comparison, "confirm_alpha", 0.0)
    confirmed = f", and fresh processes show it again{f' (one-sided p at most {again:g})' if again else ''}"
    floors = _named_floors(timed_rows(real_rows(comparison)))
    beyond = f"the change is larger than the floor{f' ({floors})' if floors else ''}"
    last = confirmed if comparison.mode == "remeasured" else ""
    counted = f"Counted figures need no statistics{_counted_floors(comparison)}."
    return f"Rule: generations. A timed row is changed where {beyond}{level}{last}. {counted}"


def _counted_floors(comparison: Comparison) -> str:
    """What changes of counted figures are left out of the findings; "" where none is."""
    exact = [row for row in real_rows(comparison) if is_exact(row.metric)]
    floors = sorted({row.floor for row in exact if row.floor > 0})
    if not floors:
        return ""
    if len(floors) == 1:
        return f": any difference is a change, of a size in bytes one of more than {share(floors[0])}"
    return f": any difference is a change, of these sizes one beyond its floor ({_named_floors(exact)})"


def within_floors_line(rows: Sequence[Row]) -> str:
    """`Changed by less than their floors: Module Size in 3 rows (at most +0.06 %)`; "" where nothing is."""
    parts = []
    for metric, group in by_metric(within_floor(rows)).items():
        largest = percent(largest_first(group)[0].ratio or 0.0, decimals=2)
        parts.append(f"{metric_title(metric)} in {plural(len(group), 'row')} (at most {largest})")
    return f"Changed by less than their floors: {', '.join(parts)}." if parts else ""


def _named_floors(all_rows: Sequence[Row]) -> str:
    """By the rows, since a suite may have floors of its own."""
    rows = [row for row in all_rows if row.floor > 0]
    parts = []
    for metric, group in by_metric(rows).items():
        floors = sorted({row.floor for row in group})
        parts.append(f"{metric_title(metric).lower()} {' or '.join(map(share, floors))}")
    return ", ".join(parts)


def next_steps(comparison: Comparison) -> list[Step]:
    """What to do: decisions that only people can take, then commands; [] where nothing has to be done."""
    rows = real_rows(comparison)
    latencies = of_metric(rows, LATENCY.name)
    steps = []
    if any(is_regression(row) for row in rows):
        steps.append(Step("correct what regressed, or say here why it is worth it"))
    if gates := violated(rows):
        suite = comparison.head.suite
        steps.append(Step(f"bring {plural(len(gates), 'row')} back within the gates, or move these in {suite}"))
    # What a gate allows is nobody's first concern.
    regressed = sorted(largest_first(of_verdict(latencies, "regressed")), key=lambda row: row.gate == "passed")
    compiles = largest_first(of_verdict(of_metric(rows, COMPILE_TIME.name), "regressed"))
    if regressed and regressed[0].repro:  # the first line repeats the row; those after it say what was compiled
        steps.append(Step(f"repeat the largest regression, {regressed[0].case}", regressed[0].repro[0]))
    elif not regressed and compiles and compiles[0].repro:
        text = f"repeat the largest regression of a compilation time, {compiles[0].case}"
        steps.append(Step(text, compiles[0].repro[0]))
    if of_verdict(rows, "outputs differ"):
        text = "find out which side's outputs are wrong before anything is said of its speed; expected files decide it"
        steps.append(Step(text))
    if others := _with_other_outputs(rows):
        rest = f" and {len(others) - 1} more" if len(others) > 1 else ""
        steps.append(Step(f"see whether {others[0]}{rest} should give other outputs: what it computes has changed"))
    if of_verdict(rows, "failed"):
        steps.append(Step("see what the tools said of the failed rows"))
    if of_verdict(rows, "missing"):
        steps.append(Step("find out why rows are missing: what the base has, the head should have too"))
    if apart := [row for row in latencies if row.hosts_disagree]:
        rest = f" and {len(apart) - 1} more" if len(apart) > 1 else ""
        steps.append(Step(f'measure the hosts of {apart[0].case}{rest} one by one: hosts = "each" of its device'))
    if any(not row.hosts_disagree for row in of_verdict(latencies, "inconclusive")):
        steps.append(_more_time(comparison))
    if of_verdict(controls(comparison), *CHANGED):
        suite = shlex.quote(comparison.head.suite)
        what = "there, how often each host is wrong" if comparison.hosts else "how often this machine is wrong"
        steps.append(Step(f"find out {what}", f"harness selfcheck {suite}"))
    if not steps and comparison_exit_code(comparison, strict=False) is not ExitCode.OK:
        steps = [Step("find out why nothing was compared; the notes and lists here have the reasons")]
    return steps


def full_report_command(comparison: Comparison) -> str:
    """Prints every row; a comparison that was not kept is made again, from what was recorded."""
    if comparison.id:
        return f"harness report {shlex.quote(f'results/{comparison.id}')} --format markdown --full"
    command = shlex.join(comparison.command)
    return f"{command} --format markdown --full" if command else ""


def _more_time(comparison: Comparison) -> Step:
    open_rows = of_verdict(of_metric(real_rows(comparison), LATENCY.name), "inconclusive")
    rows = [row for row in open_rows if not row.hosts_disagree]
    what = f"decide {plural(len(rows), 'inconclusive row')}"
    if comparison.mode == "recorded":
        command = [word for word in comparison.command if word != "--no-remeasure"]
        return Step(f"{what} by measuring both sides again, side by side", shlex.join(command))
    if plain := [row for row in rows if row.lacked_time]:
        cap_s = 1.5 * max(_seconds_said(row, _TAKES_IN_ALL) for row in plain)
        what = f"decide {plural(len(plain), 'row')} that differ{'s' if len(plain) == 1 else ''} plainly"
        return Step(f"{what} with a higher cap", _with_option(comparison.command, _CAP, cap_s))
    doubled_s = 2 * budget_s(comparison)
    needed_s = max((_seconds_said(row, _TAKES) for row in rows), default=0.0)
    time = "twice the time" if needed_s <= doubled_s else "the time that they need"
    return Step(f"{what} with {time}", _with_option(comparison.command, _BUDGET, max(doubled_s, needed_s)))


def budget_s(comparison: Comparison) -> float:
    """Seconds that a row could take; where that is not kept, what the longest open one took."""
    longest = max((row.seconds for row in of_verdict(real_rows(comparison), "inconclusive")), default=0.0)
    return setting(comparison, "row_budget_s", max(math.ceil(longest), 1))


def _seconds_said(row: Row, takes: re.Pattern[str]) -> float:
    """The time that a row says it takes; 0 where it says nothing."""
    match = takes.search(row.reason)
    return float(match[1]) if match else 0.0


def _with_option(command: Sequence[str], option: str, seconds: float) -> str:
    """The command line with another value of an option; "" where it is not known."""
    words = [word for word in command if not word.startswith(f"{option}=")]
    while option in words:
        at = words.index(option)
        del words[at : at + 2]
    return shlex.join([*words, option, f"{seconds:.10g}"]) if command else ""
