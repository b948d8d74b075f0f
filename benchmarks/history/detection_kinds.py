"""The kinds of series that detectors are tried on, by the table that they are shown in."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from benchmarks.history.detection_series import (
    Noise,
    heavy,
    many_spikes,
    ramp,
    slow,
    spikes,
    step,
    sticky_levels,
    two_levels,
    white,
)
from harness.stats.pairing import FloatArray

LEVEL_NS = 5e6
HALF = float(np.log(1.5))
# A reported place counts as the true one's within so many points, unless a kind says otherwise.
NEAR = 5


@dataclass(frozen=True, kw_only=True)
class Truth:
    """A change that was put into a series.

    Attributes:
        first: First point of the new level, or the first that has left the old one.
        last: The same for a step; where a drift ends.
    """

    first: int
    last: int
    up: bool


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One kind of series.

    Attributes:
        table: `none`, `delay`, `steps`, `drifts`: where it is shown.
        noise: Of its logarithms.
        shape: What is added to them.
        truths: The changes in it, in time order.
    """

    table: str
    name: str
    size: int = 100
    noise: Noise = white
    shape: Callable[[int], FloatArray] | None = None
    truths: tuple[Truth, ...] = ()

    def make(self, number: int) -> FloatArray:
        """The series of this kind with this number, in nanoseconds; the same each time."""
        seed = [number, *self.name.encode(), *self.table.encode(), self.size]
        logs = self.noise(np.random.default_rng(seed), self.size)
        if self.shape is not None:
            logs = logs + self.shape(self.size)
        return np.asarray(LEVEL_NS * np.exp(logs), dtype=np.float64)


def stepped(table: str, name: str, *steps: tuple[int, float], size: int = 100, noise: Noise = white) -> Kind:
    """A kind with steps, each a place and a share."""
    return Kind(
        table=table,
        name=name,
        size=size,
        noise=noise,
        shape=lambda points: np.sum([step(points, place, share) for place, share in steps], axis=0),
        truths=tuple(Truth(first=place, last=place, up=share > 0) for place, share in steps),
    )


def drifted(
    name: str, start: int, end: int, share: float, *steps: tuple[int, float], size: int, noise: Noise = white
) -> Kind:
    """A kind with one drift, and perhaps steps on top."""
    return Kind(
        table="drifts",
        name=name,
        size=size,
        noise=noise,
        shape=lambda points: np.sum(
            [ramp(points, start, end, share), *(step(points, place, one) for place, one in steps)], axis=0
        ),
        truths=(
            Truth(first=start + 1, last=end, up=share > 0),
            *(Truth(first=place, last=place, up=one > 0) for place, one in steps),
        ),
    )


def _none(name: str, noise: Noise, size: int = 100) -> Kind:
    return Kind(table="none", name=name, noise=noise, size=size)


NONE = (
    _none("white noise, 1 %", white),
    _none("white noise, 0.2 %", partial(white, width=0.002)),
    _none("white noise, 5 %", partial(white, width=0.05)),
    _none("white noise, 1 %", white, 30),
    _none("white noise, 1 %", white, 300),
    _none("white noise, 1 %", white, 1000),
    _none("heavy tails (Student's t, 3 degrees)", heavy),
    _none("heavy tails (Student's t, 3 degrees)", heavy, 1000),
    _none("slow noise (AR(1), 0.3)", partial(slow, lag_one=0.3)),
    _none("slow noise (AR(1), 0.6)", partial(slow, lag_one=0.6)),
    _none("slow noise (AR(1), 0.6)", partial(slow, lag_one=0.6), 30),
    _none("slow noise (AR(1), 0.6)", partial(slow, lag_one=0.6), 1000),
    _none("slow noise (AR(1), 0.8)", partial(slow, lag_one=0.8)),
    _none("two levels, one run in two, 1 % noise", two_levels),
    _none("two levels, one run in two, 0.2 % noise", partial(two_levels, width=0.002)),
    _none("two levels, one run in five, 0.2 % noise", partial(two_levels, share=0.2, width=0.002)),
    _none("two levels, one run in twenty, 0.2 % noise", partial(two_levels, share=0.05, width=0.002)),
    _none("two levels, left after 3 runs, 1 % noise", partial(sticky_levels, leave=1 / 3)),
    _none("two levels, left after 3 runs, 0.2 % noise", partial(sticky_levels, leave=1 / 3, width=0.002)),
    _none("two levels, left after 10 runs, 1 % noise", partial(sticky_levels, leave=0.1)),
    _none("two levels, left after 10 runs, 0.2 % noise", partial(sticky_levels, leave=0.1, width=0.002)),
    _none("one spike of 20 %", partial(spikes, together=1)),
    _none("two spikes of 20 % in a row", partial(spikes, together=2)),
    _none("a spike of 20 % as the last value", partial(spikes, together=1, at_end=True)),
    _none("spikes of 20 % as the last two values", partial(spikes, together=2, at_end=True)),
    _none("spikes of 5 to 30 % in one run of twenty", many_spikes),
    _none("spikes of 5 to 30 % in one run of ten", partial(many_spikes, share=0.1)),
    _none("spikes of 50 % in one run of ten", partial(many_spikes, share=0.1, least=HALF, most=HALF)),
)

