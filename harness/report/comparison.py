"""A comparison in words: verdicts and metrics, its outcome, how far to trust it, what to do; its exit status, and CSV.

A run's rows are judged against its baseline as a comparison's are against the base; only the words differ.
"""

from __future__ import annotations

import math
import shlex
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from harness.compare.pairs import BASE_TOO
from harness.errors import ExitCode
from harness.metrics import COMPILE_TIME, INSTRUCTIONS, LATENCY, TIMED, metric_title
from harness.records.comparison import Comparison, Row, SelfcheckFacts, Verdict
from harness.report.data import row_record, to_csv
from harness.report.page import Step, Tone
from harness.report.units import Unit, share, unit_of
from harness.stats.intervals import CONFIDENCE
from harness.text import plural

# A mark beside each verdict, so that colour never carries the meaning alone.
MARKS: Mapping[Verdict, str] = {
    "regressed": "▲",
    "improved": "▼",
    "unchanged": "=",
    "inconclusive": "?",
    "identical": "≡",
    "outputs differ": "≠",
    "failed": "✗",
    "missing": "−",  # noqa: RUF001 (a minus sign is as wide as the other marks)
    "new": "+",
}
TONES: Mapping[Verdict, Tone] = {
    "regressed": "bad",
    "improved": "good",
    "unchanged": "",
    "inconclusive": "open",
    "identical": "dim",
    "outputs differ": "bad",
    "failed": "bad",
    "missing": "bad",
    "new": "new",
}
# What a run calls the ratio of a variant and its baseline, where a comparison has a verdict.
Change = Literal["faster", "slower", "same", "unclear"]
RUN_WORDS: Mapping[Verdict, Change] = {
    "regressed": "slower",
    "improved": "faster",
    "unchanged": "same",
    "inconclusive": "unclear",
}

CHANGED: tuple[Verdict, ...] = ("regressed", "improved")
LOST: tuple[Verdict, ...] = ("outputs differ", "failed", "missing")
MEASURED: tuple[Verdict, ...] = (*CHANGED, "unchanged", "inconclusive")

# Headings of the lists of changes, as IREE's comments had them, by metric; what they did not show is worded alike.
UPSTREAM_TITLES: Mapping[str, str] = {
    "latency": "Latencies",
    "compile-time": "Compilation Times",
    "dispatch-size": "Total Dispatch Sizes",
    "module-size": "Total Artifact Sizes",
    "dispatches": "Stream IR Dispatch Count (# of cmd.dispatch ops)",
    "transient-memory": "Transient Memory",
}


def marked(verdict: Verdict) -> str:
    """`▲ regressed`."""
    return f"{MARKS[verdict]} {verdict}"


def list_title(metric: str) -> str:
    """The heading of a list of rows of a metric: `Latencies`."""
    return UPSTREAM_TITLES.get(metric) or metric_title(metric)


def change_title(metric: str, verdict: Verdict) -> str:
    """The heading of a list of changed rows: `Regressed Latencies 🚩`."""
    title = list_title(metric)
    return f"Regressed {title} 🚩" if verdict == "regressed" else f"Improved {title} 🎉"


def figure_title(metric: str) -> str:
    """The name of one value of a metric: `Median Latency`."""
    return "Median Latency" if metric == LATENCY.name else metric_title(metric)


def figure_unit(rows: Sequence[Row]) -> Unit:
    """One unit for both sides of rows of one metric; bytes stay bytes, as in IREE's comments."""
    if rows[0].unit == "bytes":
        return Unit(name="bytes", size=1.0, decimals=0)
    return unit_of(rows[0].unit, [value for row in rows for value in (row.base_value, row.head_value)])


def interval_title(comparison: Comparison, metric: str) -> str:
    """What the brackets beside a ratio hold: instructions are counted, so theirs span what was counted."""
    if metric == INSTRUCTIONS.name:
        return "all generations"
    return f"{share(setting(comparison, 'confidence', CONFIDENCE))} interval"


def setting(comparison: Comparison, key: str, otherwise: float) -> float:
    """A positive number among the settings of a comparison."""
    value = comparison.settings.get(key)
    usable = isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e300
    return float(value) if usable else otherwise  # type: ignore[arg-type]


