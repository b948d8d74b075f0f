"""IREE's old rule, with the thresholds and the names that it had."""

from dataclasses import replace

import pytest

from harness.compare.upstream import judge_upstream, upstream_name
from tests.builders import make_case

MS = 1_000_000


def name_of(model: str = "rdb", *, architecture: str = "x86_64", uri: str = "local-sync", device: str = "cpu") -> str:
    return upstream_name(make_case("stock", model=model, uri=uri, device=device), architecture)


def test_a_name_reads_as_upstreams_did() -> None:
    assert name_of() == "rdb [x86_64-llvm-cpu][stock] local-sync with default @ cpu"
    assert name_of(architecture="aarch64") == "rdb [CPU-ARM64-llvm-cpu][stock] local-sync with default @ cpu"
    vulkan = replace(make_case("stock", uri="vulkan://0", device="gpu"), backend="vulkan-spirv")
    assert upstream_name(vulkan, "x86_64") == "net [vulkan-spirv][stock] vulkan with default @ gpu"


@pytest.mark.parametrize(
    ("name", "floor"),
    [
        (name_of(), 0.10),
        (name_of(architecture="aarch64"), 0.10),
        (name_of(architecture="riscv64"), 0.05),
        (name_of(uri="vulkan"), 0.05),
        (name_of(uri="cuda://0"), 0.05),
        # Of models, with a base of 100 ms.
        (name_of("DeepLabV3_fp32"), 0.01),
        (name_of("MobileNetV2_fp32"), 0.02),
        (name_of("PersonDetect_int8"), 0.005),
        (name_of("MobileBert_fp16", uri="vulkan", device="GPU-Mali-G78"), 0.10),
        (name_of("EfficientNet_int8", uri="vulkan", device="GPU-Mali-G78"), 0.015),
        (name_of("MobileNetV3Small_fp32", uri="vulkan", device="GPU-Mali-G78"), 0.02),
        (name_of("MobileNetV1_fp32", uri="vulkan", device="GPU"), 0.01),
        (name_of("MobileNetV1_fp32", uri="vulkan", device="gpu"), 0.05),
    ],
)
def test_the_first_expression_that_matches_a_name_gives_the_threshold(name: str, floor: float) -> None:
    assert judge_upstream("latency", name, 100 * MS, 100 * MS)[1] == pytest.approx(floor)


@pytest.mark.parametrize(
    ("metric", "base", "head", "verdict", "reason"),
    [
        ("latency", 100 * MS, 112.3 * MS, "regressed", "12.3 % against 10 %"),
        ("latency", 100 * MS, 87.7 * MS, "improved", "12.3 % against 10 %"),
        ("latency", 100 * MS, 110 * MS, "unchanged", "10.0 % against 10 %"),
        ("compile-time", 1000, 2000, "unchanged", "100.0 % against 100 %"),
        ("compile-time", 1000, 2001, "regressed", "100.1 % against 100 %"),
        ("dispatch-size", 1000, 1051, "regressed", "5.1 % against 5 %"),
        ("module-size", 1000, 950, "unchanged", "5.0 % against 5 %"),
        ("dispatches", 10, 10, "unchanged", "0.0 % against 0 %"),
        ("dispatches", 10, 9, "improved", "10.0 % against 0 %"),
        ("dispatches", 0, 0, "unchanged", "zero on both sides"),
        ("dispatches", 0, 3, "regressed", "the base is zero, so no percentage holds, and any change counts"),
    ],
)
def test_the_mean_against_the_threshold(metric: str, base: float, head: float, verdict: str, reason: str) -> None:
    found, _, why = judge_upstream(metric, name_of(), base, head)
    assert (found, why) == (verdict, f"upstream's rule: {reason}")


def test_a_threshold_in_time() -> None:
    name = name_of("MobileNetV2_fp32")
    assert judge_upstream("latency", name, 8 * MS, 10 * MS)[:2] == ("unchanged", 0.25)
    slower = judge_upstream("latency", name, 8 * MS, 10.1 * MS)
    assert slower[::2] == ("regressed", "upstream's rule: 2.1 ms against 2 ms")
    assert judge_upstream("latency", name, 0, 1 * MS) == ("unchanged", 0.0, "upstream's rule: 1 ms against 2 ms")
