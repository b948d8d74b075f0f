"""Figures that are no numbers, taken out before anything is laid out."""

from __future__ import annotations

import math
from dataclasses import replace

from harness.records.comparison import Comparison, Row


def finite(comparison: Comparison) -> Comparison:
    """The comparison with None, or 0 where there has to be a number, in place of NaN and infinities."""
    means = tuple(mean for mean in comparison.means if math.isfinite(mean.ratio))
    return replace(comparison, rows=tuple(_row(row) for row in comparison.rows), means=means)


def _row(row: Row) -> Row:
    return replace(
        row,
        ratio=_known(row.ratio),
        ci_low=_known(row.ci_low),
        ci_high=_known(row.ci_high),
        p=_known(row.p),
        floor=row.floor if math.isfinite(row.floor) else 0.0,
        base_value=_known(row.base_value),
        head_value=_known(row.head_value),
        seconds=row.seconds if math.isfinite(row.seconds) else 0.0,
    )


def _known(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
