"""Which statistic of a generation varies least between generations, and which interval of them is narrower."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.verdicts.recording import Recorded
from harness.stats.intervals import locate, lower_tail
from harness.stats.pairing import FloatArray, Ratios

_NORMAL = 1.4826  # a median distance times this is a standard deviation, where values are normal


def logs_of(one: Recorded) -> FloatArray:
    """log(head / base) of each round, by the clock that compares it."""
    base, head = one.sides
    logs: FloatArray = np.log(head) - np.log(base)
    return logs


def both_orders(one: Recorded) -> float:
    """Mean of the medians of the rounds of either order: what the harness takes."""
    return Ratios(logs=logs_of(one), case_first=np.array(one.head_first)).centre


def median(one: Recorded) -> float:
    """Median over rounds, whatever their order."""
    return float(np.median(logs_of(one)))


def mean(one: Recorded) -> float:
    """Mean over rounds."""
    return float(logs_of(one).mean())


def hodges_lehmann(one: Recorded) -> float:
    """Median of the means of all pairs of rounds."""
    logs = logs_of(one)
    rows, columns = np.triu_indices(logs.size)
    return float(np.median((logs[rows] + logs[columns]) / 2))


def abba_pairs(one: Recorded) -> float:
    """Median of the means of a round and the one after it, which has the other order."""
    logs = logs_of(one)
    return float(np.median(logs[: logs.size // 2 * 2].reshape(-1, 2).mean(axis=1)))


def trimmed_mean(one: Recorded) -> float:
    """Mean without the lowest and the highest quarter of the rounds."""
    logs = np.sort(logs_of(one))
    cut = logs.size // 4
    return float(logs[cut : logs.size - cut].mean())


def both_trimmed(one: Recorded) -> float:
    """Mean of the two orders' means, each without its lowest and highest quarter."""
    logs, first = logs_of(one), np.array(one.head_first)
    halves = [np.sort(half) for half in (logs[first], logs[~first]) if half.size]
    return float(np.mean([half[half.size // 4 : half.size - half.size // 4].mean() for half in halves]))


def ratio_of_medians(one: Recorded) -> float:
    """Median time of the head over median time of the base, not paired."""
    base, head = one.sides
    return math.log(float(np.median(head)) / float(np.median(base)))


def ratio_of_minima(one: Recorded) -> float:
    """Shortest time of the head over shortest time of the base."""
    base, head = one.sides
    return math.log(float(head.min() / base.min()))


def lower_quartiles(one: Recorded) -> float:
    """Lower quartile of the head's times over that of the base's: noise only ever adds time."""
    base, head = one.sides
    return math.log(float(np.quantile(head, 0.25)) / float(np.quantile(base, 0.25)))


def lower_quartiles_by_place(one: Recorded) -> float:
    """The same among turns that came first in their round, and among those that came second; the mean of both."""
    first, (base, head) = np.array(one.head_first), one.sides
    places = [(head[first], base[~first]), (head[~first], base[first])]
    return float(
        np.mean([math.log(np.quantile(above, 0.25) / np.quantile(below, 0.25)) for above, below in places])
        if first.any() and not first.all()
        else lower_quartiles(one)
    )


USED = "both orders' medians (used)"
ESTIMATORS: Mapping[str, Callable[[Recorded], float]] = {
    USED: both_orders,
    "median": median,
    "mean": mean,
    "Hodges-Lehmann": hodges_lehmann,
    "median of ABBA pairs": abba_pairs,
    "trimmed mean (25 %)": trimmed_mean,
    "both orders' trimmed means": both_trimmed,
    "ratio of medians": ratio_of_medians,
    "ratio of lower quartiles": lower_quartiles,
    "lower quartiles by place": lower_quartiles_by_place,
    "ratio of minima": ratio_of_minima,
}


@dataclass(frozen=True, kw_only=True)
class Spread:
    """How much a statistic varies between generations; both in the logarithm.

    Attributes:
        deviation: Standard deviation.
        robust: 1.4826 times the median distance from the median.
        stretch: Standard deviation of means of eight consecutive generations, times the root of eight; above
            `deviation` where neighbours err alike.
        margin: Mean half width of the harness's 95 % interval over disjoint stretches of 16 generations: what a
            verdict depends on.
    """

    deviation: float
    robust: float
    stretch: float
    margin: float


def spread(values: FloatArray) -> Spread:
    """Of one statistic over the generations of a stream."""
    whole = values.size // 8 * 8
    eights = values[:whole].reshape(-1, 8).mean(axis=1)
    sixteens = values[: values.size // 16 * 16].reshape(-1, 16)
    margins = [(found.high - found.low) / 2 for found in (locate(one, confidence=0.95) for one in sixteens)]
    return Spread(
        deviation=float(values.std(ddof=1)),
        robust=float(_NORMAL * np.median(np.abs(values - np.median(values)))),
        stretch=float(eights.std(ddof=1) * math.sqrt(8)) if eights.size > 1 else math.nan,
        margin=float(np.mean(margins)) if margins else math.nan,
    )


def load_order(stream: Sequence[Recorded]) -> tuple[float, float]:
    """By how much the side that was loaded first is slower, in the logarithm, and the p-value of no difference."""
    from scipy.stats import mannwhitneyu

    base_first = np.array([both_orders(one) for one in stream if one.number % 2 == 0])
    head_first = np.array([both_orders(one) for one in stream if one.number % 2 == 1])
    if not base_first.size or not head_first.size:
        return math.nan, 1.0
    p = float(mannwhitneyu(base_first, head_first).pvalue)
    return float(np.median(head_first) - np.median(base_first)) / 2, p


def place_effect(stream: Sequence[Recorded]) -> float:
    """By how much a turn that comes second in its round is slower; the median over generations, in the logarithm."""
    effects = []
    for one in stream:
        logs, first = logs_of(one), np.array(one.head_first)
        if first.any() and not first.all():
            effects.append((np.median(logs[~first]) - np.median(logs[first])) / 2)
    return float(np.median(effects)) if effects else math.nan


@dataclass(frozen=True, kw_only=True)
class Intervals:
    """Signed-rank and Student's t intervals of the same stretches, at the confidence that the former attains.

    Attributes:
        size: Generations in a stretch.
        confidence: Of both.
        rank_width: Mean over stretches, in the logarithm; t_width likewise.
        rank_covers: Share of stretches whose interval holds the whole stream's centre; t_covers likewise.
    """

    size: int
    stretches: int
    confidence: float
    rank_width: float
    t_width: float
    rank_covers: float
    t_covers: float


def compare_intervals(streams: Sequence[FloatArray], size: int) -> Intervals | None:
    """Both intervals over disjoint stretches of several streams, each around its own centre; None without stretches."""
    from scipy.special import stdtrit

    attained = 1 - 2 * _largest_tail(size, 0.025)
    quantile = float(stdtrit(size - 1, (1 + attained) / 2))
    found = []
    for values in streams:
        centred = values - locate(values, confidence=0.95).centre if values.size else values
        for stretch in centred[: values.size // size * size].reshape(-1, size):
            ranks = locate(stretch, confidence=attained - 1e-12)
            half = quantile * float(stretch.std(ddof=1)) / math.sqrt(size)
            middle = float(stretch.mean())
            found.append((ranks.high - ranks.low, 2 * half, ranks.low <= 0 <= ranks.high, abs(middle) <= half))
    if not found:
        return None
    rank_width, t_width, rank_covers, t_covers = np.array(found, dtype=np.float64).mean(axis=0)
    return Intervals(
        size=size,
        stretches=len(found),
        confidence=attained,
        rank_width=float(rank_width),
        t_width=float(t_width),
        rank_covers=float(rank_covers),
        t_covers=float(t_covers),
    )


def _largest_tail(size: int, most: float) -> float:
    """The largest attainable P(T <= t) that is not above `most`."""
    tails = [lower_tail(count, size) for count in range(size * (size + 1) // 4)]
    return max((tail for tail in tails if tail <= most), default=0.0)
