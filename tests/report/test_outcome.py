"""What a comparison's exit status is."""

from __future__ import annotations

import pytest

from harness.errors import ExitCode
from harness.records.comparison import Comparison, Row, Verdict
from harness.report.outcome import comparison_exit_code
from tests.report.compared import make_comparison, make_row

SAME = make_row("m/same@d")


def code(*rows: Row, strict: bool = False) -> ExitCode:
    return comparison_exit_code(make_comparison(rows), strict=strict)


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        ("regressed", ExitCode.REGRESSION),
        ("improved", ExitCode.OK),
        ("unchanged", ExitCode.OK),
        ("identical", ExitCode.OK),
        ("inconclusive", ExitCode.OK),
        ("failed", ExitCode.CASE_FAILED),
        ("missing", ExitCode.CASE_FAILED),
        ("new", ExitCode.CASE_FAILED),  # alone, it was compared with nothing
    ],
)
def test_each_verdict_of_a_latency_alone(verdict: Verdict, expected: ExitCode) -> None:
    assert code(make_row("m/v@d", verdict=verdict)) == expected


def test_nothing_at_all_is_not_fine() -> None:
    assert code() == code(strict=True) == ExitCode.CASE_FAILED


def test_a_new_row_beside_others_is_fine() -> None:
    assert code(SAME, make_row("m/v@d", verdict="new")) == ExitCode.OK


@pytest.mark.parametrize("metric", ["latency", "compile-time"])
def test_a_gate_excuses_a_regression(metric: str) -> None:
    assert code(SAME, make_row("m/v@d", metric, "regressed")) == ExitCode.REGRESSION
    assert code(SAME, make_row("m/v@d", metric, "regressed", gate="passed")) == ExitCode.OK


@pytest.mark.parametrize("metric", ["instructions", "module-size", "copies", "unheard-of"])
def test_other_figures_are_what_their_gates_make_of_them(metric: str) -> None:
    assert code(SAME, make_row("m/v@d", metric, "regressed")) == ExitCode.OK
    assert code(SAME, make_row("m/v@d", metric, "regressed", gate="violated")) == ExitCode.REGRESSION


def test_an_improvement_may_violate_a_gate() -> None:
    assert code(make_row("m/v@d", verdict="improved", gate="violated")) == ExitCode.REGRESSION


def test_a_regression_comes_before_a_failure() -> None:
    failed = make_row("m/v@d", verdict="failed")
    assert code(failed, make_row("m/w@d", verdict="regressed")) == ExitCode.REGRESSION
    assert code(failed, SAME) == ExitCode.CASE_FAILED


def test_strict_is_about_latencies_that_nothing_worse_happened_to() -> None:
    unsure = make_row("m/v@d", verdict="inconclusive")
    assert code(unsure, strict=True) == ExitCode.INCONCLUSIVE
    assert code(SAME, make_row("m/v@d", "compile-time", "inconclusive"), strict=True) == ExitCode.OK
    assert code(unsure, make_row("m/w@d", verdict="missing"), strict=True) == ExitCode.CASE_FAILED


@pytest.mark.parametrize("verdict", ["regressed", "improved", "inconclusive", "failed", "missing", "unchanged"])
def test_controls_never_count(verdict: Verdict) -> None:
    control = make_row("m/v@d", verdict=verdict, gate="violated", control=True)
    assert code(SAME, control, strict=True) == ExitCode.OK
    assert code(control) == ExitCode.CASE_FAILED


def test_everything_at_once(full_comparison: Comparison) -> None:
    assert comparison_exit_code(full_comparison, strict=True) == ExitCode.REGRESSION
