"""What `harness history` and `--changes` show: the suites, the events with their causes, and the cases that fail."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from harness.history.changes import Change
from harness.history.events import ChangeEvent
from harness.history.failures import FailingCase, failures_tables, failures_verdict
from harness.metrics import metric_title
from harness.report.page import Bullets, Column, Heading, Name, Page, Part, Step, Steps, Table
from harness.report.units import percent, ratio_text, unit_that_tells
from harness.store.marks import Acknowledgement
from harness.store.schema import BETWEEN_HOSTS
from harness.store.tables import NOTHING_YET
from harness.text import plural

if TYPE_CHECKING:
    import pandas as pd

    from harness.history.dating import Dated

_NAMED = 3
_MOST_ROWS = 100
_CAUSES = (
    "Cause: compiler, machine or harness, by what else changed there and by what the reference toolchain did; else "
    "unknown (docs/history.md). The runs in which a step may have happened are a 95 % range."
)
_ACKNOWLEDGE = (
    " says that a change is known, and with --fixed that it is fixed: it is then listed apart and fails nothing."
)
_CHANCE = (
    "{searched:,} series were searched, {noisy:,} of them timed. In about 1 % of timed series that have no change one "
    "is found (docs/history.md): what counts is seen in several figures or cases, and stays."
)
STATES = {"acknowledged": "acknowledged", "fixed": "marked as fixed"}

# In a device's class its name follows the machine's, so series are counted with the machine's runs.
SUITES_QUERY = """
SELECT runs.suite, runs.machine_class, count(*) AS runs,
       max(runs.started) FILTER (clock = '') AS last,
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


def overview_page(
    suites: pd.DataFrame,
    events: Sequence[ChangeEvent],
    failing: Sequence[FailingCase],
    *,
    last: int,
    notes: Sequence[str],
) -> Page:
    """A line for each suite and class of machines, and the cases that fail."""
    if suites.empty:
        verdict = NOTHING_YET if NOTHING_YET in notes else "Every run here is left out."
        return Page(verdict=verdict, notes=tuple(note for note in notes if note != NOTHING_YET))
    places = zip(suites["suite"], suites["machine_class"], strict=True)
    columns = [
        Column("suite", list(suites["suite"])),
        # Where a suite has several lines, its machines tell them apart.
        Column("machines", list(suites["machine_class"]), rank=0 if suites["suite"].duplicated().any() else 2),
        Column("runs", [f"{count:,}" for count in suites["runs"]], kind="number"),
        Column("series", [f"{int(count):,}" for count in suites["series"].fillna(0)], kind="number"),
        Column("last", [time[:10] if isinstance(time, str) else "" for time in suites["last"]]),
        Column("toolchain", list(suites["toolchain"]), rank=1),
        Column("changed", [_recent_counts(events, *place) for place in places]),
    ]
    legend = [f"changed: how many latencies did so {_span(last)} of a suite, and by what."]
    runs, count = int(suites["runs"].sum()), suites["suite"].nunique()
    return Page(
        verdict=f"{failures_verdict(failing)} {plural(runs, 'run')} of {plural(count, 'suite')}.".lstrip(),
        parts=(Table(columns=columns, after=legend), *failures_tables(failing)),
        notes=(
            "`--changes` says what changed, when and why; `--series PATTERN` shows a series; `--sql` asks anything, "
            "and `--columns` lists what there is to ask.",
            *notes,
        ),
    )


def _span(last: int) -> str:
    return f"in the last {last} runs" if last != 1 else "in the last run"


def _recent_counts(events: Sequence[ChangeEvent], suite: str, machine_class: str) -> str:
    """`▲ 2 compiler, ▼ 1 machine`; a device's class begins with its machine's, or with one of several hosts'."""
    classes = tuple(machine_class.split(BETWEEN_HOSTS))
    counts: Counter[tuple[str, str]] = Counter()
    for event in events:
        if event.recent and event.lead.suite == suite and event.lead.machine_class.startswith(classes):
            counts[_mark(event), event.lead.cause] += len(event.cases)
    return ", ".join(f"{mark} {count} {cause}" for (mark, cause), count in counts.items()) or "none"


def changes_page(
    events: Sequence[ChangeEvent],
    failing: Sequence[FailingCase] = (),
    bisects: Sequence[Dated] = (),
    *,
    searched: int,
    noisy: int,
    last: int,
    command: str,
    notes: Sequence[str],
) -> Page:
    """The cases that fail, the latest changes with their causes, and the earlier ones."""
    settled = [event for event in events if event.settled]
    recent, earlier = (
        [event for event in events if event.recent is is_recent and not event.settled] for is_recent in (True, False)
    )
    changes = [
        _events_table(f"Changes {_span(last)}", recent),
        _events_table("Acknowledged, or marked as fixed", settled, said=True),
        replace(_events_table(plural(len(earlier), "earlier change"), earlier), folded=True),
    ]
    answers = [(Name(dated.question.case), f": {dated.answer}") for dated in bisects if dated.answer]
    steps = [
        Step(f"find the release that began the step of {dated.question.case}", dated.question.command)
        for dated in bisects
        if not dated.is_final
    ]
    searched_for: list[Part] = [Heading("Since which release"), Bullets(answers)] if answers else []
    verdict = changes_verdict(events, searched=searched, last=last)
    return Page(
        verdict=f"{failures_verdict(failing)} {verdict}".lstrip(),
        parts=[
            *failures_tables(failing),
            *(table for table in changes if table.rows),
            *searched_for,
            *([Steps(steps)] if steps else []),
        ],
        notes=(
            *([(Name(f'{command} ID --note "why"'), _ACKNOWLEDGE)] if recent else []),
            *([_CAUSES] if events else []),
            *([_CHANCE.format(searched=searched, noisy=noisy)] if noisy else []),
            *notes,
        ),
    )


