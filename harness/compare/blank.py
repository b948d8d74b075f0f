"""Rows before anything is known of them."""

from __future__ import annotations

from harness.compare.pairs import Pair
from harness.metrics import Metric
from harness.records.comparison import Row, Verdict


def blank_row(pair: Pair, metric: Metric, verdict: Verdict, floor: float = 0.0) -> Row:
    """A row of a pair, by its name, that has a verdict and no figures yet."""
    case = pair.case
    return Row(
        case=pair.name,
        model=case.model,
        variant=case.variant,
        device=case.device,
        metric=metric.name,
        verdict=verdict,
        floor=floor,
        unit=metric.unit,
    )
