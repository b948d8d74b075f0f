"""What a user asks for on the command line: --filter and --tag, which never leave a case without its baseline."""

from __future__ import annotations

import pytest

from harness.errors import ExitCode, UsageError
from harness.models.model import Expectation
from tests.plan.conftest import a_device, a_model, a_suite, a_variant, names, plan

SUITE = a_suite(
    a_variant("stock"),
    a_variant("fast", tags=("new",)),
    a_variant("slow"),
    models=(a_model("small"), a_model("big", tags=("vision",))),
    devices=(a_device("cpu"), a_device("gpu", tags=("slow-lane",))),
)


def test_the_baseline_comes_along() -> None:
    assert names(plan(SUITE, patterns=("big/fast@gpu",))) == ["big/stock@gpu", "big/fast@gpu"]


def test_a_baseline_may_be_asked_for_alone() -> None:
    assert names(plan(SUITE, patterns=("big/stock@gpu",))) == ["big/stock@gpu"]


def test_a_case_needs_to_match_one_of_several_patterns() -> None:
    assert names(plan(SUITE, patterns=("big/fast@gpu", "small/slow@*"))) == [
        "small/stock@cpu",
        "small/slow@cpu",
        "small/stock@gpu",
        "small/slow@gpu",
        "big/stock@gpu",
        "big/fast@gpu",
    ]


def test_tags_are_those_of_model_variant_and_device() -> None:
    assert {case.model for case in plan(SUITE, tags=("vision",))} == {"big"}
    assert {case.variant for case in plan(SUITE, tags=("new",))} == {"stock", "fast"}
    assert {case.device for case in plan(SUITE, tags=("slow-lane",))} == {"gpu"}


def test_a_case_needs_one_of_several_tags() -> None:
    found = names(plan(SUITE, tags=("new", "slow-lane")))
    assert found == [
        "small/stock@cpu",
        "small/fast@cpu",
        "small/stock@gpu",
        "small/fast@gpu",
        "small/slow@gpu",
        "big/stock@cpu",
        "big/fast@cpu",
        "big/stock@gpu",
        "big/fast@gpu",
        "big/slow@gpu",
    ]


def test_patterns_and_tags_together_must_both_fit() -> None:
    assert names(plan(SUITE, patterns=("*@cpu",), tags=("vision",))) == [
        "big/stock@cpu",
        "big/fast@cpu",
        "big/slow@cpu",
    ]


def test_a_selection_keeps_what_is_known_of_a_case() -> None:
    suite = a_suite(
        a_variant("stock"), a_variant("fast"), expectations=(Expectation(cases="*/fast@*", message="oops"),)
    )
    assert [case.expected_failure for case in plan(suite, patterns=("*/fast@*",))] == [None, "oops"]


@pytest.mark.parametrize(
    ("patterns", "tags", "asked"),
    [
        (("tiny/*",), (), "--filter tiny/*"),
        ((), ("old",), "--tag old"),
        (("*@cpu", "tiny/*"), ("slow-lane",), "--filter *@cpu --filter tiny/* --tag slow-lane"),
    ],
)
def test_a_selection_of_nothing(patterns: tuple[str, ...], tags: tuple[str, ...], asked: str) -> None:
    with pytest.raises(UsageError) as caught:
        plan(SUITE, patterns=patterns, tags=tags)
    assert str(caught.value) == f"suite.toml: {asked} matches no case; `harness list suite.toml` shows them all"
    assert caught.value.exit_code == ExitCode.USAGE
