"""A suite's cases: models x variants x devices, less what the matrix and the user leave out, named and in order."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import ExitCode, SuiteError, UsageError
from harness.models.model import Expectation
from harness.records.case import Case, Gate
from harness.suite.cases import across_toolchains, unknown_flags
from harness.suite.load import FlagSet, Suite
from harness.suite.schema import NAME_PATTERN
from tests.builders import a_device, a_model, a_peer, a_suite, a_variant
from tests.suite.conftest import names, plan

some_names = st.lists(st.from_regex(NAME_PATTERN.replace("$", r"\Z")), min_size=1, max_size=4, unique=True)


def suite_with(**fields: Any) -> Suite:
    """Two models x two variants x two devices."""
    return a_suite(
        a_variant("stock"),
        a_variant("fast", tags=("new",)),
        models=(a_model("small"), a_model("big", tags=("vision",))),
        devices=(a_device("cpu"), a_device("gpu", tags=("slow-lane",))),
        **fields,
    )


EVERY_CASE = [
    "small/stock@cpu",
    "small/fast@cpu",
    "small/stock@gpu",
    "small/fast@gpu",
    "big/stock@cpu",
    "big/fast@cpu",
    "big/stock@gpu",
    "big/fast@gpu",
]


def refusal(suite: Suite) -> str:
    with pytest.raises(SuiteError) as caught:
        plan(suite)
    return str(caught.value)


def test_cases_go_model_by_model_and_device_by_device_with_the_baseline_first() -> None:
    assert names(plan(suite_with())) == EVERY_CASE
    turned_round = replace(suite_with(), variants=suite_with().variants[::-1])
    assert names(plan(turned_round)) == EVERY_CASE


@settings(max_examples=20)
@given(models=some_names, variants=some_names, devices=some_names)
def test_names_are_unique(models: list[str], variants: list[str], devices: list[str]) -> None:
    suite = a_suite(
        *(a_variant(name) for name in variants),
        models=tuple(a_model(name) for name in models),
        devices=tuple(a_device(name) for name in devices),
    )
    cases = names(plan(suite))
    assert len(set(cases)) == len(cases) == len(models) * len(variants) * len(devices)


def test_a_case_has_all_that_a_run_must_know() -> None:
    device = a_device(
        "pool",
        uri="local-task",
        more_uris=("vulkan",),
        compile_flags=("--iree-hal-target-device=local",),
        run_flags=("--task_topology_group_count=2",),
        pin=True,
        tags=("cpu", "all"),
    )
    tiling = FlagSet(name="tiling", compile=("--iree-opt-data-tiling",), run=("--device_allocator=caching",))
    variant = a_variant(
        "tiled", "--iree-opt-level=O3", flag_sets=(tiling,), run_flags=("--trace_execution",), tags=("tiling", "all")
    )
    suite = a_suite(variant, models=(a_model(tags=("vision", "all")),), devices=(device,))
    (case,) = plan(suite, environment={"VK_DRIVER_FILES": "lvp_icd.json"})
    assert case == Case(
        id=case.id,
        name="net/tiled@pool",
        model="net",
        variant="tiled",
        device="pool",
        toolchain="3.13.0",
        baseline=True,
        uri="local-task",
        backend="llvm-cpu",
        pin=True,
        compile_flags=("--iree-hal-target-device=local", "--iree-opt-data-tiling", "--iree-opt-level=O3"),
        run_flags=("--task_topology_group_count=2", "--device_allocator=caching", "--trace_execution"),
        plugins=(),
        tags=("vision", "all", "tiling", "cpu"),
        more_uris=("vulkan",),
        threads=1,
        environment={"VK_DRIVER_FILES": "lvp_icd.json"},
        skip=None,
        expected_failure=None,
    )
    assert case.uris == ("local-task", "vulkan")


def test_a_group_is_what_is_measured_against_each_other() -> None:
    cases = plan(a_suite(a_variant("stock"), a_variant("fast"), devices=(a_device("cpu"), a_device("gpu"))))
    assert [case.group for case in cases] == ["net@cpu", "net@cpu", "net@gpu", "net@gpu"]
    assert [case.baseline for case in cases] == [True, False, True, False]


# ---------------------------------------------------------------------------------------------------------- the matrix


@pytest.mark.parametrize(
    ("fields", "cases"),
    [
        ({"include": ("big/*@gpu", "small/stock@cpu")}, ["small/stock@cpu", "big/stock@gpu", "big/fast@gpu"]),
        ({"include": ("big/*",), "exclude": ("*@gpu",)}, ["big/stock@cpu", "big/fast@cpu"]),
        *(
            ({"exclude": (pattern,)}, EVERY_CASE[:-1])
            for pattern in ("big/fast@gpu", "big/*t@gpu", "b?g/fast@gpu", "[b]ig/[!s]*@[fg]pu")
        ),
    ],
)
def test_the_matrix_includes_then_excludes_by_patterns_of_a_shell(fields: dict[str, Any], cases: list[str]) -> None:
    assert names(plan(suite_with(**fields))) == cases


NO_MATCH = "matches no case; patterns are matched with model/variant@device, such as small/stock@cpu"


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"include": ("*", "big/*@tpu")}, f"[matrix] include: 'big/*@tpu' {NO_MATCH}"),
        ({"exclude": ("*@gpu", "big/*@tpu")}, f"[matrix] exclude: 'big/*@tpu' {NO_MATCH}"),
        # Patterns match whole names and mind capitals.
        *(({"exclude": (pattern,)}, f"[matrix] exclude: '{pattern}' {NO_MATCH}") for pattern in ("big/fast", "BIG/*")),
        ({"exclude": ("*",)}, "[matrix] exclude leaves no case; remove a pattern"),
        (
            {"exclude": ("big/stock@gpu",)},
            "[matrix] leaves big/fast@gpu without its baseline 'stock'; include big/stock@gpu or exclude big/*@gpu",
        ),
        (
            {"exclude": ("*/fast@gpu",), "expectations": (Expectation(cases="*/fast@gpu", message="oops"),)},
            f"[[expect]] cases: '*/fast@gpu' {NO_MATCH}",
        ),
        (
            {"exclude": ("*/fast@gpu",), "gates": (Gate(name="memory", metric="copies", cases="*/fast@gpu"),)},
            f"[gates.memory] cases: '*/fast@gpu' {NO_MATCH}",
        ),
    ],
)
def test_a_suite_whose_patterns_leave_too_little(fields: dict[str, Any], sentence: str) -> None:
    assert refusal(suite_with(**fields)) == f"suite.toml: {sentence}"


def test_a_gate_may_be_for_all_cases() -> None:
    assert len(plan(suite_with(gates=(Gate(name="memory", metric="copies"),)))) == 8


def test_a_case_has_the_first_expectation_that_matches_it_else_that_of_its_model() -> None:
    by_case = (
        Expectation(cases="big/*@gpu", message=None),
        Expectation(cases="small/fast@*", message="shared memory"),
        Expectation(cases="*/fast@gpu", message="no such extension"),
    )
    wrong, refused = Expectation(cases="small/*", message=None), Expectation(cases="big/*", message="no such operator")
    models = (a_model("small", expectation=wrong), a_model("big", expectation=refused))
    cases = plan(replace(suite_with(expectations=by_case), models=models))
    assert {case.name: (case.expected_failure, case.expected_mismatch) for case in cases} == {
        "small/stock@cpu": (None, True),
        "small/fast@cpu": ("shared memory", False),
        "small/stock@gpu": (None, True),
        "small/fast@gpu": ("shared memory", False),
        "big/stock@cpu": ("no such operator", False),
        "big/fast@cpu": ("no such operator", False),
        "big/stock@gpu": (None, True),
        "big/fast@gpu": (None, True),
    }
    assert all(case.known_to_fail for case in cases)
    assert not any(case.known_to_fail for case in plan(suite_with()))


# ----------------------------------------------------------------------------------------------- what the user asks for


@pytest.mark.parametrize(
    ("patterns", "tags", "left_out"),
    [
        (("big/fast@gpu",), (), EVERY_CASE[:6]),  # the baseline comes along
        (("big/stock@gpu",), (), [*EVERY_CASE[:6], "big/fast@gpu"]),
        (("big/fast@gpu", "small/fast@*"), (), EVERY_CASE[4:6]),
        ((), ("vision",), EVERY_CASE[:4]),
        ((), ("new",), []),
        ((), ("slow-lane",), [name for name in EVERY_CASE if "@cpu" in name]),
        ((), ("vision", "slow-lane"), EVERY_CASE[:2]),
        (("*@cpu",), ("vision",), [*EVERY_CASE[:4], *EVERY_CASE[6:]]),
    ],
)
def test_a_selection_matches_a_pattern_and_a_tag(
    patterns: tuple[str, ...], tags: tuple[str, ...], left_out: list[str]
) -> None:
    selected = names(plan(suite_with(), patterns=patterns, tags=tags))
    assert selected == [name for name in EVERY_CASE if name not in left_out]


def test_a_selection_keeps_what_the_suite_expects_of_a_case() -> None:
    suite = suite_with(expectations=(Expectation(cases="*/fast@*", message="oops"),))
    assert [case.expected_failure for case in plan(suite, patterns=("big/fast@cpu",))] == [None, "oops"]


@pytest.mark.parametrize(
    ("patterns", "tags", "options"),
    [
        (("tiny/*",), (), "--filter tiny/*"),
        (("*@cpu", "tiny/*"), ("slow-lane",), "--filter *@cpu --filter tiny/* --tag slow-lane"),
    ],
)
def test_a_selection_of_nothing(patterns: tuple[str, ...], tags: tuple[str, ...], options: str) -> None:
    with pytest.raises(UsageError) as caught:
        plan(suite_with(), patterns=patterns, tags=tags)
    assert str(caught.value) == f"suite.toml: {options} matches no case; `harness list suite.toml` shows them all"
    assert caught.value.exit_code == ExitCode.USAGE


# ----------------------------------------------------------------------------------------------------------- toolchains


def under(*toolchains: str, **others: Any) -> tuple[Case, ...]:
    return across_toolchains([plan(suite_with(), toolchain=toolchain, **others) for toolchain in toolchains])


def test_one_toolchain_changes_nothing() -> None:
    assert under("3.12.0") == plan(suite_with(), toolchain="3.12.0")


def test_each_case_is_followed_by_itself_under_the_other_toolchains() -> None:
    cases = under("3.11.0", "3.13.0", "3.12.0")
    assert names(cases)[:4] == [
        "small/stock@cpu:3.11.0",
        "small/stock@cpu:3.13.0",
        "small/stock@cpu:3.12.0",
        "small/fast@cpu:3.11.0",
    ]
    assert len(cases) == len(set(names(cases))) == 3 * 8
    assert {case.id for case in cases} == {case.id for case in plan(suite_with())}
    assert {case.group for case in cases} == {"small@cpu", "small@gpu", "big@cpu", "big@gpu"}
    assert names([case for case in cases if case.baseline]) == [
        f"{model}/stock@{device}:3.11.0" for model in ("small", "big") for device in ("cpu", "gpu")
    ]


def test_a_groups_baseline_is_under_the_first_toolchain_that_finds_its_device() -> None:
    old = plan(suite_with(), toolchain="3.11.0", unavailable={"gpu": "no device"})
    new, new_without = (plan(suite_with(), toolchain="3.13.0", unavailable=gone) for gone in ({}, {"gpu": "none"}))

    def baselines(*plans: tuple[Case, ...]) -> dict[str, str]:
        return {case.group: case.toolchain for case in across_toolchains(plans) if case.baseline}

    on_cpu = {"small@cpu": "3.11.0", "big@cpu": "3.11.0"}
    assert baselines(old, new) == {**on_cpu, "small@gpu": "3.13.0", "big@gpu": "3.13.0"}
    assert baselines(old, new_without) == {**on_cpu, "small@gpu": "3.11.0", "big@gpu": "3.11.0"}


def test_patterns_are_matched_with_names_without_toolchains() -> None:
    assert names(under("3.13.0", "3.12.0", patterns=("big/fast@cpu",))) == [
        f"big/{variant}@cpu:{release}" for variant in ("stock", "fast") for release in ("3.13.0", "3.12.0")
    ]


def test_a_peer_is_there_once() -> None:
    plans = [plan(a_suite(), toolchain=release, peers=[a_peer()]) for release in ("3.12.0", "3.13.0")]
    assert names(across_toolchains(plans)) == ["net/stock@cpu:3.12.0", "net/stock@cpu:3.13.0", "net/onnxruntime@cpu"]


def test_plans_of_different_suites_do_not_fit_together() -> None:
    with pytest.raises(ValueError, match="zip"):
        across_toolchains([plan(suite_with()), plan(a_suite(), toolchain="3.12.0")])


# -------------------------------------------------------------------------------------------------------- unknown flags


@pytest.mark.parametrize(
    ("flags", "unknown"),
    [
        (("--a", "-b=2"), []),
        (("--a", "--c=1", "--d"), ["--c=1", "--d"]),
        (("--iree-load-plugin=lib.so", "--c"), []),  # a compiler plugin brings flags of its own
    ],
)
def test_flags_that_the_compiler_does_not_know(flags: tuple[str, ...], unknown: list[str]) -> None:
    (case,) = plan(a_suite(a_variant("stock", *flags)))
    assert unknown_flags(case.compile_flags, frozenset({"a", "b", "iree-load-plugin"})) == unknown
