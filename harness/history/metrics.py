"""What kind of figure a metric of a history is."""

from __future__ import annotations

from collections.abc import Mapping

from harness.history.series import LATENCY_VS_BASELINE, LATENCY_VS_REFERENCE
from harness.metrics import BUILD_FACTS, INSTRUCTIONS, METRICS, REFERENCE_FACTS

# What takes time takes some, and a change point's level is a logarithm.
TIMED_METRICS = frozenset(
    (*(metric.name for metric in METRICS.values() if not metric.exact), LATENCY_VS_BASELINE, LATENCY_VS_REFERENCE)
)
# Of the metrics that a history has beside those of harness.metrics.
RATIO_TITLES: Mapping[str, str] = {
    LATENCY_VS_BASELINE: "Latency vs. baseline",
    LATENCY_VS_REFERENCE: "Latency vs. reference toolchain",
}
# The version's own text is in every module, so its size changes with every release and shows nothing else.
_NO_EVIDENCE = "module-size"
_COUNTED = frozenset(metric.name for metric in (INSTRUCTIONS, *BUILD_FACTS, *REFERENCE_FACTS)) - {_NO_EVIDENCE}


def is_exact(metric: str) -> bool:
    """Whether equal code gives equal values of a metric, so that any difference is a change."""
    return metric not in TIMED_METRICS


def is_counted(metric: str) -> bool:
    """Whether a figure shows that a program is another one."""
    return metric in _COUNTED or "/" in metric
