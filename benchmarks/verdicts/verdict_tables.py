"""How often the harness's verdicts are wrong, what they find and how long that takes."""

import math
from collections.abc import Sequence

import numpy as np

from benchmarks.verdicts.estimators import ESTIMATORS, USED, spread
from benchmarks.verdicts.programs import SLOWDOWNS
from benchmarks.verdicts.recording import Recorded
from benchmarks.verdicts.stream_names import company_of, is_quiet, is_waiting, slowdown_of
from benchmarks.verdicts.trials import (
    BUDGET_S,
    Streams,
    Trials,
    as_sampled,
    play_disjoint,
    play_overlapping,
    play_together,
    rows_of,
    slowed,
)
from benchmarks.verdicts.words import between, percent
from harness.report.markdown import blocks, details, table
from harness.stats.intervals import rate_bounds
from harness.stats.pairing import FloatArray
from harness.stats.rule import Rule

BUDGETS_S = (5.0, 15.0, 60.0)
NO_FLOOR = 0.0001
FLOORS = (0.01, 0.005)
ROWS_TOGETHER = 20


def false_alarms(streams: Streams) -> str:
    """Equal modules, disjoint trials, by budget."""
    return blocks(
        "Disjoint trials of one row, floor 1 %. The bound is the exact binomial one (Clopper and Pearson), 95 %, "
        "one-sided where there was no alarm. Rows that had no room for eight generations cannot be called changed, and "
        "are no part of the sums.",
        *(_false_alarms(streams, budget_s) for budget_s in (BUDGET_S, BUDGETS_S[0])),
        _without_a_floor(streams),
    )


def _without_a_floor(streams: Streams) -> str:
    """What the test alone does: the floor is so low that it protects from nothing."""
    equal = [stream for name, stream in streams.items() if slowdown_of(name)[1] == 0]
    played = [play_disjoint(as_sampled(stream), budget_s=BUDGET_S, floor=NO_FLOOR) for stream in equal]
    size, alarms = sum(one.size for one in played), sum(one.false_alarms for one in played)
    first = alarms + sum(one.unconfirmed for one in played)
    return (
        f"The floor alone would keep most of these quiet. With one of {percent(NO_FLOOR, 2)}, which protects from "
        f"nothing, {first} of {size} rows were found to differ first ({between(rate_bounds(first, size))}; the rule "
        f"allows {percent(Rule().alpha)}), and {alarms} were confirmed ({between(rate_bounds(alarms, size))})."
    )


def _false_alarms(streams: Streams, budget_s: float) -> str:
    played = {
        name: play_disjoint(as_sampled(stream), budget_s=budget_s)
        for name, stream in streams.items()
        if slowdown_of(name)[1] == 0
    }
    quiet = _pooled([one.long_enough for name, one in played.items() if is_quiet(name)])
    every = _pooled([one.long_enough for one in played.values()])
    rows = [
        [
            name,
            f"{trials.size}",
            f"{trials.count('regressed')}",
            f"{trials.count('improved')}",
            f"at most {percent(trials.bounds[1], 2)}" if not trials.false_alarms else between(trials.bounds),
            f"{trials.count('unchanged')}",
            f"{trials.count('inconclusive')}",
            f"{trials.seconds:.1f}",
        ]
        for name, trials in [*played.items(), ("all quiet ones", quiet), ("all", every)]
        if trials.size
    ]
    heads = [f"budget {budget_s:g} s", "rows", "regressed", "improved", "rate", "unchanged", "inconclusive", "mean s"]
    return table(heads, rows, numbers=[False, *[True] * 7])


def _pooled(several: Sequence[Trials]) -> Trials:
    return Trials(
        outcomes=tuple(outcome for one in several for outcome in one.outcomes),
        left_out=sum(one.left_out for one in several),
        disjoint=sum(one.disjoint for one in several),
    )


