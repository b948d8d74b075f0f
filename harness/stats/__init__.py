"""Rounds -> ratios with intervals; pure, on numpy arrays."""

from harness.stats.estimate import (
    CONFIDENCE,
    FLOOR,
    Change,
    Estimate,
    Latency,
    change_against,
    estimate_ratio,
    summarise_latency,
)
from harness.stats.pairing import GroupTimes, counter_per_call, tabulate_rounds

__all__ = [
    "CONFIDENCE",
    "FLOOR",
    "Change",
    "Estimate",
    "GroupTimes",
    "Latency",
    "change_against",
    "counter_per_call",
    "estimate_ratio",
    "summarise_latency",
    "tabulate_rounds",
]
