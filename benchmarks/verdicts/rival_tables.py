"""Other tools' rules, and other statistics, on the same turns."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from benchmarks.verdicts.contest import COMPARABLE, Score, beaten, contest
from benchmarks.verdicts.estimators import ESTIMATORS, USED, Spread, compare_intervals, load_order, place_effect, spread
from benchmarks.verdicts.programs import SLOWDOWNS
from benchmarks.verdicts.recording import Recorded
from benchmarks.verdicts.stream_names import is_quiet, is_waiting, slowdown_of
from benchmarks.verdicts.trials import BUDGET_S, Streams
from benchmarks.verdicts.words import percent
from harness.report.markdown import blocks, details, table
from harness.stats.intervals import locate
from harness.stats.pairing import FloatArray
from harness.text import plural


def rivals(streams: Streams, *, quiet: bool) -> str:
    """Every rule on the same stretches, of the quiet streams or of those beside others."""
    chosen = {
        name: one
        for name, one in streams.items()
        if is_quiet(name) == quiet and not is_waiting(name) and slowdown_of(name)[1] <= SLOWDOWNS[-1]
    }
    if not chosen:
        return "None was recorded."
    scores = contest(chosen, budget_s=BUDGET_S)
    slowdowns = sorted({share for name in chosen if (share := slowdown_of(name)[1])})
    heads = ["rule", "false alarms", *(f"+{share * 100:g} %" for share in slowdowns), "mean s"]
    rows = [
        [
            f"**{one.name}**" if one.own else one.name,
            f"{percent(one.alarm_rate, 1)} ({one.alarm_count.hits} of {one.alarm_count.trials})",
            *(percent(one.power(share)) for share in slowdowns),
            f"{one.seconds:.1f}" if one.seconds is not None else f"{BUDGET_S:g}",
        ]
        for one in scores
    ]
    lines = beaten(scores, slowdowns)
    verdict = (
        "\n".join(f"- {line}" for line in lines)
        if lines
        else "- None finds more at any of these sizes, at a comparable rate."
    )
    over = f"over {_minutes(chosen.values()):.0f} minutes (the median of streams)"
    return blocks(
        f"Stretches of {BUDGET_S:g} s, overlapping, the same for all rules; false alarms are answers of `slower` or "
        "`faster` on equal modules, the rest answers of `slower` on slowed ones; each is a mean over workloads. What "
        "a rule with a threshold of 10 % finds below 10 % is noise. Compare a rule's power with its false alarms: one "
        "that cries in a third of equal rows finds a third of anything. The streams were recorded in turns, so that a "
        f"stretch was recorded {over}: the base and the head of rules that do not measure in turns lie as far apart."
        if quiet
        else f"As above; a stretch was recorded {over}.",
        table(heads, rows, numbers=[False, *[True] * (len(heads) - 1)]),
        *(
            f"`{one.name}` ran out of generations in {plural(one.left_out, 'stretch', 'stretches')}, not found there."
            for one in scores
            if one.left_out
        ),
        f"Rules that find more than the harness, with at most {percent(COMPARABLE)} more false alarms a row:",
        verdict,
        details("By workload", _by_workload(scores, slowdowns)),
        details("Which data each rule was given", "\n".join(f"- {one.name}: {one.given}." for one in scores))
        if quiet
        else "",
    )


def _minutes(streams: Iterable[Sequence[Recorded]]) -> float:
    """Between the first and the last generation of a stretch, by the clock; the median of the streams' means."""
    apart = []
    for stream in streams:
        span_s = stream[-1].started_unix - stream[0].started_unix
        apart.append(span_s / 60 * min(1.0, BUDGET_S / sum(one.seconds for one in stream)))
    return float(np.median(apart))


def _by_workload(scores: Sequence[Score], slowdowns: Sequence[float]) -> str:
    names = list(dict.fromkeys(name for one in scores for name in one.alarms))
    slow = sorted({key for one in scores for key in one.found}, key=lambda key: (key[0], key[1]))
    alarms = [
        [one.name, *(percent(one.alarms[name].rate, 1) if name in one.alarms else "-" for name in names)]
        for one in scores
    ]
    workload_names = list(dict.fromkeys(name for name, _ in slow))
    found = [
        [
            one.name,
            *(
                " / ".join(
                    f"{one.found[name, share].rate * 100:.0f}" if (name, share) in one.found else "-"
                    for share in slowdowns
                )
                for name in workload_names
            ),
        ]
        for one in scores
    ]
    sizes = " / ".join(f"+{share * 100:g}" for share in slowdowns)
    return blocks(
        table(["false alarms", *names], alarms, numbers=[False, *[True] * len(names)]),
        table([f"% found at {sizes} %", *workload_names], found, numbers=[False, *[True] * len(workload_names)]),
    )