def power(streams: Streams) -> str:
    """Slowed heads by budget and floor; then the long streams of equal modules, moved, for the long budget."""
    heads = [
        "stream",
        "found",
        "within the budget",
        "called unchanged",
        "mean s",
        "estimate",
        "trials",
        "as disjoint ones",
        "ran out",
    ]
    parts = [
        "Trials overlap (one starts every few generations), so they are worth fewer disjoint ones. `found`: called "
        "regressed, confirmation in fresh processes included; `within the budget`: confirmation ended before the "
        "budget did; `called unchanged`: wrong for anything slower than the floor; `mean s`: confirmation included; "
        "`ran out`: trials that needed more generations than the stream has. Where some ran out, the share found lies "
        "between the two figures given: none of those, or all.",
    ]
    numbers = [False, *[True] * 8]
    for floor in FLOORS:
        for budget_s in BUDGETS_S:
            rows = []
            for name, stream in streams.items():
                if slowdown_of(name)[1] and is_quiet(name) and not is_waiting(name):
                    trials = play_overlapping(as_sampled(stream), budget_s=budget_s, floor=floor)
                    rows.append([name, *_power(trials, budget_s)])
            title = f"Budget {budget_s:g} s, floor {percent(floor, 1)}"
            parts.append(
                details(title, table(heads, rows, numbers=numbers), folded=(floor, budget_s) != (FLOORS[0], BUDGET_S))
            )
    parts.append(_where_missed(streams))
    moved = [
        [f"{name}, head moved by {percent(share)}", *_power(trials, BUDGETS_S[-1])]
        for name, stream in streams.items()
        if slowdown_of(name)[1] == 0 and is_quiet(name)
        for share in SLOWDOWNS[1:4]
        for trials in [play_overlapping(slowed(as_sampled(stream), share), budget_s=BUDGETS_S[-1])]
    ]
    parts.append(
        "Most slowed streams are too short for 60 s and a confirmation, and most streams of equal modules are not: "
        "here they are with every head turn's time multiplied. `estimate` above shows how much slower the programs are "
        "measured that were slowed for real."
    )
    parts.append(details("Budget 60 s, floor 1 %, streams moved", table(heads, moved, numbers=numbers)))
    return blocks(*parts)


def _where_missed(streams: Streams) -> str:
    """Whether misses are of the finding or of the confirmation."""
    every = []
    for name, stream in streams.items():
        sampled, slowdown = as_sampled(stream), slowdown_of(name)[1]
        if is_quiet(name) and not is_waiting(name) and slowdown >= SLOWDOWNS[2]:
            every.append(sampled)
        elif is_quiet(name) and not slowdown:
            every += [slowed(sampled, share) for share in SLOWDOWNS[2:5]]
    played = [play_overlapping(one, budget_s=BUDGET_S) for one in every]
    size = sum(one.started for one in played)
    missed = size - sum(one.found() for one in played)
    ran_out = sum(one.left_out for one in played)
    return (
        f"With {BUDGET_S:g} s and a floor of {percent(FLOORS[0])}, {missed} of {size} trials of heads "
        "that are slower by 2 % or more, really or moved, missed it; "
        f"{sum(one.unconfirmed for one in played)} of them had found it, and lost it at the confirmation; {ran_out} "
        "ran out of generations."
    )


def _power(trials: Trials, budget_s: float) -> list[str]:
    if not trials.size:
        return ["-", "-", "-", "-", "-", "0", "0", f"{trials.left_out}"]
    every = trials.started

    def share(hits: int) -> str:
        if not trials.left_out:
            return percent(hits / trials.size)
        return f"{percent(hits / every)} to {percent((hits + trials.left_out) / every)}"

    return [
        share(trials.found()),
        share(trials.found(within_s=budget_s)),
        percent(trials.count("unchanged") / trials.size),
        *_typical(trials)[::-1],
        f"{trials.size}",
        f"{trials.disjoint:.1f}",
        f"{trials.left_out}",
    ]


def clocks(streams: Streams) -> str:
    """Own time beside wall time, on the same turns."""
    rows = []
    for name, stream in streams.items():
        if is_waiting(name) or not any(one.own_share for one in stream):
            continue
        own, wall = _centres(stream), _centres(_by_wall(stream))
        spreads = [spread(values).robust for values in (own, wall)]
        calls = [float(np.median([np.median(one.sides[0]) for one in each])) for each in (stream, _by_wall(stream))]
        rows.append(
            [
                name,
                f"{np.mean([one.own_share for one in stream]) * 100:.0f} %",
                *(f"{robust * 100:.2f} %" for robust in spreads),
                f"{(spreads[1] / spreads[0]) ** 2:.1f}",
                *(f"{math.expm1(float(np.median(values))) * 100:+.2f} %" for values in (own, wall)),
                f"{(calls[0] / calls[1] - 1) * 100:+.2f} %",
            ]
        )
    heads = [
        "stream",
        "rounds by own time",
        "spread, own",
        "spread, wall",
        "less machine time",
        "estimate, own",
        "estimate, wall",
        "own time of a call / wall time",
    ]
    return blocks(
        "The robust deviation between generations if own time decides, and if wall time does; `less machine time` is "
        "the square of their ratio: so many times as many generations by wall time tell as much. The estimates are "
        "medians over all generations; a call's times are those of the base.",
        table(heads, rows, numbers=[False, *[True] * 7]),
    )


def _by_wall(stream: Sequence[Recorded]) -> list[Recorded]:
    return [one.by_wall_time for one in stream]


def _centres(stream: Sequence[Recorded]) -> FloatArray:
    return np.array([ESTIMATORS[USED](one) for one in stream])


