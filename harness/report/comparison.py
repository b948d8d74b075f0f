"""A comparison in sentences: its outcome, how it came about, what to do next; its exit status, and as CSV."""

import math
import shlex
from collections.abc import Sequence

from harness.errors import ExitCode
from harness.metrics import COMPILE_TIME, LATENCY, TIMED, is_exact, metric_title
from harness.records.comparison import Comparison, Row, SideFacts
from harness.report.data import row_record, to_csv
from harness.report.page import Step
from harness.report.units import share
from harness.report.verdicts import CHANGED, LOST, MEASURED, Rows, change_size, controls, real_rows, setting
from harness.text import plural

# --- The outcome ---


def headline(comparison: Comparison) -> str:
    """The whole comparison in one sentence: other outputs, violated gates, latencies, then everything else."""
    rows = real_rows(comparison)
    wrong, others = len(rows.of("outputs differ").cases), len(_with_other_outputs(rows))
    gates, figures = len(rows.violated), len(rows.counted.of(*CHANGED))
    compiles = ", ".join(_changes(rows.metric(COMPILE_TIME.name)))
    parts = [
        f"outputs differ in {plural(wrong, 'case')}" if wrong else "",
        f"{plural(others, 'case')} of another program with other outputs" if others else "",
        # Rows are counted, and many may violate one gate.
        f"gates violated in {gates:,} rows" if gates > 1 else "1 gate violated" if gates else "",
        _latencies(rows),
        f"compilation times: {compiles}" if compiles else "",
        f"{plural(figures, 'other figure')} changed" if figures else "",
    ]
    text = "; ".join(part for part in parts if part)
    return f"{text[0].upper()}{text[1:]}."


def _with_other_outputs(rows: Rows) -> list[str]:
    return Rows([row for row in rows if row.has_other_outputs]).cases


def _latencies(rows: Rows) -> str:
    timed = rows.metric(LATENCY.name)
    unsure = [row for row in timed.of("inconclusive") if not row.lacked_time]
    numbers = {
        "failed": len(rows.of("failed").cases),
        "missing": len(rows.of("missing").cases),
        "inconclusive": len(unsure),
        "unchanged": len(timed.of("unchanged")),
        "identical": len(timed.of("identical")),
        "new": len(timed.of("new")),
    }
    changes = ["no latency was compared"]
    if timed.of(*MEASURED, "identical"):
        lacking = [row for row in timed if row.lacked_time]
        changes = _changes(timed)
        if lacking:
            fold = f"{math.exp(max(map(change_size, lacking))):.1f}-fold"
            who = "1 row differs" if len(lacking) == 1 else f"{len(lacking)} rows differ up to"
            changes.append(f"{who} {fold} and could not be decided for want of time")
        changes = changes or ["no regression or improvement"]
    return ", ".join([*changes, *(f"{number:,} {what}" for what, number in numbers.items() if number)])


def _changes(rows: Rows) -> list[str]:
    regressed, improved = rows.of("regressed"), rows.of("improved")
    allowed = sum(row.gate == "passed" for row in regressed)
    excuse = f" ({allowed} within {'its gate' if allowed == 1 else 'their gates'})" if allowed else ""
    parts = [f"{plural(len(regressed), 'regression')}{excuse}"] if regressed else []
    return [*parts, *([plural(len(improved), "improvement")] if improved else [])]


def verdict_line(comparison: Comparison) -> str:
    """The outcome with a mark in front, which only repeats what the words say."""
    text = headline(comparison)
    status = comparison_exit_code(comparison)
    if status is not ExitCode.OK:
        mark = "🚩" if status is ExitCode.REGRESSION else "🚨"
        return f"{mark} Needs attention: {text[0].lower()}{text[1:]}"
    rows = real_rows(comparison)
    if _with_other_outputs(rows):
        mark = "⚠️"
    elif rows.timed.of("improved"):
        mark = "🎉"
    elif rows.metric(LATENCY.name).of("inconclusive"):
        mark = "❔"
    else:
        mark = "ℹ️" if rows.of(*CHANGED) else "🏖️"  # noqa: RUF001 (the sign that GitHub shows as a mark)
    return f"{mark} {text}"


# --- How it came about ---


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
    base, head = (_toolchains(side) for side in (comparison.base, comparison.head))
    versions = head if base == head else f"{head} vs. {base}" if releases else ""
    how = "as the run recorded it" if comparison.within else "as their runs recorded them"
    if comparison.mode == "remeasured":
        how = f"both measured side by side on {comparison.machine.description}"
    run = f"of run {comparison.head.run}" if comparison.within else ""
    return ", ".join(part for part in (run, versions, how) if part)


def _toolchains(side: SideFacts) -> str:
    return f"IREE {' and '.join(side.toolchains)}" if side.toolchains else ""


def reading(comparison: Comparison) -> str:
    """How the figures of a row go together."""
    of = "turns that ran side by side" if comparison.mode == "remeasured" or comparison.within else ""
    return (
        f"The ratio decides, and percentages are taken from it. It is that of {of or 'the generations of two runs'}, "
        "so the two medians may differ by more or less."
    )


def rule_line(comparison: Comparison) -> str:
    """When a row counts as changed."""
    rows = real_rows(comparison)
    alpha, again = setting(comparison, "alpha", 0.0), setting(comparison, "confirm_alpha", 0.0)
    level = f", p is at most {alpha:g} after correction for looks and for the number of rows" if alpha else ""
    confirmed = ""
    if comparison.mode == "remeasured":
        confirmed = f", and fresh processes show it again{f' (one-sided p at most {again:g})' if again else ''}"
    timed, counted = _named_floors(rows.timed), _named_floors(Rows(row for row in rows if is_exact(row.metric)))
    return (
        f"A timed row is changed where the change is larger than the floor"
        f"{f' ({timed})' if timed else ''}{level}{confirmed}. Counted figures need no statistics: any difference is a "
        f"change{f', of sizes one beyond its floor ({counted})' if counted else ''}."
    )


