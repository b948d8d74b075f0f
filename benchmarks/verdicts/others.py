"""What other tools' rules say of the same recorded turns: each a pure function of two arrays of times.

Every rule answers with the sign of the change that it would report: 1 slower, -1 faster, 0 neither. What it is given
follows how the tool collects its samples; `given` cuts both from one stretch of a stream as long as the budget. Where a
choice had to be made it favours the tool: base and head are minutes apart, not the days of a stored golden time, and on
the same machine, cores and warm caches.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from benchmarks.verdicts.recording import Recorded
from harness.stats.pairing import FloatArray

REPETITIONS = 10


@dataclass(frozen=True, kw_only=True)
class Samples:
    """One side's times, process by process, in nanoseconds per call."""

    processes: tuple[FloatArray, ...]

    @property
    def repetitions(self) -> FloatArray:
        """The first ten turns of its first process; of as many processes as that takes, where one has fewer."""
        return np.concatenate(self.processes)[:REPETITIONS]

    @property
    def means(self) -> FloatArray:
        """One mean a process."""
        return np.array([one.mean() for one in self.processes])

    def values(self, each: int, most: int) -> FloatArray:
        """So many means of consecutive turns from each of the first processes."""
        parts = [part for one in self.processes[:most] for part in np.array_split(one, each) if part.size]
        return np.array([part.mean() for part in parts])


Rule = Callable[[Samples, Samples], int]


def golden_minimum(base: Samples, head: Samples) -> int:
    """IREE since 2024: min of ten repetitions of one process <= golden time * 1.1, or the test fails; never `faster`.

    Source: `benchmark_test.py` in iree-org/iree-test-suites; the golden time is such a minimum, taken earlier.
    """
    return int(head.repetitions.min() > 1.1 * base.repetitions.min())


def old_threshold(base: Samples, head: Samples) -> int:
    """IREE 2021 to 2024: mean latency of one process's repetitions more than 10 % off (most CPU benchmarks).

    Source: the thresholds in IREE's build_tools/benchmarks/common, deleted in August 2024.
    """
    return _beyond(head.repetitions.mean() / base.repetitions.mean(), 1.1, either_way=0.1)


def compare_py(base: Samples, head: Samples) -> int:
    """google/benchmark's compare.py: two-sided Mann-Whitney U below 0.05, on the repetitions of one process a side.

    Source: tools/gbench/report.py: scipy's mannwhitneyu with its defaults, alpha 0.05, nine or more recommended.
    """
    from scipy.stats import mannwhitneyu

    if min(base.repetitions.size, head.repetitions.size) < 2:
        return 0
    p = float(mannwhitneyu(base.repetitions, head.repetitions, alternative="two-sided").pvalue)
    return _sign(float(np.median(head.repetitions) / np.median(base.repetitions))) if p < 0.05 else 0


def pyperf_student(base: Samples, head: Samples) -> int:
    """As pyperf compare_to: Student's two-sample test at 95 % over all values of both sides.

    Three from each of 20 processes a side, the runner's defaults; fewer processes where the budget has no room for as
    many. Source: pyperf/_compare.py and _utils.py (pooled variance, two-tailed).
    """
    return _t_test(base.values(3, 20), head.values(3, 20), pooled=True)


def welch_processes(base: Samples, head: Samples) -> int:
    """The test pyperf's data deserves: Welch's, at 95 %, with one mean from each process; hyperfine's welch script."""
    return _t_test(base.means[:20], head.means[:20], pooled=False)


def asv_continuous(base: Samples, head: Samples, *, factor: float = 1.1) -> int:
    """As asv continuous: different by Mann-Whitney (p < 0.002) and ratio of medians beyond the factor.

    Two processes of up to ten repetitions a side. Where so few samples cannot reach that p, 99 % intervals of the
    medians must not overlap. Source: asv/_stats.py (is_different) and asv/commands/compare.py.
    """
    first, second = (np.concatenate([one[:REPETITIONS] for one in side.processes[:2]]) for side in (base, head))
    if not _asv_differs(first, second):
        return 0
    return _beyond(float(np.median(second) / np.median(first)), factor)


def asv_sensitive(base: Samples, head: Samples) -> int:
    """The same with --factor 1.01, since 1.1 cannot see less than 10 %."""
    return asv_continuous(base, head, factor=1.01)