class Rows(tuple[Row, ...]):
    """Rows of a comparison, to choose from."""

    def of(self, *verdicts: Verdict) -> Rows:
        """Rows with one of the verdicts."""
        return Rows(row for row in self if row.verdict in verdicts)

    def metric(self, name: str) -> Rows:
        """Rows of one metric."""
        return Rows(row for row in self if row.metric == name)

    def by_metric(self) -> dict[str, Rows]:
        """Rows of each metric: latency and compile time first, then as they come."""
        names = dict.fromkeys((LATENCY.name, COMPILE_TIME.name, *(row.metric for row in self)))
        return {name: rows for name in names if (rows := self.metric(name))}

    @property
    def timed(self) -> Rows:
        """Rows of latencies and compile times."""
        return Rows(row for row in self if row.metric in TIMED)

    @property
    def counted(self) -> Rows:
        """Rows of figures that are counted, not timed."""
        return Rows(row for row in self if row.metric not in TIMED)

    @property
    def violated(self) -> Rows:
        """Rows that break a gate of the suite."""
        return Rows(row for row in self if row.gate == "violated")

    @property
    def cases(self) -> list[str]:
        """Names of the rows' cases, each once."""
        return list(dict.fromkeys(row.case for row in self))

    def largest_first(self) -> Rows:
        """Rows by how much they changed; from nothing to something is the largest change there is."""
        return Rows(sorted(self, key=lambda row: -change_size(row)))


def real_rows(comparison: Comparison) -> Rows:
    """All rows but the A/A controls."""
    return Rows(row for row in comparison.rows if not row.control)


def controls(comparison: Comparison) -> Rows:
    """Rows of equal modules that were measured all the same."""
    return Rows(row for row in comparison.rows if row.control)


def is_relevant(row: Row) -> bool:
    """Whether somebody may have to act on a row."""
    return row.verdict in (*CHANGED, *LOST, "inconclusive") or row.gate == "violated"


def change_size(row: Row) -> float:
    """How much a row changed, as the distance of its ratio from 1 in the logarithm."""
    return abs(math.log(row.ratio)) if row.ratio is not None and 0 < row.ratio < math.inf else math.inf


# --- How far to trust the figures ---

# Shares of the time that other processes took. Threads of one device also wait for each other, for 3 to 7 % of the time
# on a quiet machine (docs/statistics.md, "What was recorded").
BUSY, BUSY_THREADS = 0.1, 0.2
# What is named, of what was timed while the machine was busy.
_MOST_BUSY = 3


def medians_sentence(rows: Iterable[Row]) -> str:
    """Which medians say the opposite of the ratio beside them, and why; "" where none do."""
    usable = (row for row in rows if row.base_value and row.head_value and row.ratio)
    known = [(row.case, (row.head_value or 0) / (row.base_value or 1), row.ratio or 1) for row in usable]
    odd = [case for case, medians, ratio in known if (medians > 1) != (ratio > 1) and not 0.99 < medians / ratio < 1.01]
    why = "a median is of one side alone, while the machine changes its speed, and the ratio is taken within rounds"
    return f"The medians of {_first(odd)} say the opposite of the ratio: {why}." if odd else ""


def machine_line(selfcheck: SelfcheckFacts | None, host: str = "this machine") -> str:
    """How often a machine's verdicts are wrong, and how small a change they see; "" where nobody knows."""
    if selfcheck is None or not selfcheck.rows:
        return ""
    found = selfcheck.detects
    detects = "detects nothing smaller than a doubling" if found is None else f"detects {_rough_share(found)}"
    return (
        f"on {host}: {selfcheck.flagged} of {selfcheck.rows} A/A rows flagged (at most "
        f"{_rough_share(selfcheck.upper_bound)} by the 95 % bound); {detects} in {selfcheck.seconds:.0f} s "
        f"(checked with {selfcheck.suite})"
    )


class Busy(NamedTuple):
    """How busy the machine was while something was timed."""

    name: str
    taken: float  # The share of its time that other processes took
    own: bool  # Whether it is compared by own time, which leaves that out; else its threads took from each other too


