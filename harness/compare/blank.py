"""Rows before anything is known of them."""

from __future__ import annotations

from harness.compare.metrics import Metric
from harness.compare.pairs import Pair
from harness.compare.values import Row, Verdict
from harness.plan.values import Case


def row_of(case: Case, metric: Metric, verdict: Verdict, *, name: str = "", floor: float = 0.0) -> Row:
    """A row that has a verdict and no figures yet.

    Args:
        name: The row's, where it is not the case's.
    """
    return Row(
        case=name or case.name,
        model=case.model,
        variant=case.variant,
        device=case.device,
        metric=metric.name,
        verdict=verdict,
        floor=floor,
        unit=metric.unit,
    )


def blank_row(pair: Pair, metric: Metric, verdict: Verdict, floor: float = 0.0) -> Row:
    """The same of a pair, by its name."""
    return row_of(pair.case, metric, verdict, name=pair.name, floor=floor)
