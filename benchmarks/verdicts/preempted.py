"""Devices with threads, which have no own time: whether it helps to trust preempted rounds less."""

from collections.abc import Callable, Mapping

import numpy as np

from benchmarks.verdicts.estimators import both_orders, logs_of, spread
from benchmarks.verdicts.recording import Recorded
from benchmarks.verdicts.stream_names import slowdown_of
from benchmarks.verdicts.trials import Streams
from harness.report.markdown import blocks, table
from harness.stats.pairing import FloatArray


def least_taken(one: Recorded, share: float) -> float:
    """The harness's statistic of the share of the rounds of either order from which least was taken; at least one."""
    logs, taken, first = logs_of(one), _taken(one), np.array(one.head_first)
    kept = []
    for order in (first, ~first):
        places = np.flatnonzero(order)
        if places.size:
            best = places[np.argsort(taken[places], kind="stable")]
            kept.append(np.median(logs[best[: max(1, round(share * places.size))]]))
    return float(np.mean(kept))


def weighed(one: Recorded) -> float:
    """The mean of both orders' medians, each round with the share of its time that was not taken as its weight."""
    logs, weights, first = logs_of(one), 1 - _taken(one), np.array(one.head_first)
    orders = [_weighted_median(logs[order], weights[order]) for order in (first, ~first) if order.any()]
    return float(np.mean(orders))


USED = "all rounds alike (used)"
CHOICES: Mapping[str, Callable[[Recorded], float]] = {
    USED: both_orders,
    "rounds weigh what was not taken": weighed,
    "the half with least taken": lambda one: least_taken(one, 0.5),
    "the quarter with least taken": lambda one: least_taken(one, 0.25),
}


def preempted_rounds(streams: Streams) -> str:
    """How much generations of equal modules vary when rounds from which much was taken count less, or not."""
    rows, lines = [], []
    for name, stream in streams.items():
        known = [one for one in stream if one.taken and None not in one.taken]
        if slowdown_of(name)[1] or not known or any(one.own_share for one in known):
            continue
        spreads = {title: spread(np.array([choice(one) for one in known])) for title, choice in CHOICES.items()}
        used, best = spreads[USED], min(spreads, key=lambda title: spreads[title].margin)
        gain = (used.margin / spreads[best].margin) ** 2
        rows.append(
            [
                name,
                f"{np.mean([_taken(one).mean() for one in known]) * 100:.0f} %",
                *(f"{one.robust * 100:.2f} / {one.margin * 100:.2f}" for one in spreads.values()),
            ]
        )
        lines.append(
            f"- {name}: the narrowest is that of `{best}`; "
            + ("nothing is gained." if best == USED else f"it would save {100 * (1 - 1 / gain):.0f} % of the time.")
        )
    heads = ["stream", "taken", *CHOICES]
    return blocks(
        "A device with threads of its own has no own time, since its calling thread mostly waits. The kernel says of "
        "each of its threads how long it was kept from a core, so a round from which much was taken could count for "
        "less. Robust deviation between generations of equal modules / mean half width of the interval of 16, in %:",
        table(heads, rows, numbers=[False, *[True] * (1 + len(CHOICES))]) if rows else "None was recorded.",
        "\n".join(lines),
    )


def _taken(one: Recorded) -> FloatArray:
    return np.array(one.taken, dtype=np.float64)


def _weighted_median(values: FloatArray, weights: FloatArray) -> float:
    """The value at which half of the weight is reached; the mean of two where it is reached between them."""
    order = np.argsort(values)
    reached = np.cumsum(weights[order]) / max(float(weights.sum()), 1e-9)
    ends = np.minimum(np.searchsorted(reached, [0.5 - 1e-9, 0.5 + 1e-9]), values.size - 1)
    return float(values[order][ends].mean())