def busy_line(known: Sequence[Busy], *, several_hosts: bool = False) -> str:
    """How busy the machine was while rows were timed, and which time decides them; "" where that is not known."""
    if not known:
        return ""
    own = [each.taken for each in known if each.own]
    mean = statistics.mean(own or [each.taken for each in known])
    word = "busy" if mean >= (BUSY if own else BUSY_THREADS) else "quiet"
    text = f"{'the hosts were' if several_hosts else 'the machine was'} {word}: "
    if own:
        alone = "" if len(own) == len(known) else " on one thread"
        text += f"other processes took {_rough_share(mean)} of the time of what was timed{alone}"
    else:
        text += (
            f"threads of what was timed waited for a core {_rough_share(mean)} of the time, for other processes or for "
            "each other"
        )
    busy = [each for each in known if each.taken >= (BUSY if each.own else BUSY_THREADS)]
    worst = sorted(busy, key=lambda each: -each.taken)[:_MOST_BUSY] if len(known) > 1 else []
    text += f" ({', '.join(f'{_rough_share(each.taken)} of {each.name}' for each in worst)})" if worst else ""
    if not own:
        return text
    which = "the ratios" if len(own) == len(known) else f"the ratios of {len(own)} of {len(known)} rows"
    return f"{text}; {which} leave that out, the times of a call have it in them"


def controls_line(controls: Rows) -> str:
    """What the A/A controls of a comparison showed; "" without any."""
    if not controls:
        return ""
    flagged, failed = len(controls.of(*CHANGED)), len(controls.of("failed"))
    one = len(controls) == 1
    what = f"{plural(len(controls), 'identical row')} {'was' if one else 'were'} measured as "
    what += "an A/A control" if one else "A/A controls"
    if flagged:
        return f"{what}: {flagged} flagged, so some verdicts here are likely to be false too"
    return f"{what}: none flagged{f', {failed} failed' if failed else ''}"


def capital(line: str) -> str:
    """A sentence of a line that begins in the middle of one; "" of none."""
    return f"{line[0].upper()}{line[1:]}." if line else ""


def _rough_share(value: float) -> str:
    """Two digits of a small share: `0.75 %`."""
    return f"{value * 100:.2g} %" if value < 0.1 else f"{value * 100:.0f} %"


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
    return capital("; ".join(part for part in parts if part))


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
    texts = {what: f"{number:,} {what}" for what, number in numbers.items() if number}
    if both := {row.case for row in rows.of("failed") if row.reason.endswith(BASE_TOO)}:
        texts["failed"] += f" ({len(both):,} in the base too)"
    return ", ".join([*changes, *texts.values()])


def _changes(rows: Rows) -> list[str]:
    regressed, improved = rows.of("regressed"), rows.of("improved")
    allowed = sum(row.gate == "passed" for row in regressed)
    excuse = f" ({allowed} within {'its gate' if allowed == 1 else 'their gates'})" if allowed else ""
    parts = [f"{plural(len(regressed), 'regression')}{excuse}"] if regressed else []
    return [*parts, *([plural(len(improved), "improvement")] if improved else [])]


def verdict_line(comparison: Comparison) -> str:
    """The outcome, marked where somebody has to act."""
    text, status = headline(comparison), comparison_exit_code(comparison)
    if status is ExitCode.OK:
        return text
    return f"{'🚩' if status is ExitCode.REGRESSION else '🚨'} Needs attention: {text[0].lower()}{text[1:]}"


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
    both = (comparison.base.toolchains, comparison.head.toolchains)
    base, head = (f"IREE {' and '.join(toolchains)}" if toolchains else "" for toolchains in both)
    versions = head if base == head else f"{head} vs. {base}" if releases else ""
    how = "as the run recorded it" if comparison.within else "as their runs recorded them"
    if comparison.mode == "remeasured":
        how = f"both measured side by side on {comparison.machine.description}"
    run = f"of run {comparison.head.run}" if comparison.within else ""
    return ", ".join(part for part in (run, versions, how) if part)


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
    floors = []
    for metric, group in Rows(row for row in rows.timed if row.floor > 0).by_metric().items():
        of_metric = sorted({row.floor for row in group})
        floors.append(f"{metric_title(metric).lower()} {' or '.join(map(share, of_metric))}")
    timed = ", ".join(floors)
    return (
        f"A timed row is changed where the change is larger than the floor"
        f"{f' ({timed})' if timed else ''}{level}{confirmed}. Counted figures need no statistics: any difference is a "
        "change, of sizes one beyond its floor."
    )


