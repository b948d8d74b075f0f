"""Which combinations become cases: include, then exclude, with patterns on names."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from harness.errors import SuiteError
from harness.models.model import Expectation
from harness.records.case import Gate
from harness.suite.load import Suite
from tests.plan.conftest import a_device, a_model, a_suite, a_variant, names, plan


def suite_with(**fields: Any) -> Suite:
    """Two models x two variants x two devices."""
    return a_suite(
        a_variant("stock"),
        a_variant("fast"),
        models=(a_model("small"), a_model("big")),
        devices=(a_device("cpu"), a_device("gpu")),
        **fields,
    )


def refusal(suite: Suite) -> str:
    with pytest.raises(SuiteError) as caught:
        plan(suite)
    return str(caught.value)


def test_all_combinations_are_included_unless_the_suite_says_otherwise() -> None:
    assert len(plan(suite_with())) == 8


def test_an_include_names_what_is_wanted() -> None:
    assert names(plan(suite_with(include=("big/*@gpu", "small/stock@cpu")))) == [
        "small/stock@cpu",
        "big/stock@gpu",
        "big/fast@gpu",
    ]


def test_an_exclude_wins_over_an_include() -> None:
    assert names(plan(suite_with(include=("big/*",), exclude=("*@gpu",)))) == ["big/stock@cpu", "big/fast@cpu"]


@pytest.mark.parametrize("pattern", ["big/fast@gpu", "big/*t@gpu", "b?g/fast@gpu", "[b]ig/[!s]*@[fg]pu"])
def test_patterns_are_those_of_a_shell(pattern: str) -> None:
    assert set(names(plan(suite_with()))) - set(names(plan(suite_with(exclude=(pattern,))))) == {"big/fast@gpu"}


def test_a_pattern_matches_whole_names_and_minds_capitals() -> None:
    for pattern in ("big", "big/fast", "BIG/*"):
        assert "matches no case" in refusal(suite_with(exclude=(pattern,)))


@pytest.mark.parametrize("key", ["include", "exclude"])
def test_a_pattern_that_matches_nothing(key: str) -> None:
    assert refusal(suite_with(**{key: ("*", "big/*@tpu")})) == (
        f"suite.toml: [matrix] {key}: 'big/*@tpu' matches no case; patterns are matched with model/variant@device, "
        "such as small/stock@cpu"
    )


def test_an_exclude_of_everything() -> None:
    assert refusal(suite_with(exclude=("*",))) == "suite.toml: [matrix] exclude leaves no case; remove a pattern"


def test_cases_without_their_baseline() -> None:
    assert refusal(suite_with(exclude=("big/stock@gpu",))) == (
        "suite.toml: [matrix] leaves big/fast@gpu without its baseline 'stock'; "
        "include big/stock@gpu or exclude big/*@gpu"
    )


def test_a_case_that_is_known_to_fail_is_marked_with_the_first_words_that_fit() -> None:
    expectations = (
        Expectation(cases="big/*@gpu", message="shared memory"),
        Expectation(cases="*@gpu", message="no such extension"),
    )
    marked = {case.name: case.expected_failure for case in plan(suite_with(expectations=expectations))}
    assert marked == {
        "small/stock@cpu": None,
        "small/fast@cpu": None,
        "small/stock@gpu": "no such extension",
        "small/fast@gpu": "no such extension",
        "big/stock@cpu": None,
        "big/fast@cpu": None,
        "big/stock@gpu": "shared memory",
        "big/fast@gpu": "shared memory",
    }


def test_what_is_known_of_a_model_holds_for_its_cases_but_those_with_an_expectation_of_their_own() -> None:
    wrong, refused = Expectation(cases="small/*", message=None), Expectation(cases="big/*", message="no such operator")
    by_case = (Expectation(cases="big/*@gpu", message=None), Expectation(cases="small/fast@*", message="shared memory"))
    suite = suite_with(expectations=by_case)
    models = (a_model("small", expectation=wrong), a_model("big", expectation=refused))
    marked = plan(replace(suite, models=models))
    assert {case.name: (case.expected_failure, case.expected_mismatch) for case in marked} == {
        "small/stock@cpu": (None, True),
        "small/fast@cpu": ("shared memory", False),
        "small/stock@gpu": (None, True),
        "small/fast@gpu": ("shared memory", False),
        "big/stock@cpu": ("no such operator", False),
        "big/fast@cpu": ("no such operator", False),
        "big/stock@gpu": (None, True),
        "big/fast@gpu": (None, True),
    }
    assert all(case.known_to_fail for case in marked)
    assert not any(case.known_to_fail for case in plan(suite_with()))


def test_an_expectation_for_no_case() -> None:
    suite = suite_with(exclude=("*/fast@gpu",), expectations=(Expectation(cases="*/fast@gpu", message="oops"),))
    assert refusal(suite) == (
        "suite.toml: [[expect]] cases: '*/fast@gpu' matches no case; patterns are matched with model/variant@device, "
        "such as small/stock@cpu"
    )


def test_a_gate_of_no_case() -> None:
    gates = (Gate(name="all", metric="copies"), Gate(name="latency", metric="latency", cases="*/fast@gpu"))
    suite = suite_with(exclude=("*/fast@gpu",), gates=gates)
    assert refusal(suite) == (
        "suite.toml: [gates.latency] cases: '*/fast@gpu' matches no case; patterns are matched with "
        "model/variant@device, such as small/stock@cpu"
    )
    assert len(plan(suite_with(gates=gates))) == 8