def changes_verdict(events: Sequence[ChangeEvent], *, searched: int, last: int) -> str:
    """What the compiler made slower lately, and how many other events there are, in one sentence."""
    if not searched:
        return "No series has two points yet, so there is nothing to find changes in."
    span = _span(last)
    failing = [event for event in events if event.fails]
    others = Counter(event.lead.cause for event in events if event.recent and not event.fails and not event.settled)
    settled = Counter(STATES[event.state] for event in events if event.recent and event.settled)
    rest = ", ".join(
        f"{count} of {'unknown cause' if cause == 'unknown' else f'the {cause}'}" for cause, count in others.items()
    )
    known = ", ".join(f"{count} {state}" for state, count in settled.items())
    closing = f"{f'; other changes: {rest}' if rest else ''}{f'; known: {known}' if known else ''}."
    if not failing:
        new = " anew" if known else ""
        return f"No latency and no compile time became longer by the compiler{new} {span}{closing}"
    first = ", ".join(map(event_text, failing[:_NAMED]))
    more = f" and {len(failing) - _NAMED} more" if len(failing) > _NAMED else ""
    cases = len({(event.lead.suite, event.lead.case) for event in failing})
    return f"{plural(cases, 'case')} became slower by the compiler {span}: {first}{more}{closing}"


def change_record(event: ChangeEvent, change: Change) -> dict[str, Any]:
    """For other programs: a change, its event's id and state, and whether it is recent and a reason to stop."""
    return {
        "id": event.id,
        "state": event.state,
        **asdict(change),
        "recent": event.recent,
        "worse": change.is_worse,
        "fails": event.fails and change is event.lead,
    }


def acknowledgement_records(marks: Sequence[Acknowledgement], events: Sequence[ChangeEvent]) -> list[dict[str, Any]]:
    """For other programs: all that people said of changes, and the ids of those that it holds of now."""
    return [
        {
            **{name: value for name, value in asdict(mark).items() if name not in ("changes", "kind")},
            "changes": [event.id for event in events if mark in event.marks],
        }
        for mark in marks
    ]


def _events_table(title: str, events: Sequence[ChangeEvent], *, said: bool = False) -> Table:
    leads = [event.lead for event in events]
    ids = Column("id", [event.id for event in events], kind="name")
    if said:
        last = [event.marks[-1] for event in events]
        own = [
            Column("state", [STATES[event.state] for event in events]),
            Column("by", [mark.who for mark in last]),
            Column("on", [mark.when[:10] for mark in last]),
            ids,
            Column("note", [mark.note for mark in last], kind="sentence"),
        ]
    else:
        own = [
            Column("cases", [str(len(event.cases)) for event in events], kind="number", rank=2),
            Column("on", [lead.started[:10] for lead in leads], rank=1),
            Column("cause", [lead.cause for lead in leads]),
            ids,
            Column("why", [_why(event) for event in events], kind="sentence"),
        ]
    return Table(
        title=title,
        columns=(
            Column("case", [lead.case for lead in leads], kind="name"),
            Column("change", [f"{_figure(event.lead)} {_amount(event)}" for event in events]),
            Column("first run with it", [lead.first_bad for lead in leads], kind="name"),
            *own,
        ),
        most=_MOST_ROWS,
        after=("--format csv and json have all of them.",) if len(events) > _MOST_ROWS else (),
    )


def _figure(change: Change) -> str:
    """`latency`, or `latency under 3.12.0 (89ece87b89)` where the newest toolchain is not the one that was measured."""
    title = metric_title(change.metric).lower()
    return title if change.role == "newest" else f"{title} under {change.toolchain_after or change.role}"


def event_text(event: ChangeEvent) -> str:
    """`net/stock@cpu latency ▲ +3.9 % (2.00 -> 2.08 ms)`."""
    return f"{event.lead.case} {_figure(event.lead)} {_amount(event)}"


def _amount(event: ChangeEvent) -> str:
    """`▲ +3.9 % (2.00 -> 2.08 ms)`: more than colour marks the direction."""
    lead = event.lead
    kind = "drift " if lead.kind == "drift" else ""
    relative = percent(event.ratio) if math.isfinite(event.ratio) else "new"
    if len(event.cases) > 1:
        levels = "median"
    elif lead.unit == "ratio":
        levels = f"{ratio_text(lead.before)} -> {ratio_text(lead.after)}"
    else:
        unit = unit_that_tells(lead.unit, [lead.before, lead.after])
        levels = f"{unit.text(lead.before)} -> {unit.text(lead.after)} {unit.name}".rstrip()
    return f"{kind}{_mark(event)} {relative} ({levels})"


def _mark(event: ChangeEvent) -> str:
    return "▲" if event.lead.is_worse else "▼"


def _why(event: ChangeEvent) -> str:
    lead = event.lead
    figures = dict.fromkeys(_figure(change) for change in event.changes)
    figures.pop(_figure(lead))
    parts = [lead.evidence]
    if figures:
        parts.append(f"seen too in {', '.join(figures)}")
    if lead.kind == "drift":
        parts.append(f"it goes on until {lead.until}")
    if lead.earliest != lead.latest:
        begins = "began" if lead.kind == "drift" else "happened"
        parts.append(f"it {begins} between {lead.earliest} and {lead.latest}")
    return "; ".join(parts)
