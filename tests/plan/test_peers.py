"""Cases of peers: beside every model's variants on devices that are this machine's CPU, known by what they do."""

from __future__ import annotations

import pytest

from harness.records.case import Case
from harness.suite.cases import across_toolchains
from tests.builders import a_peer
from tests.plan.conftest import a_device, a_model, a_suite, a_variant, names, plan

ONNXRUNTIME = a_peer()
HALIDE = a_peer("halide", label="halide-tutorial", schedule="tutorial")


def only(cases: tuple[Case, ...]) -> Case:
    (case,) = (case for case in cases if case.peer is not None)
    return case


def test_peers_stand_after_the_variants_of_each_group() -> None:
    suite = a_suite(a_variant("stock"), a_variant("fast"), models=(a_model("a"), a_model("b")))
    assert names(plan(suite, peers=[ONNXRUNTIME, HALIDE])) == [
        f"{model}/{variant}@cpu" for model in "ab" for variant in ("stock", "fast", "onnxruntime", "halide-tutorial")
    ]


def test_the_case_of_a_peer_has_a_part_in_nothing_that_is_irees() -> None:
    case = only(plan(a_suite(a_variant("stock", "--iree-opt-level=O3")), peers=[ONNXRUNTIME]))
    assert case.peer == "onnxruntime"
    assert (case.toolchain, case.compile_flags, case.run_flags, case.plugins) == ("", (), (), ())
    assert not case.baseline
    assert "peer" in case.tags


@pytest.mark.parametrize(
    "device",
    [
        a_device("vulkan", uri="vulkan", backend="vulkan-spirv"),
        a_device("vmvx", backend="vmvx"),
        a_device("two", uri="local-task", more_uris=("local-task",)),
    ],
    ids=lambda device: device.name,
)
def test_peers_run_beside_llvm_cpu_on_one_device_only(device: object) -> None:
    cases = plan(a_suite(devices=(device,)), peers=[ONNXRUNTIME])  # type: ignore[arg-type]
    assert [case.peer for case in cases] == [None]


@pytest.mark.parametrize(
    ("device", "threads"),
    [
        (a_device(), 1),
        (a_device(uri="local-task"), None),
        (a_device(uri="local-task", pin=True), 1),
        (a_device(uri="local-task", threads=4), 4),
    ],
)
def test_a_peer_gets_as_many_threads_as_the_device_has(device: object, threads: int | None) -> None:
    """None: one for each core."""
    cases = plan(a_suite(devices=(device,)), peers=[ONNXRUNTIME])  # type: ignore[arg-type]
    assert only(cases).threads == threads


def test_a_missing_peer_is_skipped_with_its_sentence_and_the_rest_stays() -> None:
    cases = plan(
        a_suite(), peers=[ONNXRUNTIME, HALIDE], missing_peers={"onnxruntime": "onnxruntime is not installed; get it"}
    )
    assert [case.skip for case in cases] == [None, "onnxruntime is not installed; get it", None]


def test_an_absent_device_skips_its_peers_too() -> None:
    cases = plan(a_suite(), peers=[ONNXRUNTIME], unavailable={"cpu": "no such device"})
    assert {case.skip for case in cases} == {"no such device"}


def test_the_label_is_a_name_and_no_part_of_the_identity() -> None:
    one, other = (only(plan(a_suite(), peers=[a_peer(label=label)])) for label in ("ort", "onnx"))
    assert one.id == other.id
    assert one.name != other.name


@pytest.mark.parametrize(
    "other",
    [
        only(plan(a_suite(), peers=[a_peer("openvino")])),
        only(plan(a_suite(), peers=[a_peer(mode="eager")])),
        only(plan(a_suite(devices=(a_device(threads=2),)), peers=[ONNXRUNTIME])),
        only(plan(a_suite(), peers=[ONNXRUNTIME], model_ids={"net": "another"})),
    ],
)
def test_engine_options_threads_and_model_are_the_identity(other: Case) -> None:
    assert only(plan(a_suite(), peers=[ONNXRUNTIME])).id != other.id


def test_a_model_that_fails_in_iree_is_not_expected_to_fail_in_a_peer() -> None:
    from harness.models.model import Expectation

    model = a_model(expectation=Expectation(cases="net/*", message="no"))
    stock, peer = plan(a_suite(models=(model,)), peers=[ONNXRUNTIME])
    assert (stock.known_to_fail, peer.known_to_fail) == (True, False)


def test_under_several_toolchains_a_peer_is_there_once() -> None:
    plans = [plan(a_suite(), toolchain=release, peers=[ONNXRUNTIME]) for release in ("3.12.0", "3.13.0")]
    assert names(across_toolchains(plans)) == ["net/stock@cpu:3.12.0", "net/stock@cpu:3.13.0", "net/onnxruntime@cpu"]
