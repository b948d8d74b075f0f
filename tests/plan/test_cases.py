"""A suite's cases: the product of its models, variants and devices, named, in order, with all that a run must know."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.records.case import Case
from harness.suite.load import FlagSet
from harness.suite.schema import NAME_PATTERN
from tests.plan.conftest import a_device, a_model, a_suite, a_variant, names, plan

some_names = st.lists(st.from_regex(NAME_PATTERN.replace("$", r"\Z")), min_size=1, max_size=4, unique=True)


def test_cases_go_model_by_model_and_device_by_device_with_the_baseline_first() -> None:
    suite = a_suite(
        a_variant("fast"),
        a_variant("stock"),
        models=(a_model("small"), a_model("big")),
        devices=(a_device("gpu"), a_device("cpu")),
    )
    suite = replace(suite, baseline="stock")
    assert names(plan(suite)) == [
        "small/stock@gpu",
        "small/fast@gpu",
        "small/stock@cpu",
        "small/fast@cpu",
        "big/stock@gpu",
        "big/fast@gpu",
        "big/stock@cpu",
        "big/fast@cpu",
    ]


@given(models=some_names, variants=some_names, devices=some_names)
def test_names_are_unique(models: list[str], variants: list[str], devices: list[str]) -> None:
    suite = a_suite(
        *(a_variant(name) for name in variants),
        models=tuple(a_model(name) for name in models),
        devices=tuple(a_device(name) for name in devices),
    )
    found = names(plan(suite))
    assert len(set(found)) == len(found) == len(models) * len(variants) * len(devices)


def test_a_case_has_all_that_a_run_must_know() -> None:
    device = a_device(
        "pool",
        uri="local-task",
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
    (case,) = plan(suite)
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
        more_uris=(),
        threads=1,
        environment={},
        skip=None,
        expected_failure=None,
    )


def test_flags_come_from_the_device_then_flag_sets_then_the_variant_and_a_later_one_wins() -> None:
    device = a_device(compile_flags=("--a=device", "--b=device", "--c=device"), run_flags=("--r=device",))
    sets = (
        FlagSet(name="one", compile=("--b=one", "--c=one", "--d=one"), run=("--r=one",)),
        FlagSet(name="two", compile=("--d=two",), run=("--r=two",)),
    )
    (case,) = plan(a_suite(a_variant("stock", "--c=variant", flag_sets=sets), devices=(device,)))
    assert case.compile_flags == ("--a=device", "--b=one", "--d=two", "--c=variant")
    assert case.run_flags == ("--r=two",)


def test_a_case_has_all_devices_of_its_device() -> None:
    (case,) = plan(a_suite(devices=(a_device(uri="local-sync", more_uris=("vulkan", "local-sync")),)))
    assert case.uris == ("local-sync", "vulkan", "local-sync")


def test_what_processes_on_a_device_need_goes_to_its_cases() -> None:
    suite = a_suite(devices=(a_device("cpu"), a_device("gpu", uri="vulkan")))
    variables = {"VK_DRIVER_FILES": "lvp_icd.json"}
    cases = plan(suite, environments={"gpu": variables})
    assert [case.environment for case in cases] == [{}, variables]


@pytest.mark.parametrize(
    ("fields", "threads", "flags"),
    [
        ({}, 1, ()),
        ({"more_uris": ("local-sync",)}, 1, ()),
        ({"uri": "local-task"}, None, ()),
        ({"uri": "local-task", "pin": True}, 1, ()),
        ({"uri": "vulkan"}, None, ()),
        ({"uri": "vulkan", "threads": 2}, 2, ()),
        ({"uri": "local-task", "threads": 4}, 4, ("--task_topology_group_count=4",)),
        ({"more_uris": ("local-task",), "threads": 1}, 1, ("--task_topology_group_count=1",)),
        (
            {"uri": "local-task", "threads": 4, "run_flags": ("--task_topology_group_count=8",)},
            4,
            ("--task_topology_group_count=8",),
        ),
    ],
)
def test_threads_of_peers_and_of_pools(fields: dict[str, Any], threads: int | None, flags: tuple[str, ...]) -> None:
    (case,) = plan(a_suite(devices=(a_device(**fields),)))
    assert (case.threads, case.run_flags) == (threads, flags)


def test_a_group_is_what_is_measured_against_each_other() -> None:
    suite = a_suite(a_variant("stock"), a_variant("fast"), devices=(a_device("cpu"), a_device("gpu")))
    assert [case.group for case in plan(suite)] == ["net@cpu", "net@cpu", "net@gpu", "net@gpu"]
    assert [case.baseline for case in plan(suite)] == [True, False, True, False]


def test_a_hundred_thousand_cases_can_be_planned() -> None:
    suite = a_suite(
        *(a_variant(f"variant-{number}", f"--iree-opt-level=O{number}") for number in range(20)),
        models=tuple(a_model(f"model-{number}") for number in range(1000)),
        devices=tuple(a_device(f"device-{number}", uri=f"cuda://{number}") for number in range(5)),
        exclude=("model-0/variant-1@*",),
    )
    cases = plan(suite)
    assert len(cases) == 100_000 - 5
    assert len({case.id for case in cases}) == len(cases)
