"""What was asked of the rule, each with the figure that was measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.verdicts.trials import Streams, Trials, as_sampled, play_disjoint, play_overlapping, slowdown_of
from benchmarks.verdicts.words import between, percent
from harness.report.markdown_text import table
from harness.stats.intervals import rate_bounds

BUDGET_S = 15.0


@dataclass(frozen=True, kw_only=True)
class Goal:
    """A change that is to be found in a share of trials.

    Attributes:
        streams: Whose trials count together.
        within_s: Seconds by which the confirmation has to have ended; also the budget.
        cap_s: Of a row that differs plainly.
    """

    what: str
    goal: str
    streams: Sequence[str]
    within_s: float = BUDGET_S
    floor: float = 0.01
    cap_s: float = 0.0


_COMPANY = " beside two hogs a core"
GOALS = (
    Goal(
        what="+1 % on 5 ms, floor 0.5 %, 15 s with confirmation, quiet",
        goal="at least 95 %",
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
    Goal(what="2-fold on 3 s calls, default settings", goal="100 %", streams=["slow +100 %"], cap_s=1800),
    Goal(what="8-fold on 3 s calls, default settings", goal="100 %", streams=["slow +700 %"], cap_s=1800),
)


def goals(streams: Streams) -> str:
    """The goals, one line each; one whose streams were not recorded says so."""
    lines = [_equal(streams)]
    for goal in GOALS:
        there = [streams[name] for name in goal.streams if name in streams]
        played = [
            play_overlapping(as_sampled(stream), budget_s=goal.within_s, floor=goal.floor, cap_s=goal.cap_s)
            for stream in there
        ]
        lines.append([goal.what, goal.goal, _found(played, goal) if there else "not recorded"])
    return table(("what", "goal", "measured"), lines)


def _equal(streams: Streams) -> list[str]:
    played = [
        play_disjoint(as_sampled(stream), budget_s=BUDGET_S)
        for name, stream in streams.items()
        if slowdown_of(name)[1] == 0
    ]
    rows, alarms = sum(one.size for one in played), sum(one.false_alarms for one in played)
    return [
        "equal modules called changed, quiet and beside others, at least 1,000 disjoint rows of 15 s",
        "at most 0.1 %",
        f"{alarms} of {rows:,} ({between(rate_bounds(alarms, rows))})",
    ]


def _found(played: Sequence[Trials], goal: Goal) -> str:
    """Of all trials that started; those that ran out of generations count as not found."""
    every = sum(one.size + one.left_out for one in played)
    if not every:
        return "not measured: too few generations"
    found, within = sum(one.found() for one in played), sum(one.found(within_s=goal.within_s) for one in played)
    left_out = sum(one.left_out for one in played)
    ran_out = f"; {left_out} ran out of generations" if left_out else ""
    text = f"{percent(found / every)} found ({found} of {every} overlapping trials{ran_out})"
    if goal.cap_s:
        return text
    return f"{text}, {percent(within / every)} with the confirmation within {goal.within_s:g} s"