def hyperfine(base: Samples, head: Samples) -> int:
    """The last line of hyperfine, `1.03 +- 0.02 times faster`, as it is read: different where 1 is outside.

    One run a process, all of the base before all of the head; the ratio of means with both standard deviations
    propagated, not standard errors. Source: src/benchmark/relative_speed.rs.
    """
    before, after = base.means, head.means
    if min(before.size, after.size) < 2:
        return 0
    slow, fast = (after, before) if after.mean() >= before.mean() else (before, after)
    ratio = slow.mean() / fast.mean()
    spread = ratio * math.hypot(slow.std(ddof=1) / slow.mean(), fast.std(ddof=1) / fast.mean())
    return _sign(float(after.mean() / before.mean())) if ratio - spread > 1 else 0


@dataclass(frozen=True, kw_only=True)
class Named:
    """A rule, with what it was given in words."""

    name: str
    given: str
    rule: Rule


ONE_PROCESS = "ten turns of one base process and of one head process, from the beginning and the end of the stretch"
HALVES = "every process of the budget: the base's of its first half, the head's of its second"

OTHERS = (
    Named(name="IREE since 2024: minimum <= golden * 1.1", given=ONE_PROCESS, rule=golden_minimum),
    Named(name="IREE until 2024: mean off by 10 %", given=ONE_PROCESS, rule=old_threshold),
    Named(name="google/benchmark compare.py", given=ONE_PROCESS, rule=compare_py),
    Named(
        name="asv continuous (factor 1.1)",
        given="ten turns of each of two processes a side, from the beginning and the end of the stretch",
        rule=asv_continuous,
    ),
    Named(name="asv continuous --factor 1.01", given="the same", rule=asv_sensitive),
    Named(name="pyperf compare_to", given=HALVES + "; three values each, at most 20 a side", rule=pyperf_student),
    Named(name="Welch on one mean a process", given="the same, one mean each", rule=welch_processes),
    Named(name="hyperfine, mean ± sd", given=HALVES + "; one mean each", rule=hyperfine),
)


def given(stretch: Sequence[Recorded]) -> tuple[Samples, Samples]:
    """The two sides of a stretch: base from its first half, head from its second, last generation first.

    So a rule that takes one process or two from each side gets those that are furthest apart in time.
    """
    half = len(stretch) // 2
    base = Samples(processes=tuple(one.base.ns for one in stretch[:half]))
    head = Samples(processes=tuple(one.head.ns for one in reversed(stretch[half:])))
    return base, head


def paired_t(log_ratios: FloatArray, *, floor: float = 0.01) -> int:
    """A yardstick: one paired t test at 95 % of the harness's own samples, and the floor; no looks, no confirmation."""
    from scipy.special import stdtrit

    if log_ratios.size < 2:
        return 0
    centre = float(log_ratios.mean())
    margin = float(stdtrit(log_ratios.size - 1, 0.975) * log_ratios.std(ddof=1) / math.sqrt(log_ratios.size))
    return _sign(math.exp(centre)) if abs(centre) > max(margin, math.log1p(floor)) else 0


def _asv_differs(first: FloatArray, second: FloatArray) -> bool:
    from scipy.stats import mannwhitneyu

    if 1 / math.comb(first.size + second.size, min(first.size, second.size)) < 0.002:
        if max(first.size, second.size) <= 20:
            return float(mannwhitneyu(first, second, method="exact").pvalue) < 0.002
        return float(mannwhitneyu(first, second, method="asymptotic").pvalue) < 0.002
    (low, high), (other_low, other_high) = _median_interval(first), _median_interval(second)
    return high < other_low or low > other_high


def _median_interval(values: FloatArray) -> tuple[float, float]:
    """99 % interval of the median from order statistics; endless where there are too few values."""
    cut = _order_cut(values.size)
    if cut is None:
        return -math.inf, math.inf
    ordered = np.sort(values)
    return float(ordered[cut]), float(ordered[values.size - 1 - cut])


@cache
def _order_cut(size: int) -> int | None:
    below, cut = 0.0, None
    for count in range(size // 2):
        below += math.comb(size, count) / 2**size
        if below <= 0.005:
            cut = count
    return cut


def _t_test(first: FloatArray, second: FloatArray, *, pooled: bool) -> int:
    from scipy.stats import ttest_ind

    if min(first.size, second.size) < 2:
        return 0
    p = float(ttest_ind(first, second, equal_var=pooled).pvalue)
    return _sign(float(second.mean() / first.mean())) if p < 0.05 else 0


def _sign(ratio: float) -> int:
    return (ratio > 1) - (ratio < 1)


def _beyond(ratio: float, factor: float, *, either_way: float | None = None) -> int:
    """Beyond a factor, or (either_way) beyond 1 +- so much."""
    below = 1 / factor if either_way is None else 1 - either_way
    return 1 if ratio > factor else -1 if ratio < below else 0
