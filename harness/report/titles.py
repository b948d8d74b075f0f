"""Headings of the lists of changes, as IREE's comments had them; what they did not show is worded alike."""

from __future__ import annotations

# By the metric's name, see harness.metrics.
UPSTREAM_TITLES = {
    "latency": "Latencies",
    "compile-time": "Compilation Times",
    "dispatch-size": "Total Dispatch Sizes",
    "module-size": "Total Artifact Sizes",
    "dispatches": "Stream IR Dispatch Count (# of cmd.dispatch ops)",
    "transient-memory": "Transient Memory",
}

NOTHING_CHANGED = "No improved or regressed benchmarks 🏖️"
NO_METRIC_CHANGED = "No improved or regressed compilation metrics 🏖️"


def regressed_title(title: str) -> str:
    """Of the list of what became worse."""
    return f"Regressed {title} 🚩"


def improved_title(title: str) -> str:
    """Of the list of what became better."""
    return f"Improved {title} 🎉"