# --- What to do next ---


def next_steps(comparison: Comparison) -> list[Step]:
    """What to do: decisions that only people can take, then commands; [] where nothing has to be done."""
    rows, suite = real_rows(comparison), comparison.head.suite
    latencies = rows.metric(LATENCY.name)
    others, open_rows = _with_other_outputs(rows), latencies.of("inconclusive")
    open_compiles = Rows(row for row in rows.metric(COMPILE_TIME.name).of("inconclusive") if row.generations)
    where = "there, how often each host is wrong" if comparison.hosts else "how often this machine is wrong"
    table = (
        (any(map(is_regression, rows)), "correct what regressed, or say here why it is worth it"),
        (rows.violated, f"bring {plural(len(rows.violated), 'row')} back within the gates, or move these in {suite}"),
        (rows, _repeat_the_largest(rows)),
        (
            rows.of("outputs differ"),
            "find out which side's outputs are wrong before anything is said of its speed; expected files decide it",
        ),
        (others, f"see whether {_first(others)} should give other outputs: what it computes has changed"),
        (rows.of("failed"), "see what the tools said of the failed rows"),
        (rows.of("missing"), "find out why rows are missing: what the base has, the head should have too"),
        (open_rows, _more_time(comparison, open_rows, "inconclusive row", "row-budget")),
        (open_compiles, _more_time(comparison, open_compiles, "inconclusive compilation time", "compile-budget")),
        (controls(comparison).of(*CHANGED), Step(f"find out {where}", f"harness selfcheck {shlex.quote(suite)}")),
    )
    steps = [Step(step) if isinstance(step, str) else step for holds, step in table if holds and step is not None]
    if not steps and comparison_exit_code(comparison) is not ExitCode.OK:
        steps = [Step("find out why nothing was compared; the notes and lists here have the reasons")]
    return steps


def _first(names: Sequence[str]) -> str:
    return f"{names[0]} and {len(names) - 1} more" if len(names) > 1 else "".join(names)


def _repeat_the_largest(rows: Rows) -> Step | None:
    """The command of the largest regression of a latency, else of a compile time; what a gate allows comes last."""
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


def _more_time(comparison: Comparison, rows: Rows, noun: str, option: str) -> Step:
    what, command = f"decide {plural(len(rows), noun)}", comparison.command
    if comparison.mode == "recorded":
        again = shlex.join(word for word in command if word != "--no-remeasure")
        return Step(f"{what} by measuring both sides again, side by side", again)
    otherwise, least = max((math.ceil(row.seconds) for row in rows), default=1), setting(comparison, "first_look", 0)
    few = [row for row in rows if 0 < row.generations < least]
    needed = max((math.ceil(least * row.seconds / row.generations) for row in few), default=0)
    if plain := sum(row.lacked_time for row in rows):
        what, option = f"decide {plural(plain, 'row')} that differ{'s' if plain == 1 else ''} plainly", "row-cap"
    twice = 2 * setting(comparison, f"{option.replace('-', '_')}_s", otherwise)
    how = "twice the time" if needed <= twice else "the time that a first look takes"
    return Step(f"{what} with {how}", _with_option(command, f"--{option}", max(twice, needed)))


def _with_option(command: Sequence[str], option: str, seconds: float) -> str:
    words = [word for word in command if not word.startswith(f"{option}=")]
    while option in words:
        at = words.index(option)
        del words[at : at + 2]
    return shlex.join([*words, option, f"{seconds:.10g}"]) if command else ""


# --- The exit status, and for other programs ---


def comparison_exit_code(comparison: Comparison, *, strict: bool = False) -> ExitCode:
    """1 for a regression or a violated gate; else 3 for a failed or missing row, or if nothing was compared; else 0."""
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
