"""One variant or peer on one device: its flags, its identity, its threads, and why it does not run here."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from harness.models.model import Expectation, Model
from harness.plugins import Applied
from harness.records.case import Case
from harness.suite.cases import suits
from harness.suite.load import Device, FlagSet, Variant
from harness.suite.schema import PluginTable
from tests.builders import a_device, a_model, a_peer, a_suite, a_variant, applied, flag_plugin
from tests.suite.conftest import names, plan


def test_flags_come_from_the_device_then_flag_sets_then_the_variant_and_a_later_one_wins() -> None:
    device = a_device(compile_flags=("--a=device", "--b=device", "--c=device"), run_flags=("--r=device",))
    sets = (
        FlagSet(name="one", compile=("--b=one", "--c=one", "--d=one"), run=("--r=one",)),
        FlagSet(name="two", compile=("--d=two",), run=("--r=two",)),
    )
    (case,) = plan(a_suite(a_variant("stock", "--c=variant", flag_sets=sets), devices=(device,)))
    assert case.compile_flags == ("--a=device", "--b=one", "--d=two", "--c=variant")
    assert case.run_flags == ("--r=two",)


FOUR, EIGHT = "--task_topology_group_count=4", "--task_topology_group_count=8"


@pytest.mark.parametrize(
    ("fields", "threads", "flags"),
    [
        ({}, 1, ()),
        ({"more_uris": ("local-sync",)}, 1, ()),
        ({"uri": "local-task"}, None, ()),
        ({"uri": "local-task", "pin": True}, 1, ()),
        ({"uri": "vulkan"}, None, ()),
        ({"uri": "vulkan", "threads": 2}, 2, ()),
        ({"uri": "local-task", "threads": 4}, 4, (FOUR,)),
        ({"more_uris": ("local-task",), "threads": 4}, 4, (FOUR,)),
        ({"uri": "local-task", "threads": 4, "run_flags": (EIGHT,)}, 4, (EIGHT,)),
    ],
)
def test_threads_of_peers_and_of_pools(fields: dict[str, Any], threads: int | None, flags: tuple[str, ...]) -> None:
    case, *peers = plan(a_suite(devices=(a_device(**fields),)), peers=[a_peer()])
    assert (case.threads, case.run_flags) == (threads, flags)
    assert all(peer.threads == threads for peer in peers)


# ---------------------------------------------------------------------------------------------------------------- skips


def case_with(flag_set: FlagSet, *, backend: str = "llvm-cpu", toolchain: str = "3.13.0", **others: Any) -> Case:
    suite = a_suite(a_variant("tiled", flag_sets=(flag_set,)), devices=(a_device("here", backend=backend),))
    (case,) = plan(suite, toolchain=toolchain, **others)
    return case


TILING = FlagSet(name="tiling", backends=("llvm-cpu", "vmvx"), toolchains=">=3.8,<4")


@pytest.mark.parametrize(
    ("machine", "skip"),
    [
        ({}, None),
        ({"backend": "vmvx", "toolchain": "3.8.0"}, None),
        ({"backend": "cuda"}, "flag set tiling is for llvm-cpu, vmvx, and device here is cuda"),
        ({"toolchain": "3.7.1"}, "flag set tiling is for IREE >=3.8,<4, and this is 3.7.1"),
        ({"backend": "cuda", "unavailable": {"here": "no CUDA device"}}, "no CUDA device"),
    ],
)
def test_a_case_that_does_not_run_here_says_why_and_keeps_its_identity(
    machine: dict[str, Any], skip: str | None
) -> None:
    case = case_with(TILING, **machine)
    assert case.skip == skip
    assert case.id == case_with(FlagSet(name="anything")).id


def test_only_the_cases_of_a_missing_device_are_skipped() -> None:
    suite = a_suite(devices=(a_device("cpu"), a_device("gpu")))
    assert [case.skip for case in plan(suite, unavailable={"gpu": "no device"})] == [None, "no device"]


@pytest.mark.parametrize(
    ("specifier", "release", "suited"),
    [
        ("", "3.13.0", True),
        (">=3.8", "3.7.9", False),
        ("==3.13.*", "3.13.1", True),
        (">=3.8,!=3.9.0", "3.9.0", False),
        (">=3.13.0rc1", "3.13.0rc20260901", True),
        ("<3.13", "3.14.0rc20260901", False),
        (">=3.13", "3.14.0rc20260901", True),
    ],
)
def test_releases_are_version_specifiers_and_nightly_builds_count(specifier: str, release: str, suited: bool) -> None:
    assert suits(a_variant(toolchains=specifier), release) is suited
    assert suits(a_variant(flag_sets=(FlagSet(name="tiling", toolchains=specifier),)), release) is suited


# ------------------------------------------------------------------------------------------------------------- identity

SHARE = applied(flag_plugin("share-concat", "--iree-share-concat"))
SHARING = a_variant(plugins=(PluginTable(name="share-concat"),))


MODEL, VARIANT, DEVICE = a_model(), a_variant(), a_device()


def case_id(
    *,
    model: Model = MODEL,
    variant: Variant = VARIANT,
    device: Device = DEVICE,
    model_id: str = "the definition of net",
    toolchain: str = "3.13.0",
    share: Applied = SHARE,
) -> str:
    suite = a_suite(variant, models=(model,), devices=(device,))
    plugins = {variant.name: (share,)} if variant.plugins else {}
    (case,) = plan(suite, model_ids={model.name: model_id}, toolchain=toolchain, plugins=plugins)
    return case.id


def with_flags(*flags: str) -> str:
    return case_id(variant=a_variant("stock", *flags))


def test_the_id_is_a_known_one() -> None:
    # Runs on people's disks are compared by these ids. Whoever makes this fail cuts every stored run off from the next:
    # do it on purpose, raise the version of the stored files, and say so in the release notes.
    device = a_device(uri="local-task", compile_flags=("--iree-hal-target-device=local",), run_flags=("--x=1",))
    variant = a_variant("tiled", "--iree-opt-data-tiling")
    assert case_id(variant=variant, device=device, model_id="0" * 64) == "2abe240479bcadb7"


REMARKS: dict[str, Any] = {"description": "a", "tags": ("b",)}
BY_SET = a_variant(flag_sets=(FlagSet(name="set", compile=("--a=1",)),))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(case_id(), case_id(model=a_model("other")), id="the model's name"),
        pytest.param(case_id(), case_id(variant=a_variant("other")), id="the variant's name"),
        pytest.param(case_id(), case_id(device=a_device("other")), id="the device's name"),
        pytest.param(case_id(), case_id(toolchain="3.12.0"), id="the toolchain, since it is what one compares"),
        pytest.param(
            case_id(),
            case_id(model=a_model(**REMARKS), variant=a_variant(**REMARKS), device=a_device(**REMARKS)),
            id="descriptions and tags",
        ),
        pytest.param(case_id(), case_id(variant=a_variant(flag_sets=(FlagSet(name="a"),))), id="an empty flag set"),
        pytest.param(case_id(), case_id(device=a_device(backend="vmvx")), id="the backend, since the flags choose it"),
        pytest.param(with_flags("--a=1", "--b=2"), with_flags("--b=2", "--a=1"), id="the order of different flags"),
        pytest.param(with_flags("--a=1"), case_id(variant=BY_SET), id="a flag in a set"),
        pytest.param(with_flags("--a=1"), case_id(device=a_device(compile_flags=("--a=1",))), id="a flag of a device"),
        pytest.param(with_flags("--a"), with_flags("--a=true"), id="the value of a switch that is on"),
        pytest.param(with_flags("--a"), with_flags("-a"), id="the number of dashes"),
    ],
)
def test_the_id_does_not_depend_on(first: str, second: str) -> None:
    assert first == second


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(case_id(), case_id(model_id="another definition of net"), id="the model's definition"),
        pytest.param(case_id(), with_flags("--a"), id="compile flags"),
        pytest.param(case_id(), case_id(variant=a_variant(run_flags=("--a",))), id="run flags"),
        pytest.param(with_flags("--a"), case_id(variant=a_variant(run_flags=("--a",))), id="the tool that has a flag"),
        pytest.param(case_id(), case_id(device=a_device(compile_flags=("--b",))), id="the device's compile flags"),
        pytest.param(case_id(), case_id(device=a_device(uri="local-task")), id="the device's URI"),
        pytest.param(case_id(), case_id(device=a_device(pin=True)), id="the device's pin"),
        pytest.param(case_id(), case_id(device=a_device(more_uris=("local-sync",))), id="a second device"),
        pytest.param(
            case_id(device=a_device(more_uris=("a", "b"))),
            case_id(device=a_device(more_uris=("b", "a"))),
            id="the order of devices",
        ),
        pytest.param(case_id(), case_id(device=a_device(vulkan_driver="lavapipe")), id="the Vulkan driver"),
        pytest.param(with_flags("--pass=x", "--pass=y"), with_flags("--pass=y", "--pass=x"), id="the order of a list"),
        pytest.param(with_flags("--a"), with_flags("--a=false"), id="whether a switch is on"),
        pytest.param(case_id(), case_id(variant=SHARING), id="plugins"),
        pytest.param(with_flags("--iree-share-concat"), case_id(variant=SHARING), id="more than a plugin's flags"),
        pytest.param(
            case_id(variant=SHARING),
            case_id(variant=SHARING, share=applied(flag_plugin("share-concat", "--iree-share-concat", version="2"))),
            id="the version of a plugin",
        ),
        pytest.param(
            case_id(variant=SHARING),
            case_id(variant=SHARING, share=replace(SHARE, options={"deep": True})),
            id="the options of a plugin",
        ),
    ],
)
def test_the_id_depends_on(first: str, second: str) -> None:
    assert first != second


def test_options_of_a_plugin_may_be_any_values_of_json() -> None:
    odd: dict[str, Any] = {"scale": math.nan, "limit": math.inf, "deep": {"a": [1, {"b": None}]}, "name": 'a\n"`|'}
    first = case_id(variant=SHARING, share=replace(SHARE, options=odd))
    assert first == case_id(variant=SHARING, share=replace(SHARE, options=dict(reversed(odd.items()))))
    assert first != case_id(variant=SHARING, share=replace(SHARE, options={**odd, "scale": 1.0}))


# ---------------------------------------------------------------------------------------------------------------- peers

ONNXRUNTIME = a_peer()
HALIDE = a_peer("halide", label="halide-tutorial", schedule="tutorial")


def peer_case(*, peer: Any = ONNXRUNTIME, device: Device = DEVICE, **others: Any) -> Case:
    (case,) = (case for case in plan(a_suite(devices=(device,)), peers=[peer], **others) if case.peer is not None)
    return case


def test_peers_stand_after_the_variants_of_each_group() -> None:
    suite = a_suite(a_variant("stock"), a_variant("fast"), models=(a_model("a"), a_model("b")))
    assert names(plan(suite, peers=[ONNXRUNTIME, HALIDE])) == [
        f"{model}/{variant}@cpu" for model in "ab" for variant in ("stock", "fast", "onnxruntime", "halide-tutorial")
    ]


def test_the_case_of_a_peer_has_nothing_that_is_irees() -> None:
    suite = a_suite(
        a_variant("stock", "--iree-opt-level=O3"),
        models=(a_model(expectation=Expectation(cases="net/*", message="no")),),
    )
    stock, peer = plan(suite, peers=[ONNXRUNTIME])
    assert (peer.peer, peer.toolchain, peer.compile_flags, peer.run_flags) == ("onnxruntime", "", (), ())
    assert not peer.baseline
    assert "peer" in peer.tags
    assert (stock.known_to_fail, peer.known_to_fail) == (True, False)


@pytest.mark.parametrize(
    "fields",
    [
        {"uri": "vulkan", "backend": "vulkan-spirv"},
        {"backend": "vmvx"},
        {"uri": "local-task", "more_uris": ("local-task",)},
    ],
)
def test_peers_run_beside_llvm_cpu_on_one_device_only(fields: dict[str, Any]) -> None:
    cases = plan(a_suite(devices=(a_device(**fields),)), peers=[ONNXRUNTIME])
    assert [case.peer for case in cases] == [None]


@pytest.mark.parametrize(
    ("machine", "skips"),
    [
        (
            {"missing_peers": {"onnxruntime": "not installed; get it"}},
            [None, "not installed; get it", None],
        ),
        ({"unavailable": {"cpu": "no such device"}}, ["no such device"] * 3),
    ],
)
def test_a_missing_peer_or_device_skips_a_peers_cases(machine: dict[str, Any], skips: list[str | None]) -> None:
    assert [case.skip for case in plan(a_suite(), peers=[ONNXRUNTIME, HALIDE], **machine)] == skips


def test_a_peers_identity_is_engine_options_threads_and_model_and_not_its_label() -> None:
    first = peer_case()
    assert peer_case(peer=a_peer(label="ort")).id == first.id
    assert peer_case(peer=a_peer(label="ort")).name != first.name
    others = (
        peer_case(peer=a_peer("openvino")),
        peer_case(peer=a_peer(mode="eager")),
        peer_case(device=a_device(threads=2)),
        peer_case(model_ids={"net": "another"}),
    )
    assert first.id not in {case.id for case in others}
