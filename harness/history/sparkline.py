"""A series as one line of text, with its change points under it."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence

import numpy as np

_BLOCKS = "▁▂▃▄▅▆▇█"
# What lies beyond these is drawn at the edge, so that one spike does not flatten all else.
_LOW, _HIGH = 1, 99


def sparkline(values: Sequence[float], changes: Collection[int], width: int) -> tuple[str, str]:
    """Two lines of at most `width` characters: the values from their low to their high, and `^` under each change.

    Args:
        values: In order of time; where there are more than fit, several share a character that shows their median.
        changes: Places of the values with which a change begins.
    """
    if not len(values):
        return "", ""
    count = min(len(values), max(width, 1))
    edges = [round(place * len(values) / count) for place in range(count + 1)]
    shown = np.array([np.median(values[low:high]) for low, high in itertools.pairwise(edges)])
    low, high = np.percentile(values, [_LOW, _HIGH])
    scaled = (np.clip(shown, low, high) - low) / (high - low) if high > low else np.zeros(count)
    line = "".join(_BLOCKS[round(float(one) * (len(_BLOCKS) - 1))] for one in scaled)
    marked = {next(place for place in range(count) if edges[place + 1] > change) for change in changes}
    return line, "".join("^" if place in marked else " " for place in range(count)).rstrip()
