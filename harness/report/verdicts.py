"""What verdicts and metrics are called, marked and coloured; in which order the rows of a comparison stand.

A run's rows are judged against its baseline as a comparison's are against the base; only the words differ.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from harness.metrics import COMPILE_TIME, INSTRUCTIONS, LATENCY, TIMED, metric_title
from harness.records.comparison import Comparison, Row, SelfcheckFacts, Verdict
from harness.report.page import Tone
from harness.report.units import Unit, share, unit_of
from harness.stats import CONFIDENCE
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
    def new(self) -> Rows:
        """New rows, of each case its latency where it has one, else all of them."""
        new = self.of("new")
        timed = set(new.metric(LATENCY.name).cases)
        return Rows(row for row in new if row.metric == LATENCY.name or row.case not in timed)

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
