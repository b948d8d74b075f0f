"""Flags as data: their names, whether they are on, what a later group changes, and when two lists mean the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.suite.flags import is_on, normalised, refusal, runs_code
from harness.toolchain.tools import flag_name, merge_flags

flag_names = st.sampled_from(["a", "b", "iree-opt-level", "iree-opt-data-tiling"])
flags = st.builds(
    "{}{}{}".format,
    st.sampled_from(["-", "--"]),
    flag_names,
    st.sampled_from(["", "=", "=true", "=false", "=x", "=x=y"]),
)
groups = st.lists(flags, max_size=5)


@pytest.mark.parametrize(
    ("flag", "name"),
    [
        ("--iree-opt-level=O3", "iree-opt-level"),
        ("-O3", "O3"),
        ("--iree-opt-data-tiling", "iree-opt-data-tiling"),
        ("--pipeline=module(a{b=c})", "pipeline"),
    ],
)
def test_the_name_of_a_flag(flag: str, name: str) -> None:
    assert flag_name(flag) == name


@pytest.mark.parametrize("flag", ["--a", "-a", "--a=true", "--a=TRUE", "--a=1", "--a=on"])
def test_a_flag_that_is_on(flag: str) -> None:
    assert is_on(flag)


@pytest.mark.parametrize("flag", ["--a=false", "--a=0", "--a=off", "--a="])
def test_a_flag_that_is_not_on(flag: str) -> None:
    assert not is_on(flag)


def test_a_later_group_wins_and_takes_the_later_place() -> None:
    assert merge_flags(("--a=1", "--b=1"), ("--a=2",)) == ("--b=1", "--a=2")


def test_a_group_may_hold_a_list() -> None:
    assert merge_flags(("--p=1", "--p=2"), ("--q=1",)) == ("--p=1", "--p=2", "--q=1")


def test_a_later_list_replaces_the_whole_of_an_earlier_one() -> None:
    assert merge_flags(("--p=1", "--p=2"), ("--p=3", "--p=4")) == ("--p=3", "--p=4")


def test_one_dash_or_two_is_the_same_flag() -> None:
    assert merge_flags(("-a=1",), ("--a=2",)) == ("--a=2",)


@given(groups, groups)
def test_the_later_group_is_there_whole_and_at_the_end(first: list[str], second: list[str]) -> None:
    merged = merge_flags(first, second)
    assert list(merged[len(merged) - len(second) :]) == second


@given(groups, groups)
def test_of_the_earlier_group_what_is_not_replaced_stays_in_order(first: list[str], second: list[str]) -> None:
    replaced = {flag_name(flag) for flag in second}
    kept = [flag for flag in first if flag_name(flag) not in replaced]
    assert merge_flags(first, second) == (*kept, *second)


@given(groups, groups, groups)
def test_it_does_not_matter_which_groups_are_merged_first(one: list[str], two: list[str], three: list[str]) -> None:
    assert merge_flags(merge_flags(one, two), three) == merge_flags(one, merge_flags(two, three))


@given(groups)
def test_merging_a_group_with_itself_or_with_nothing_changes_nothing(group: list[str]) -> None:
    assert merge_flags(group) == merge_flags(group, group) == merge_flags(group, ()) == tuple(group)


def test_the_normal_form() -> None:
    assert normalised(["-b=2", "--c=true", "--d=false", "--a"]) == ("--a", "--b=2", "--c", "--d=false")


@given(groups)
def test_the_normal_form_is_its_own_normal_form(group: list[str]) -> None:
    assert normalised(normalised(group)) == normalised(group)


@given(
    st.lists(flags, max_size=5, unique_by=flag_name).flatmap(lambda one: st.tuples(st.just(one), st.permutations(one)))
)
def test_the_order_of_different_flags_is_no_part_of_it(orders: tuple[list[str], list[str]]) -> None:
    assert normalised(orders[0]) == normalised(orders[1])


@given(groups)
def test_the_order_of_equal_flags_is_a_part_of_it(group: list[str]) -> None:
    for name in {flag_name(flag) for flag in group}:
        same = [flag for flag in group if flag_name(flag) == name]
        assert tuple(flag for flag in normalised(group) if flag_name(flag) == name) == normalised(same)


@pytest.mark.parametrize(
    "flag",
    [
        "--iree-load-plugin=x.so",
        "-iree-hal-substitute-executable-object=a=b.o",
        "--iree-link-bitcode=x.bc",
        "--iree-hal-preprocess-executables-with=sh x",
        "--iree-llvmcpu-system-linker-path=./x",
        "--iree-cuda-use-ptxas-from=./x",
        "--iree-preprocessing-pass-pipeline=builtin.module(iree-hal-preprocess-executables-with-tool{command=x})",
    ],
)
def test_what_loads_code_or_runs_a_program_is_not_a_suites_to_give(flag: str) -> None:
    reason = refusal(flag, at_run=False)
    assert reason is not None
    assert reason.startswith(("loads code", "runs a program"))
    assert runs_code(flag)


def test_other_flags_run_nothing() -> None:
    assert not runs_code("--iree-opt-level=O3")
    assert not runs_code("--device=local-sync")  # which a suite may not give either, for another reason
