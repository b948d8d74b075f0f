"""What was asked of the rule, each with the figure that was measured."""

from __future__ import annotations

from benchmarks.verdicts.trials import Streams, Trials, as_sampled, play_disjoint, play_overlapping
from benchmarks.verdicts.words import between, percent
from harness.report.markdown_text import table
from harness.stats.intervals import rate_bounds

BUDGET_S = 15.0
LONG_BUDGET_S = 30.0
FINE_FLOOR = 0.005


def goals(streams: Streams) -> str:
    """The goals, one line each; a stream that was not recorded leaves its line out."""
    equal = [stream for name, stream in streams.items() if name.endswith("A/A")]
    played = [play_disjoint(as_sampled(stream), budget_s=BUDGET_S) for stream in equal]
    rows = sum(one.size for one in played)
    alarms = sum(one.false_alarms for one in played)
    lines = [
        [
            "equal modules called regressed or improved, at least 400 rows of 15 s",
            "at most 0.1 %",
            f"{alarms} of {rows} ({between(rate_bounds(alarms, rows))})",
        ]
    ]
    asked = (
        ("loop +1 %", BUDGET_S, FINE_FLOOR, "the 5 ms loop, +1 %, floor 0.5 %, in 15 s", "at least 90 %"),
        ("loop +1 % beside a hog", BUDGET_S, FINE_FLOOR, "the same beside a hog", "as without"),
        ("long +3 %", LONG_BUDGET_S, 0.01, "the 200 ms loop, +3 %, in 30 s", "at least 90 %"),
        ("long +3 % beside a hog", LONG_BUDGET_S, 0.01, "the same beside a hog", "as without"),
    )
    for name, budget_s, floor, what, goal in asked:
        if name in streams:
            trials = play_overlapping(as_sampled(streams[name]), budget_s=budget_s, floor=floor)
            lines.append([what, goal, _found(trials, budget_s)])
    if "matmul A/A beside a hog" in streams:
        beside = play_disjoint(as_sampled(streams["matmul A/A beside a hog"]), budget_s=BUDGET_S)
        bounds = between(rate_bounds(beside.false_alarms, beside.size))
        lines.append(["equal modules beside a hog", "as without", f"{beside.false_alarms} of {beside.size} ({bounds})"])
    return table(("what", "goal", "measured"), lines)


def _found(trials: Trials, budget_s: float) -> str:
    """Of all trials that started; those that ran out of generations count as not found."""
    every = trials.size + trials.left_out
    if not every:
        return "not measured: too few generations"
    within = trials.found(within_s=budget_s)
    ran_out = f"; {trials.left_out} ran out of generations" if trials.left_out else ""
    return (
        f"{percent(trials.found() / every)} found ({trials.found()} of {every} overlapping trials{ran_out}), "
        f"{percent(within / every)} with the confirmation within {budget_s:g} s"
    )
