"""Rounds -> ratios with intervals; pure, on numpy arrays."""

from harness.stats.intervals import (
    CONFIDENCE,
    Estimate,
    Latency,
    estimate_ratio,
    summarise_latency,
)
from harness.stats.pairing import GroupTimes, counter_per_call, tabulate_rounds

__all__ = [
    "CONFIDENCE",
    "Estimate",
    "GroupTimes",
    "Latency",
    "counter_per_call",
    "estimate_ratio",
    "summarise_latency",
    "tabulate_rounds",
]