def _named_floors(rows: Rows) -> str:
    parts = []
    for metric, group in Rows(row for row in rows if row.floor > 0).by_metric().items():
        floors = sorted({row.floor for row in group})
        parts.append(f"{metric_title(metric).lower()} {' or '.join(map(share, floors))}")
    return ", ".join(parts)


# --- What to do next ---


def next_steps(comparison: Comparison) -> list[Step]:
    """What to do: decisions that only people can take, then commands; [] where nothing has to be done."""
    rows, suite = real_rows(comparison), comparison.head.suite
    latencies = rows.metric(LATENCY.name)
    others, open_rows = _with_other_outputs(rows), latencies.of("inconclusive")
    where = "there, how often each host is wrong" if comparison.hosts else "how often this machine is wrong"
    table = (
        (any(map(is_regression, rows)), "correct what regressed, or say here why it is worth it"),
        (
            rows.violated,
            f"bring {plural(len(rows.violated), 'row')} back within the gates, or move these in {suite}",
        ),
        (rows, _repeat_the_largest(rows)),
        (
            rows.of("outputs differ"),
            "find out which side's outputs are wrong before anything is said of its speed; expected files decide it",
        ),
        (others, f"see whether {_first(others)} should give other outputs: what it computes has changed"),
        (rows.of("failed"), "see what the tools said of the failed rows"),
        (rows.of("missing"), "find out why rows are missing: what the base has, the head should have too"),
        (open_rows, _more_time(comparison, open_rows)),
        (controls(comparison).of(*CHANGED), Step(f"find out {where}", f"harness selfcheck {shlex.quote(suite)}")),
    )
    steps = [Step(step) if isinstance(step, str) else step for holds, step in table if holds and step is not None]
    if not steps and comparison_exit_code(comparison) is not ExitCode.OK:
        steps = [Step("find out why nothing was compared; the notes and lists here have the reasons")]
    return steps


def _first(names: Sequence[str]) -> str:
    return f"{names[0]} and {len(names) - 1} more" if len(names) > 1 else "".join(names)


def _repeat_the_largest(rows: Rows) -> Step | None:
    """The command that repeats the largest regression of a latency, or where none regressed, of a compile time.

    What a gate allows is nobody's first concern.
    """
    for metric, what in ((LATENCY, "regression"), (COMPILE_TIME, "regression of a compilation time")):
        regressed = rows.metric(metric.name).of("regressed").largest_first()
        if regressed:
            row = min(regressed, key=lambda row: row.gate == "passed")
            # The first line repeats the row; those after it say what was compiled.
            return Step(f"repeat the largest {what}, {row.case}", row.repro[0]) if row.repro else None
    return None


def full_report_command(comparison: Comparison) -> str:
    """Prints every row; a comparison that was not kept is made again, from what was recorded."""
    if comparison.id:
        return f"harness report {shlex.quote(f'results/{comparison.id}')} --format markdown --full"
    command = shlex.join(comparison.command)
    return f"{command} --format markdown --full" if command else ""


def _more_time(comparison: Comparison, rows: Rows) -> Step:
    what, command = f"decide {plural(len(rows), 'inconclusive row')}", comparison.command
    if comparison.mode == "recorded":
        again = shlex.join(word for word in command if word != "--no-remeasure")
        return Step(f"{what} by measuring both sides again, side by side", again)
    option, otherwise = "row-budget", max((math.ceil(row.seconds) for row in rows), default=1)
    if plain := sum(row.lacked_time for row in rows):
        what, option = f"decide {plural(plain, 'row')} that differ{'s' if plain == 1 else ''} plainly", "row-cap"
    seconds = 2 * setting(comparison, f"{option.replace('-', '_')}_s", otherwise)
    return Step(f"{what} with twice the time", _with_option(command, f"--{option}", seconds))


def _with_option(command: Sequence[str], option: str, seconds: float) -> str:
    words = [word for word in command if not word.startswith(f"{option}=")]
    while option in words:
        at = words.index(option)
        del words[at : at + 2]
    return shlex.join([*words, option, f"{seconds:.10g}"]) if command else ""


# --- The exit status, and for other programs ---


def comparison_exit_code(comparison: Comparison, *, strict: bool = False) -> ExitCode:
    """1 for a regression or a violated gate; else 3 for a failed or missing row, or if nothing was compared; else 0.

    A latency or a compile time that regressed is a regression unless a gate of the suite allows it; other figures are
    only what their gates make of them. Where both 1 and 3 hold it is 1, and the report names both. A/A controls never
    count.
    """
    rows = real_rows(comparison)
    if any(row.gate == "violated" or is_regression(row) for row in rows):
        return ExitCode.REGRESSION
    latencies = rows.metric(LATENCY.name)
    if rows.of(*LOST) or not latencies.of(*MEASURED, "identical"):
        return ExitCode.CASE_FAILED
    if strict and latencies.of("inconclusive"):
        return ExitCode.INCONCLUSIVE
    return ExitCode.OK


def is_regression(row: Row) -> bool:
    """Whether a time regressed and no gate of the suite says otherwise."""
    return row.verdict == "regressed" and row.metric in TIMED and row.gate != "passed"


def comparison_csv(comparison: Comparison) -> str:
    """A line a row, with the names of its hosts; the commands that repeat it, of several lines, are left out."""
    records = [row_record(row) | {"hosts": " ".join(row.hosts)} for row in comparison.rows]
    return to_csv([{name: value for name, value in record.items() if name != "repro"} for record in records])
