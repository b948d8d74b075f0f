"""How far one figure moved between two stretches of a history, and whether that is more than its noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

# 1 / the third quartile of the standard normal: what makes a median distance a standard deviation.
_NORMAL = 1.4826
# The median's standard error is this much of the mean's where values are normal: the square root of pi / 2.
_MEDIAN = 1.2533
# Fewer values tell nothing of their noise: they are then taken to vary like this, about the noise of a bad machine.
_FEW, _UNKNOWN_NOISE = 4, 0.02
# No difference between two medians is surer than this, whatever the values say.
_LEAST_ERROR = 0.0005
_SURE = 3.0
# Part of a change that another figure has to share to have a part in it.
_SHARE = 0.25
_MOST = 0.5


@dataclass(frozen=True, kw_only=True)
class Shift:
    """How far a figure moved.

    Attributes:
        log: Logarithm of the level after divided by that before.
        error: Its standard error.
    """

    log: float
    error: float

    @property
    def ratio(self) -> float:
        """The level after, divided by that before."""
        return math.exp(self.log)

    def explains(self, log_change: float) -> bool:
        """Whether it moved in the same direction as a change, by more than its noise and by a good part of it."""
        same_way = self.log * log_change > 0
        return same_way and abs(self.log) > _SURE * self.error and abs(self.log) >= _SHARE * abs(log_change)

    def is_most_of(self, log_change: float) -> bool:
        """Whether it moved in the same direction as a change, surely, and by at least half of it."""
        return self.explains(log_change) and abs(self.log) >= _MOST * abs(log_change)

    def is_little_of(self, log_change: float) -> bool:
        """Whether it surely moved by less than half of a change, or the other way."""
        same_way = math.copysign(self.log, self.log * log_change)
        return same_way + _SURE * self.error < _MOST * abs(log_change)


def shift_between(before: Sequence[float], after: Sequence[float]) -> Shift | None:
    """From one level to the other, each the median of its values (above zero); None where either has none."""
    if not before or not after:
        return None
    first, second = np.log(np.array(before)), np.log(np.array(after))
    residuals = np.concatenate([first - np.median(first), second - np.median(second)])
    noise = float(_NORMAL * np.median(np.abs(residuals))) if residuals.size >= _FEW else _UNKNOWN_NOISE
    error = _MEDIAN * noise * math.sqrt(1 / first.size + 1 / second.size)
    return Shift(log=float(np.median(second) - np.median(first)), error=max(error, _LEAST_ERROR))
