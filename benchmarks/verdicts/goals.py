"""What was asked of the rule, each with the figure that was measured."""

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.verdicts.recording import Recorded
from benchmarks.verdicts.stream_names import is_quiet, is_waiting, slowdown_of
from benchmarks.verdicts.trials import BUDGET_S, Streams, Trials, as_sampled, play_disjoint, play_overlapping
from benchmarks.verdicts.words import between, percent
from harness.report.markdown import blocks, table
from harness.stats.intervals import rate_bounds
from harness.text import plural


@dataclass(frozen=True, kw_only=True)
class Goal:
    """A change that is to be found in a share of trials.

    Attributes:
        streams: Whose trials count together.
        within_s: Seconds by which the confirmation has to have ended; also the budget. None: the default budget, and as
            long as it takes.
    """

    what: str
    goal: str
    streams: Sequence[str]
    within_s: float | None = BUDGET_S
    floor: float = 0.01


_COMPANY = " beside two hogs a core"
GOALS = (
    Goal(
        what="+1 % on 5 ms, floor 0.5 %, 15 s with confirmation, quiet",
        goal="at least 95 % of 100 trials",
        streams=["loop +1 %"],
        floor=0.005,
    ),
    Goal(
        what="+1.5 % on 0.5, 3 and 20 ms, two hogs on each core, 15 s",
        goal="at least 90 %",
        streams=[f"{name} +1.5 %{_COMPANY}" for name in ("softmax", "reduction", "depthwise")],
    ),
    Goal(
        what="+3 % on 200 ms, 30 s with confirmation, quiet", goal="at least 90 %", streams=["long +3 %"], within_s=30
    ),
    Goal(
        what="the same beside two hogs on each core",
        goal="at least 90 %",
        streams=[f"long +3 %{_COMPANY}"],
        within_s=30,
    ),
    Goal(what="2-fold on 3 s calls, default settings", goal="100 %", streams=["slow +100 %"], within_s=None),
    Goal(what="8-fold on 3 s calls, default settings", goal="100 %", streams=["slow +700 %"], within_s=None),
)


def goals(streams: Streams, elsewhere: Streams) -> str:
    """The goals, one line each, on this machine and elsewhere; one whose streams were not recorded says so."""
    lines, more = _lines(streams), _lines(elsewhere)
    heads = ["what", "goal", "measured"]
    if elsewhere:
        heads.append("elsewhere")
        lines = [[*line, other[-1]] for line, other in zip(lines, more, strict=True)]
    return blocks(
        "Trials overlap, and are worth the number of disjoint ones that is given; one that ran out of recorded "
        "generations counts as not found. A rate of 0.1 % is bounded by 3,000 rows without an alarm, and 1,000 bound "
        "it by 0.3 %.",
        table(heads, lines),
    )


def _lines(streams: Streams) -> list[list[str]]:
    lines = [_equal(streams), *(_line(goal, streams) for goal in GOALS)]
    return [*lines, *(_waiting(streams, quiet=quiet) for quiet in (True, False))]


def _equal(streams: Streams) -> list[str]:
    played = [
        play_disjoint(as_sampled(stream), budget_s=BUDGET_S).long_enough
        for name, stream in streams.items()
        if slowdown_of(name)[1] == 0
    ]
    rows, alarms = sum(one.size for one in played), sum(one.false_alarms for one in played)
    return [
        "equal modules called changed, quiet and beside others, disjoint rows with a budget of 15 s",
        "at most 0.1 %, of 1,000 rows",
        f"{alarms} of {rows:,} ({between(rate_bounds(alarms, rows))})",
    ]


def _line(goal: Goal, streams: Streams) -> list[str]:
    there = {name: streams[name] for name in goal.streams if name in streams}
    budget_s = goal.within_s or BUDGET_S
    played = {
        name: play_overlapping(as_sampled(stream), budget_s=budget_s, floor=goal.floor)
        for name, stream in there.items()
    }
    every = list(played.values())
    if not sum(one.started for one in every):
        return [goal.what, goal.goal, "not recorded"]
    within = [f"{_found(every, within_s=goal.within_s)} within {goal.within_s:g} s"] if goal.within_s else []
    of_each = [f"{name.split()[0]} {_found([one])}" for name, one in played.items()] if len(played) > 1 else []
    worth = f"worth {plural(round(sum(one.disjoint for one in every)), 'disjoint one')}"
    return [goal.what, goal.goal, "; ".join([*within, f"{_found(every)} in the end ({worth})", *of_each])]


def _found(played: Sequence[Trials], *, within_s: float | None = None) -> str:
    started = sum(one.started for one in played)
    found = sum(one.found() if within_s is None else one.found(within_s=within_s) for one in played)
    ran_out = sum(one.left_out for one in played) if within_s is None else 0
    return f"{percent(found / started, 1)} ({found} of {started}{f', {ran_out} ran out' if ran_out else ''})"


def _waiting(streams: Streams, *, quiet: bool) -> list[str]:
    what = f"a head that waits instead of computing (+3 %), {'quiet' if quiet else 'two hogs on each core'}"
    heads = [one for name, one in streams.items() if is_waiting(name) and is_quiet(name) == quiet]
    if not heads:
        return [what, "as often as by wall time", "not recorded"]
    by_wall: list[Sequence[Recorded]] = [[one.by_wall_time for one in head] for head in heads]
    own, wall = (
        _found([play_overlapping(as_sampled(head), budget_s=BUDGET_S) for head in several])
        for several in (heads, by_wall)
    )
    return [what, "as often as by wall time", f"{own} found; by wall time {wall}"]
