"""What kind of figure a metric is."""

from __future__ import annotations

import pytest

from harness.metrics import METRICS, RATIO_TITLES, is_exact, shows_the_program


@pytest.mark.parametrize("metric", ["latency", "compile-time", "instructions", *RATIO_TITLES])
def test_what_takes_time_is_noisy(metric: str) -> None:
    assert not is_exact(metric)


@pytest.mark.parametrize("metric", ["dispatches", "module-size", "flow/linalg.matmul", "of a later harness"])
def test_all_other_figures_are_exact(metric: str) -> None:
    assert is_exact(metric)


def test_a_modules_size_does_not_show_that_a_program_is_another() -> None:
    assert shows_the_program("dispatches")
    assert shows_the_program("flow/linalg.matmul")
    assert not shows_the_program("module-size")


def test_registered_metrics_have_titles_of_their_own() -> None:
    assert not METRICS.keys() & RATIO_TITLES.keys()