AFTER = (1, 2, 3, 4, 5, 7, 10, 20)
DELAY_SHARES = (0.05, 0.038, 0.03, 0.02)
DELAYS = tuple(
    stepped("delay", f"+{share * 100:g} %, {after} points", (100 - after, share))
    for share in DELAY_SHARES
    for after in AFTER
)

STEPS = (
    stepped("steps", "+5 % in the middle", (50, 0.05)),
    stepped("steps", "+3.8 % in the middle", (50, 0.038)),
    stepped("steps", "+2 % in the middle", (50, 0.02)),
    stepped("steps", "-5 % in the middle", (50, -0.05)),
    stepped("steps", "+5 %, 3 points ago, of 30", (27, 0.05), size=30),
    stepped("steps", "+5 %, 3 points ago, of 1,000", (997, 0.05), size=1000),
    stepped("steps", "+5 % in the middle, heavy tails", (50, 0.05), noise=heavy),
    stepped("steps", "+5 % in the middle, AR(1) 0.6", (50, 0.05), noise=partial(slow, lag_one=0.6)),
    stepped("steps", "+5 % in the middle, spikes", (50, 0.05), noise=many_spikes),
    stepped("steps", "+5 % in the middle, spikes in one run of ten", (50, 0.05), noise=partial(many_spikes, share=0.1)),
    stepped(
        "steps",
        "+5 % in the middle, spikes of 50 % in one run of ten",
        (50, 0.05),
        noise=partial(many_spikes, share=0.1, least=HALF, most=HALF),
    ),
    stepped("steps", "+5 %, 5 points ago, spikes in one run of ten", (95, 0.05), noise=partial(many_spikes, share=0.1)),
    stepped(
        "steps", "+5 %, 10 points ago, spikes in one run of ten", (90, 0.05), noise=partial(many_spikes, share=0.1)
    ),
    stepped("steps", "+5 % in the middle, two levels", (50, 0.05), noise=two_levels),
    stepped("steps", "+5 %, repaired after 10 points", (50, 0.05), (60, -0.05 / 1.05)),
    stepped("steps", "+5 %, repaired after 5 points", (50, 0.05), (55, -0.05 / 1.05)),
    stepped("steps", "+3 %, +4 %, -5 %, +3 %", (40, 0.03), (80, 0.04), (120, -0.05), (160, 0.03), size=200),
)

DRIFTS = (
    drifted("+2 % over 50 points, the last of 100", 49, 99, 0.02, size=100),
    drifted("+2 % over 50 points, the last of 200", 149, 199, 0.02, size=200),
    drifted("+2 % over 50 points, then 50 more, of 200", 99, 149, 0.02, size=200),
    drifted("+2 % over 50 points and nothing else", 0, 49, 0.02, size=50),
    drifted("+2.3 % over 35 points, the last of 100", 64, 99, 0.023, size=100),
    drifted("+2.3 % over 35 points, then 50 more, of 150", 64, 99, 0.023, size=150),
    drifted("-3 % over 100 points, of 300", 100, 200, -0.03, size=300),
    drifted("+4 % over 100 points under a step of +5 %", 50, 150, 0.04, (100, 0.05), size=200),
    drifted("+2 % over 50 points, AR(1) 0.3", 99, 149, 0.02, size=200, noise=partial(slow, lag_one=0.3)),
)

KINDS = (*NONE, *DELAYS, *STEPS, *DRIFTS)
