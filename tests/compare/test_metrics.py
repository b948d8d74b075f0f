"""What is compared is known by its name: the metrics that there are, and a count of ops at any phase."""

from __future__ import annotations

from harness.metrics import METRICS, ir_metric, metric_named


def test_every_metric_is_known_by_its_name() -> None:
    for name, metric in METRICS.items():
        assert metric_named(name) is metric


def test_a_count_of_ops_is_an_exact_metric_at_any_phase() -> None:
    found = metric_named("flow/flow.tensor.update")
    assert found is not None
    assert found == ir_metric("flow/flow.tensor.update")
    assert (found.title, found.unit, found.exact, found.floor) == ("flow.tensor.update at flow", "count", True, 0.0)
    assert ir_metric("bufferized/executables:memref.alloc*").title == "executables:memref.alloc* at bufferized"


def test_other_names_are_none() -> None:
    for name in ("latencies", "llvm/llvm.alloca", "/flow.dispatch", "flow", "flow/", "Flow/flow.dispatch", ""):
        assert metric_named(name) is None
