"""A case's id: what is compiled and how it runs, and nothing else, so that results of two runs find each other."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from harness.models.model import Model
from harness.plugins import Applied
from harness.suite.load import Device, FlagSet, PluginUse, Suite, Variant
from tests.builders import applied, flag_plugin
from tests.plan.conftest import a_device, a_model, a_suite, a_variant, plan

MODEL, VARIANT, DEVICE = a_model(), a_variant(), a_device()
SHARE = applied(flag_plugin("share-concat", "--iree-share-concat"))
SHARING = a_variant(plugins=(PluginUse(name="share-concat"),))


def case_id(
    *,
    model: Model = MODEL,
    variant: Variant = VARIANT,
    device: Device = DEVICE,
    model_id: str = "the definition of net",
    toolchain: str = "3.13.0",
    share: Applied = SHARE,
) -> str:
    suite: Suite = a_suite(variant, models=(model,), devices=(device,))
    plugins = {variant.name: (share,)} if variant.plugins else {}
    (case,) = plan(suite, model_ids={model.name: model_id}, toolchain=toolchain, plugins=plugins)
    return case.id


def with_flags(*flags: str) -> str:
    return case_id(variant=a_variant("stock", *flags))


def test_the_id_is_a_known_one() -> None:
    # Runs on people's disks are compared by these ids. Whoever makes this fail cuts every stored run off from the next:
    # do it on purpose, raise the version of the stored files, and say so in the release notes.
    (case,) = plan(
        a_suite(
            a_variant("tiled", "--iree-opt-data-tiling"),
            devices=(
                a_device(uri="local-task", compile_flags=("--iree-hal-target-device=local",), run_flags=("--x=1",)),
            ),
        ),
        model_ids={"net": "0" * 64},
    )
    assert case.id == "2abe240479bcadb7"


@pytest.mark.parametrize(
    "same",
    [
        pytest.param(case_id(model=a_model("other")), id="the model's name"),
        pytest.param(case_id(variant=a_variant("other")), id="the variant's name"),
        pytest.param(case_id(device=a_device("other")), id="the device's name"),
        pytest.param(case_id(toolchain="3.12.0"), id="the toolchain, since it is what one compares"),
        pytest.param(
            case_id(
                model=a_model(description="a", tags=("b",)),
                variant=a_variant(description="a", tags=("b",)),
                device=a_device(description="a", tags=("b",)),
            ),
            id="descriptions and tags",
        ),
        pytest.param(case_id(variant=a_variant(flag_sets=(FlagSet(name="empty"),))), id="a flag set without flags"),
        pytest.param(case_id(device=a_device(backend="vmvx")), id="the backend, since the flags choose it"),
    ],
)
def test_the_id_does_not_depend_on(same: str) -> None:
    assert same == case_id()


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(case_id(model_id="another definition of net"), id="the model's definition"),
        pytest.param(with_flags("--a"), id="compile flags"),
        pytest.param(case_id(variant=a_variant(run_flags=("--a",))), id="run flags"),
        pytest.param(case_id(device=a_device(compile_flags=("--b",))), id="the device's compile flags"),
        pytest.param(case_id(device=a_device(uri="local-task")), id="the device's URI"),
        pytest.param(case_id(device=a_device(pin=True)), id="the device's pin"),
        pytest.param(case_id(device=a_device(more_uris=("local-sync",))), id="a second device"),
        pytest.param(case_id(device=a_device(vulkan_driver="lavapipe")), id="the Vulkan driver that it is of"),
        pytest.param(case_id(variant=SHARING), id="plugins"),
    ],
)
def test_the_id_depends_on(other: str) -> None:
    assert other != case_id()


def test_the_order_of_devices_counts() -> None:
    first, second = (a_device(more_uris=uris) for uris in (("a", "b"), ("b", "a")))
    assert case_id(device=first) != case_id(device=second)


def test_compile_and_run_flags_are_told_apart() -> None:
    assert with_flags("--a") != case_id(variant=a_variant(run_flags=("--a",)))


def test_another_version_of_a_plugin_is_another_case() -> None:
    newer = applied(flag_plugin("share-concat", "--iree-share-concat", version="2"))
    assert case_id(variant=SHARING) != case_id(variant=SHARING, share=newer)


def test_other_options_of_a_plugin_are_another_case() -> None:
    assert case_id(variant=SHARING) != case_id(variant=SHARING, share=replace(SHARE, options={"deep": True}))


def test_options_may_be_any_values_of_json() -> None:
    odd: dict[str, Any] = {"scale": math.nan, "limit": math.inf, "deep": {"a": [1, {"b": None}]}, "name": 'a\n"`|'}
    first = case_id(variant=SHARING, share=replace(SHARE, options=odd))
    assert first == case_id(variant=SHARING, share=replace(SHARE, options=dict(reversed(odd.items()))))
    assert first != case_id(variant=SHARING, share=replace(SHARE, options={**odd, "scale": 1.0}))


def test_a_plugin_is_more_than_the_flags_that_it_adds() -> None:
    assert case_id(variant=SHARING) != with_flags("--iree-share-concat")


def test_the_order_of_flags_does_not_matter() -> None:
    assert with_flags("--a=1", "--b=2") == with_flags("--b=2", "--a=1")


def test_the_order_of_a_repeated_flag_does_matter() -> None:
    assert with_flags("--pass=x", "--pass=y") != with_flags("--pass=y", "--pass=x")


def test_who_gives_a_flag_does_not_matter() -> None:
    by_set = a_variant(flag_sets=(FlagSet(name="set", compile=("--a=1",)),))
    assert with_flags("--a=1") == case_id(variant=by_set) == case_id(device=a_device(compile_flags=("--a=1",)))


def test_a_switch_may_be_written_in_several_ways() -> None:
    assert with_flags("--a") == with_flags("--a=true") == with_flags("-a")
    assert with_flags("--a") != with_flags("--a=false")