def beside_others(streams: Streams) -> str:
    """Streams that were recorded beside busy processes, by own time and by wall time, each with its quiet twin."""
    rows = []
    for name, busy in streams.items():
        quiet = streams.get(name.partition(" beside ")[0])
        if is_quiet(name) or is_waiting(name) or quiet is None:
            continue
        rows += [
            _company_row(name.partition(" beside ")[0], name, quiet),
            _company_row(f"beside {company_of(name)}", name, busy),
        ]
        if any(one.own_share for one in busy):
            rows.append(_company_row("the same by wall time", name, _by_wall(busy)))
    heads = [
        "stream",
        "spread of a generation",
        "regressed / improved / of",
        "unchanged / inconclusive",
        "estimate",
        "s",
    ]
    return blocks(
        f"Budget {BUDGET_S:g} s, floor 1 %. Trials of slowed heads overlap. `a hog` computes for half a second and "
        "rests for half a second on the other core; `two hogs a core` compute on every core all the time; `hogs that "
        "come and go` compute on every core for 0.2 to 2 s, and rest as long. `spread` is the standard deviation; `of` "
        "counts trials that ran out of generations too.",
        table(heads, rows, numbers=[False, *[True] * 5]),
    )


def _company_row(label: str, name: str, stream: Sequence[Recorded]) -> list[str]:
    sampled = as_sampled(stream)
    trials = (play_overlapping if slowdown_of(name)[1] else play_disjoint)(sampled, budget_s=BUDGET_S)
    return [
        label,
        f"{spread(_centres(stream)).deviation * 100:.2f} %",
        f"{trials.count('regressed')} / {trials.count('improved')} / {trials.started}",
        f"{trials.count('unchanged')} / {trials.count('inconclusive')}",
        *_typical(trials),
    ]


def waiting(streams: Streams) -> str:
    """Heads that wait instead of computing: found as often as without own time?"""
    rows = []
    for name, stream in streams.items():
        if not is_waiting(name):
            continue
        cells = [name, f"{np.mean([one.own_share for one in stream]) * 100:.0f} %"]
        for each in (stream, _by_wall(stream)):
            trials = play_overlapping(as_sampled(each), budget_s=BUDGET_S)
            cells += [f"{trials.found()} of {trials.started}", *_typical(trials)[:1]]
        rows.append(cells)
    heads = ["stream", "rounds by own time", "found", "estimate", "found by wall time", "estimate"]
    return blocks(
        "The head makes the base's call and then waits: it sleeps, waits for another process (pipe) or for another "
        "thread that sleeps (lock), or reads pages from disk. Whoever waits wakes up later than it asked for, so the "
        f"change is larger than its name. Budget {BUDGET_S:g} s, floor 1 %, trials overlap.",
        table(heads, rows, numbers=[False, *[True] * 5]) if rows else "None was recorded.",
    )


def _typical(trials: Trials) -> list[str]:
    """Estimate and seconds."""
    return [f"{trials.estimate * 100:+.2f} %", f"{trials.seconds:.1f}"] if trials.size else ["-", "-"]


def together(streams: Streams) -> str:
    """Comparisons of many rows, whose p-values are corrected together."""
    equal = [
        as_sampled(stream)
        for name, stream in streams.items()
        if slowdown_of(name) in [(one, 0.0) for one in ("matmul", "tiny", "loop", "threads")] and is_quiet(name)
    ]
    parts = []
    for budget_s in BUDGETS_S[:2]:
        every = 3 * math.ceil(budget_s / min(np.mean([one.seconds for one in each]) for each in equal)) + 4
        rows = []
        for share in (0.0, 0.02, 0.03, 0.05):
            one = play_together(equal, rows=ROWS_TOGETHER, budget_s=budget_s, share=share, every=every)
            found = f"{one.found} of {one.comparisons}" if share else "-"
            name = f"+{share * 100:g} %" if share else "no row"
            rows.append([name, f"{one.with_false_alarm} of {one.comparisons}", found, f"{one.dropped}"])
        heads = [f"slowed, budget {budget_s:g} s", "with a false alarm", "slowed row found", "ran out", "drawn from"]
        size = f"{len(rows_of(equal, every))} rows"
        parts.append(table(heads, [[*row, size] for row in rows], numbers=[False, True, True, True, True]))
    return blocks(
        f"Comparisons of {ROWS_TOGETHER} rows of equal modules (matmul, tiny, loop and threads), decided together, so "
        "that p-values are corrected for their number; in one row of each the head's times are multiplied. Each draws "
        f"its {ROWS_TOGETHER} at random from the streams cut into pieces (`drawn from`), so comparisons share many of "
        "their rows, and all of them are worth about as many as there are pieces for.",
        *parts,
    )
