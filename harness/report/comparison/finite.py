"""Figures that are no numbers, taken out before anything is laid out."""

from __future__ import annotations

import math
from dataclasses import replace

from harness.compare.values import Comparison, Row


def finite(comparison: Comparison) -> Comparison:
    """The comparison with None, or 0 where there has to be a number, in place of NaN and infinities."""
    return replace(
        comparison,
        rows=tuple(_row(row) for row in comparison.rows),
        means=tuple(mean for mean in comparison.means if math.isfinite(mean.ratio)),
    )


def _row(row: Row) -> Row:
    """The row itself where it has nothing to take out, as nearly all have; what is no number spoils a sum."""
    figures = (row.ratio, row.ci_low, row.ci_high, row.p, row.floor, row.base_value, row.head_value, row.seconds)
    if math.isfinite(sum(figure for figure in figures if figure)):
        return row
    return replace(
        row,
        ratio=_known(row.ratio),
        ci_low=_known(row.ci_low),
        ci_high=_known(row.ci_high),
        p=_known(row.p),
        floor=_known(row.floor) or 0.0,
        base_value=_known(row.base_value),
        head_value=_known(row.head_value),
        seconds=_known(row.seconds) or 0.0,
    )


def _known(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