def statistics(streams: Streams) -> str:
    """Statistics of a generation, and intervals over generations, of quiet streams and of those without own time."""
    equal = {
        name: stream
        for name, stream in streams.items()
        if slowdown_of(name)[1] == 0
        and len(stream) > 1
        and (is_quiet(name) or not any(one.own_share for one in stream))
    }
    cells: dict[str, list[str]] = {name: [] for name in ESTIMATORS}
    lost = []
    for stream, several in equal.items():
        spreads = {name: spread(np.array([of(one) for one in several])) for name, of in ESTIMATORS.items()}
        for name, one in spreads.items():
            cells[name].append(f"{one.deviation * 100:.2f} / {one.robust * 100:.2f} / {one.margin * 100:.3f}")
        for what, figures in _figures(spreads).items():
            best = min(figures, key=lambda name: figures[name])
            if figures[best] < 0.995 * figures[USED]:
                ratio = figures[USED] / figures[best]
                lost.append([stream, what, best, f"{ratio:.2f}"])
    intervals = [
        compare_intervals([_centres(stream) for name, stream in equal.items() if is_quiet(name)], size)
        for size in (8, 16, 32)
    ]
    rows = [
        [
            f"{one.size}",
            f"{one.stretches}",
            percent(one.confidence, 1),
            f"{one.rank_width * 50:.2f} %",
            f"{one.t_width * 50:.2f} %",
            percent(one.rank_covers, 1),
            percent(one.t_covers, 1),
        ]
        for one in intervals
        if one is not None
    ]
    orders = [
        [
            stream,
            f"{centre.centre * 100:+.3f} %",
            f"{centre.low * 100:+.3f} to {centre.high * 100:+.3f} %",
            f"{place_effect(several) * 100:+.2f} %",
            f"{order * 100:+.3f} %",
            f"{p:.3f}",
            f"{spread(_centres(several)).deviation * 100:.2f} %",
            f"{spread(_centres(several)).stretch * 100:.2f} %",
        ]
        for stream, several in equal.items()
        for centre in [locate(_centres(several), confidence=0.95)]
        for order, p in [load_order(several)]
    ]
    heads = ["generations", "stretches", "confidence", "± signed-rank", "± Student", "signed-rank covers", "t covers"]
    return blocks(
        "Of quiet streams, and of those beside others that have no own time. Standard deviation between generations / "
        "the robust one (1.4826 times the median distance from the median) / "
        "mean half width of the 95 % interval of 16 generations, which is what verdicts depend on; of log ratios of "
        "equal modules, in %:",
        table(
            ["statistic", *equal],
            [[name, *values] for name, values in cells.items()],
            numbers=[False, *[True] * len(equal)],
        ),
        "Where another is better than the one used, the best:" if lost else "None is better anywhere.",
        details("By stream", table(["stream", "of", "best", "used / best"], lost, numbers=[False] * 3 + [True]))
        if lost
        else "",
        "Intervals over disjoint stretches of these streams, at the confidence that the exact one attains; covering is "
        "of the whole stream's centre, mean half widths:",
        table(heads, rows, numbers=[True] * len(heads)),
        "What the test supposes, looked at. `centre` of equal modules, which should be zero; by how much the second "
        "turn of a round is slower; by how much the side that was loaded first is slower (Mann-Whitney's p of none); "
        "and the spread of means of eight neighbours times the root of eight, which is the spread of one where "
        "neighbours are independent:",
        table(
            ["stream", "centre", "95 %", "second turn", "loaded first", "p", "spread of one", "of eight"],
            orders,
            numbers=[False, *[True] * 7],
        ),
    )


def _figures(spreads: Mapping[str, Spread]) -> dict[str, dict[str, float]]:
    return {
        "standard deviation": {name: one.deviation for name, one in spreads.items()},
        "robust deviation": {name: one.robust for name, one in spreads.items()},
        "half width": {name: one.margin for name, one in spreads.items()},
    }


def _centres(stream: Sequence[Recorded]) -> FloatArray:
    return np.array([ESTIMATORS[USED](one) for one in stream])
