"""One suite under several toolchains: one plan, unique names, one baseline in each group."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.records.case import Case
from harness.suite.cases import across_toolchains
from harness.suite.load import FlagSet
from tests.plan.conftest import a_device, a_model, a_suite, a_variant, names, plan

SUITE = a_suite(
    a_variant("stock"),
    a_variant("fast", "--fast"),
    models=(a_model("one"), a_model("two")),
    devices=(a_device("cpu"), a_device("gpu")),
)


def under(*toolchains: str) -> tuple[Case, ...]:
    return across_toolchains([plan(SUITE, toolchain=toolchain) for toolchain in toolchains])


def test_one_toolchain_changes_nothing() -> None:
    assert under("3.12.0") == plan(SUITE, toolchain="3.12.0")


def test_each_case_is_followed_by_itself_under_the_others() -> None:
    assert names(under("3.13.0", "3.12.0"))[:5] == [
        "one/stock@cpu:3.13.0",
        "one/stock@cpu:3.12.0",
        "one/fast@cpu:3.13.0",
        "one/fast@cpu:3.12.0",
        "one/stock@gpu:3.13.0",
    ]


def test_names_are_unique_and_ids_do_not_know_of_toolchains() -> None:
    cases = under("3.13.0", "3.12.0", "3.11.0")
    assert len(cases) == len({case.name for case in cases}) == 3 * 8
    assert {case.id for case in cases} == {case.id for case in plan(SUITE)}


def test_groups_hold_all_toolchains_and_have_one_baseline() -> None:
    cases = under("3.13.0", "3.12.0")
    assert {case.group for case in cases} == {"one@cpu", "one@gpu", "two@cpu", "two@gpu"}
    assert [case.name for case in cases if case.baseline] == [
        "one/stock@cpu:3.13.0",
        "one/stock@gpu:3.13.0",
        "two/stock@cpu:3.13.0",
        "two/stock@gpu:3.13.0",
    ]


def test_the_user_says_which_toolchain_is_compared_with() -> None:
    assert {case.toolchain for case in under("3.11.0", "3.13.0", "3.12.0") if case.baseline} == {"3.11.0"}


def test_a_device_that_only_another_toolchain_finds_has_its_baseline_there() -> None:
    plans = [
        plan(SUITE, toolchain="3.11.0", unavailable={"gpu": "no device"}),
        plan(SUITE, toolchain="3.13.0"),
    ]
    baselines = {case.group: case.toolchain for case in across_toolchains(plans) if case.baseline}
    assert baselines == {"one@cpu": "3.11.0", "one@gpu": "3.13.0", "two@cpu": "3.11.0", "two@gpu": "3.13.0"}


def test_a_device_that_none_of_them_finds_has_its_baseline_under_the_first() -> None:
    plans = [plan(SUITE, toolchain=one, unavailable={"gpu": "no device"}) for one in ("3.11.0", "3.13.0")]
    assert {case.toolchain for case in across_toolchains(plans) if case.baseline} == {"3.11.0"}


def test_flag_sets_for_some_releases_skip_the_others() -> None:
    new = FlagSet(name="new", description="", compile=("--new",), toolchains=">=3.13")
    suite = a_suite(a_variant("stock"), a_variant("new", flag_sets=(new,)))
    cases = across_toolchains([plan(suite, toolchain=one) for one in ("3.12.0", "3.13.0")])
    assert {case.name: case.skip for case in cases} == {
        "net/stock@cpu:3.12.0": None,
        "net/stock@cpu:3.13.0": None,
        "net/new@cpu:3.12.0": "flag set new is for IREE >=3.13, and this is 3.12.0",
        "net/new@cpu:3.13.0": None,
    }


def test_patterns_are_matched_with_names_without_toolchains() -> None:
    cases = across_toolchains([plan(SUITE, toolchain=one, patterns=("one/fast@cpu",)) for one in ("3.13.0", "3.12.0")])
    assert names(cases) == [
        "one/stock@cpu:3.13.0",
        "one/stock@cpu:3.12.0",
        "one/fast@cpu:3.13.0",
        "one/fast@cpu:3.12.0",
    ]


def test_plans_of_different_suites_do_not_fit_together() -> None:
    with pytest.raises(ValueError, match="zip"):
        across_toolchains([plan(SUITE), plan(replace(SUITE, models=SUITE.models[:1]), toolchain="3.12.0")])
