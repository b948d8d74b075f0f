"""Which of many candidates is the fastest, with most of the time for those that are close: a race by elimination.

All candidates that are alive take turns in one worker. A generation of it gives each one sample: log(its time / time of
the reference). After every generation those leave that are slower than the leader beyond doubt. This is successive
elimination (Even-Dar, Mannor and Mansour, JMLR 7, 2006) after Hoeffding races (Maron and Moore, NIPS 1994); as in irace
(López-Ibáñez and others, 2016) candidates are compared by what they differ within the same generations, so that the
reference's noise and the machine's weather cancel.

**The rule.** d_1 ... d_n are the differences candidate - leader of n generations. The largest of them is left out, so
that one odd generation of the candidate is never what it leaves for. From the others, m of them (n - 1, or the one that
there is), the least that the candidate can be behind is

    least = hodges_lehmann(d) - q * sqrt(2) * s / sqrt(m)

It leaves where least > 0. The race ends by itself where no candidate that is left has least < -log(1 + margin).

**The scale.** s is how far a candidate's sample strays in a generation. From each sample its generation's median is
taken off; s is the median distance of two such samples of one candidate, over all candidates together (Shamos 1976),
as a normal deviation, times sqrt(k / (k - 1)) for the median of k candidates. Heavy tails hardly move it. Where the two
that are compared vary more than that, their own differences give s, so that a candidate with more noise than the rest
is not judged by theirs. q is a quantile of Student's t with as many degrees of freedom as the pooled deviations have;
before there are two generations, and where few degrees make that wider, it is the normal quantile with the larger of s
and the prior scale.

**The error.** q belongs to the one-sided error / ((candidates - 1) * most): each of the looks at the best candidate, at
each generation, beside each other candidate that could lead then, spends an equal share (Bonferroni). While none of
them errs, the best candidate never leaves, and where a race ends before `most` generations, its leader is at most
`margin` slower than the best. The chance that either is untrue is at most `error` in a race. This supposes that samples
of a candidate are independent between generations and stray normally around its time, with odd ones rare, and, of the
first generation alone, that the noise is no wider than the prior says. `python -m benchmarks.tune.race` counts how
often the best leaves on noise that was measured.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from harness.stats.intervals import locate, ratio_of
from harness.stats.pairing import FloatArray

# Third quartile of the standard normal times sqrt(2): the median distance of two samples of deviation 1.
_NORMAL_DISTANCE = 0.6745 * math.sqrt(2)
# No scale below a part in a thousand is believed: a coarse clock repeats itself.
_LEAST_SCALE = 0.001
_CONFIDENCE = 0.95


@dataclass(frozen=True, kw_only=True)
class RaceRule:
    """What a race may get wrong, and how long it may take."""

    # Chance at most that the best candidate leaves, or that a race which ends before `most` generations is led by one
    # that is slower than the best by more than the margin
    error: float = 0.05
    # Relative difference that is not worth time: a race ends where only smaller ones are left; 0.01 is 1 %
    margin: float = 0.01
    # Deviation of a candidate's log ratio, as long as one generation was seen. Far more than most generations stray, so
    # that what one odd generation says is not believed below a factor of about 1.6.
    prior: float = 0.1
    most: int = 30  # Generations after which a race ends
    least: int = 1  # Generations before which nobody leaves, where it matters how fast the slower ones are


@dataclass(frozen=True, kw_only=True)
class RaceStanding:
    """How a candidate did."""

    ratio: float | None  # Its time divided by the reference's; None: it gave no sample
    low: float | None  # Lower end of the ratio's interval, 95 % for each candidate alone; high likewise
    high: float | None
    generations: int  # Samples behind it


class Race:
    """Candidates that are measured side by side until the best is known."""

    def __init__(self, names: Sequence[str], rule: RaceRule | None = None) -> None:
        self.names = tuple(names)  # Of two that are equally fast the earlier one leads
        self.rule = rule or RaceRule()
        self.alive = self.names  # Those that have not left, in the same order
        self.generations = 0
        self._samples: FloatArray = np.empty((0, len(self.names)))
        self._columns = {name: column for column, name in enumerate(self.names)}
        self._share = self.rule.error / (max(1, len(self.names) - 1) * max(1, self.rule.most))

    def add(self, samples: Mapping[str, float | None]) -> None:
        """Take in a generation, and let those leave that are slower than the leader beyond doubt."""
        row = [samples.get(name) if name in self.alive else None for name in self.names]
        self._samples = np.vstack([self._samples, np.array(row, dtype=np.float64)])
        self.generations += 1
        missing = {name: self.generations - self._of(name).size for name in self.alive}
        self.alive = tuple(name for name, times in missing.items() if times < 2 or 2 * times <= self.generations)
        if self.generations >= self.rule.least:
            behind = self._least_behind()
            self.alive = tuple(name for name in self.alive if behind.get(name, 0.0) <= 0)

    @property
    def leader(self) -> str | None:
        """The fastest that is alive, as far as is known; None: none has given a sample."""
        centred = self._centred()
        places = [(_centre(centred[:, self._columns[name]]), name) for name in self.alive]
        known = [(place, name) for place, name in places if place is not None]
        return min(known, key=lambda one: one[0])[1] if known else None

    @property
    def is_over(self) -> bool:
        """Whether one is left, or no other can be faster than the leader by more than the margin, or time is up."""
        if len(self.alive) <= 1 or self.generations >= self.rule.most:
            return True
        if self.generations < self.rule.least:
            return False
        behind = self._least_behind()
        return bool(behind) and min(behind.values()) >= -math.log1p(self.rule.margin)

    def standings(self, log_ratio: float = 0.0) -> dict[str, RaceStanding]:
        """How each did beside the reference, or beside what that has this log ratio to, in the order of the names."""
        from scipy.special import ndtri

        around_reference = self._samples[:, [bool(np.nan_to_num(column).any()) for column in self._samples.T]]
        scale = _scale(around_reference)
        found = {}
        for name in self.names:
            samples = self._of(name)
            centre = _centre(samples)
            half = 0.0
            if samples.any():  # the reference has no distance from itself
                wide = float(ndtri(0.5 + _CONFIDENCE / 2)) * max(math.sqrt(2) * self.rule.prior, scale)
                wide = min(wide, _student(0.5 + _CONFIDENCE / 2, samples.size - 1) * scale)
                half = wide / math.sqrt(samples.size)
            found[name] = RaceStanding(
                ratio=None if centre is None else ratio_of(centre + log_ratio),
                low=None if centre is None else ratio_of(centre + log_ratio - half),
                high=None if centre is None else ratio_of(centre + log_ratio + half),
                generations=samples.size,
            )
        return found

    def _of(self, name: str) -> FloatArray:
        samples: FloatArray = self._samples[:, self._columns[name]]
        return samples[np.isfinite(samples)]

    def _centred(self) -> FloatArray:
        """All samples less what those that are alive have in common in each generation: their median."""
        alive = self._samples[:, [self._columns[name] for name in self.alive]]
        some = np.isfinite(alive).any(axis=1)
        common = np.full(len(alive), np.nan)
        common[some] = np.nanmedian(alive[some], axis=1)
        centred: FloatArray = self._samples - common[:, None]
        return centred

    def _pooled_scale(self) -> tuple[float, int]:
        """Deviation of one candidate's sample, from those of all, and its degrees of freedom."""
        centred, k = self._centred(), len(self.alive)
        # The median of k that are alive holds a k-th of each one's own deviation, and none of those that have left.
        factors = [math.sqrt(k / (k - 1) if name in self.alive else k / (k + 1)) for name in self.names]
        sizes = np.isfinite(centred).sum(axis=0)
        freedom = int(np.maximum(sizes - 1, 0).sum()) - (self.generations - 1)
        return _scale(centred * np.array(factors)), freedom

    def _least_behind(self) -> dict[str, float]:
        """How much slower than the leader each other is at least, in the logarithm; empty: there is no leader."""
        leader = self.leader
        if leader is None or len(self.alive) == 1:
            return {}
        pooled, freedom = self._pooled_scale()
        led = self._samples[:, self._columns[leader]]
        behind = {}
        for name in self.alive:
            if name != leader:
                differences = self._samples[:, self._columns[name]] - led
                behind[name] = self._least(differences[np.isfinite(differences)], pooled, freedom)
        return behind

    def _least(self, differences: FloatArray, pooled: float, freedom: int) -> float:
        from scipy.special import ndtri  # scipy.stats takes a second to import

        counted = np.sort(differences)[: max(1, differences.size - 1)]
        centre = _centre(counted)
        if centre is None:
            return -math.inf
        scale = max(pooled, _scale(differences[:, None]) / math.sqrt(2))
        wide = float(ndtri(1 - self._share)) * max(self.rule.prior, scale)
        if differences.size > 1:
            wide = min(wide, _student(1 - self._share, freedom) * scale)
        return centre - wide * math.sqrt(2 / counted.size)


def _centre(samples: FloatArray) -> float | None:
    """Hodges-Lehmann's estimate of those samples that are there; None without any."""
    there = samples[np.isfinite(samples)]
    return locate(there, confidence=_CONFIDENCE).centre if there.size else None


def _scale(columns: FloatArray) -> float:
    """Normal deviation by the median distance of two samples in the same column, all columns together."""
    one, other = np.triu_indices(len(columns), 1)
    distances = np.abs(columns[one] - columns[other])
    there = distances[np.isfinite(distances)]
    return max(_LEAST_SCALE, float(np.median(there)) / _NORMAL_DISTANCE) if there.size else _LEAST_SCALE


def _student(chance: float, freedom: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(freedom, chance)) if freedom > 0 else math.inf
